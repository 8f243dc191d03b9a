import { Column, Entity, Index, PrimaryColumn } from "typeorm";
import type { MatchedEntity } from "./meeting";
import { OfCopy, OfRecord } from "./tenant";

@Entity("pipeline")
export class PipelineRow extends OfRecord {
  @Column("text")
  name!: string;

  @Column("integer")
  position!: number;
}

@Entity("stage")
export class StageRow extends OfRecord {
  @Column("text")
  name!: string;

  @Column("integer")
  position!: number;

  @Column("bigint", { nullable: true })
  pipelineId!: number | null;

  @Column("integer", { nullable: true })
  daysToRotten!: number | null;
}

@Entity("crm_user")
@Index("crm_user_by_mailbox", ["tenantId", "copyId", "mailbox"], { where: "mailbox IS NOT NULL" })
export class CrmUserRow extends OfRecord {
  @Column("text")
  name!: string;

  @Column("text")
  email!: string;

  /** That of `email` (`mailboxOf`); null where it is no address. */
  @Column("text", { nullable: true })
  mailbox!: string | null;

  @Column("boolean")
  active!: boolean;
}

/** When the CRM's list of an entity's fields was read, and what of the copy's records it does not explain. */
@Entity("field_list")
export class FieldListRow extends OfCopy {
  @PrimaryColumn("text")
  entity!: MatchedEntity;

  /** When it was last asked for, also in vain. */
  @Column("timestamptz")
  askedAt!: Date;

  /** null: never yet. */
  @Column("timestamptz", { nullable: true })
  readAt!: Date | null;

  /** Since when it is refused or unreadable, however often it was asked for; where the CRM was away, when it last was. null: it came, or rests no more. */
  @Column("timestamptz", { nullable: true })
  failedSince!: Date | null;

  /** Fields and options that records have named since, and that it does not have. */
  @Column("text", { array: true })
  wanted!: string[];

  /** Those that were looked for in it and are not there. */
  @Column("text", { array: true })
  missing!: string[];
}

/** A custom field, as the list last had it. */
@Entity("crm_field")
export class CrmFieldRow extends OfCopy {
  @PrimaryColumn("text")
  entity!: MatchedEntity;

  @PrimaryColumn("text")
  key!: string;

  /** Its place in the list. */
  @Column("integer")
  position!: number;

  @Column("text")
  name!: string;

  @Column("text")
  type!: string;

  /** Labels by the options' ids. */
  @Column("jsonb")
  options!: Record<string, string>;
}

/**
 * What a company of the CRM may spend a day with all its apps, and what this service spent of it. It belongs to no tenant:
 * several may have connected one company. Times are by our clock.
 */
@Entity("crm_budget")
export class CrmBudgetRow {
  @PrimaryColumn("bigint")
  crmCompanyId!: number;

  /** When the CRM's present day began, as far as it is known. */
  @Column("timestamptz")
  dayBeganAt!: Date;

  /** The balance was seen to jump up then; else the day is only assumed. */
  @Column("boolean", { default: false })
  resetSeen!: boolean;

  /** Tokens a day, as the CRM last said; null where it does not say. */
  @Column("integer", { nullable: true })
  dailyLimit!: number | null;

  /** As the CRM last said, less what the call itself cost. */
  @Column("integer", { nullable: true })
  remaining!: number | null;

  @Column("timestamptz", { nullable: true })
  toldAt!: Date | null;

  /** Tokens of this day, with what is set aside and not yet spent. */
  @Column("integer", { default: 0 })
  spentOnSyncs!: number;

  @Column("integer", { default: 0 })
  spentOnMeetings!: number;

  @Column("integer", { default: 0 })
  spentOnWrites!: number;

  /** The last look at the balance while it was below the floor. */
  @Column("timestamptz", { nullable: true })
  lookedAt!: Date | null;

  /** Since when the CRM answers that the day's tokens are used up. */
  @Column("timestamptz", { nullable: true })
  limitedAt!: Date | null;

  /** Counts the changes of the row: who changes it has seen the one before. */
  @Column("integer", { default: 0 })
  revision!: number;
}
