import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn, PrimaryGeneratedColumn } from "typeorm";
import { OwnedRecord } from "./records";
import { OfCopy, OfTenant, TenantRow } from "./tenant";

@Entity("deal")
@Index("deal_by_person", ["tenantId", "copyId", "personId"], { where: "person_id IS NOT NULL" })
@Index("deal_by_organization", ["tenantId", "copyId", "organizationId"], { where: "organization_id IS NOT NULL" })
@Index("deal_open_due", { synchronize: false })
@Index("deal_closed_due", { synchronize: false })
// With what decides whether a deal is asked again, without their rows.
@Index("deal_open_asked", { synchronize: false })
@Index("deal_closed_asked", { synchronize: false })
@Index("deal_due", { synchronize: false })
@Index("deal_snoozed", ["tenantId", "copyId", "snoozeEndsAt"], { where: "snooze_ends_at IS NOT NULL" })
@Check("deal_status", "status IN ('open', 'won', 'lost')")
export class DealRow extends OwnedRecord {
  @Column("text")
  title!: string;

  /** Exact decimal text. */
  @Column("numeric", { nullable: true })
  value!: string | null;

  @Column("text", { nullable: true })
  currency!: string | null;

  @Column("text")
  status!: "open" | "won" | "lost";

  @Column("bigint", { nullable: true })
  personId!: number | null;

  @Column("bigint", { nullable: true })
  organizationId!: number | null;

  @Column("bigint", { nullable: true })
  pipelineId!: number | null;

  @Column("bigint", { nullable: true })
  stageId!: number | null;

  @Column("integer", { nullable: true, select: false })
  participantsCount!: number | null;

  /** The participants are to be asked for: the deal is new or changed, or the last time failed. */
  @Column("boolean", { select: false })
  participantsDue!: boolean;

  /** False while the participants could not be read, or not yet. */
  @Column("boolean")
  participantsKnown!: boolean;

  /** What is held of them was known to be so, if by now it is only the last that was: another answer is a change. */
  @Column("boolean", { default: false, select: false })
  participantsOnceKnown!: boolean;

  /** The beginning of the run, or the time, that last asked who takes part; null: none did, and what is known is derived. */
  @Column("timestamptz", { nullable: true, select: false })
  participantsAskedAt!: Date | null;

  /** Our earliest mail to one of its people that was seen since it was added, kept because the CRM tells of the latest only. */
  @Column("timestamptz", { nullable: true })
  firstMailAt!: Date | null;

  @Column("bigint", { nullable: true })
  firstMailPersonId!: number | null;

  /** What a user of this service said of its silence, and until when; kept until it is said anew or taken back. */
  @Column("text", { nullable: true })
  snoozeReason!: string | null;

  @Column("text", { nullable: true })
  snoozedBy!: string | null;

  @Column("timestamptz", { nullable: true })
  snoozedAt!: Date | null;

  @Column("timestamptz", { nullable: true })
  snoozedUntil!: Date | null;

  /** From then on it is snoozed no more: at that date, or with the buyer's contact before it. Stored by who judges. */
  @Column("timestamptz", { nullable: true })
  snoozeEndsAt!: Date | null;

  @Column("date", { nullable: true })
  expectedCloseDate!: string | null;

  @Column("timestamptz", { nullable: true })
  stageChangeTime!: Date | null;

  @Column("timestamptz", { nullable: true })
  wonTime!: Date | null;

  @Column("timestamptz", { nullable: true })
  lostTime!: Date | null;

  /** When it was closed either way; older deals have this one alone. */
  @Column("timestamptz", { nullable: true, select: false })
  closeTime!: Date | null;

  @Column("text", { nullable: true })
  lostReason!: string | null;
}

/** A snooze of a deal that its tenant's copy does not hold now: it waits there for the deal to be shown again. */
@Entity("kept_snooze")
@ForeignKey(() => TenantRow, ["tenantId"], ["id"], { name: "kept_snooze_tenant_fkey" })
export class KeptSnoozeRow extends OfTenant {
  @PrimaryColumn("bigint")
  crmCompanyId!: number;

  @PrimaryColumn("bigint")
  dealId!: number;

  @Column("text")
  snoozeReason!: string;

  @Column("text")
  snoozedBy!: string;

  @Column("timestamptz")
  snoozedAt!: Date;

  @Column("timestamptz")
  snoozedUntil!: Date;

  @Column("timestamptz")
  snoozeEndsAt!: Date;
}

@Entity("deal_participant")
@Index("deal_participant_by_person", ["tenantId", "copyId", "personId"])
export class DealParticipantRow extends OfCopy {
  @PrimaryColumn("bigint")
  dealId!: number;

  @PrimaryColumn("bigint")
  personId!: number;
}

export const DEAL_CHANGES = [
  "STAGE",
  "VALUE",
  "CLOSE_DATE",
  "STATUS",
  "OWNER",
  "PERSON",
  "ORGANIZATION",
  "TITLE",
  "PARTICIPANTS",
  "VERDICT",
] as const;
export type DealChangeKind = (typeof DEAL_CHANGES)[number];

/**
 * An entry of the journal: what of a deal changed, as the CRM holds it. Records are named by their ids alone, because nobody
 * may read a name that is not matched.
 */
@Entity("deal_change")
@Index("deal_change_by_age", ["seenAt"])
@Index("deal_change_pushed", { synchronize: false })
@Index("deal_change_waiting", ["tenantId", "copyId"], { where: "seen_at = 'infinity'::timestamptz" })
@Check("deal_change_kind", `kind IN (${DEAL_CHANGES.map((kind) => `'${kind}'`).join(", ")})`)
export class DealChangeRow extends OfCopy {
  @PrimaryColumn("bigint")
  dealId!: number;

  /** When a sync saw it; of a verdict, from when on it holds. */
  @PrimaryColumn("timestamptz")
  seenAt!: Date;

  /** In the order in which entries of one instant were written. */
  @PrimaryGeneratedColumn("identity", { type: "bigint" })
  id!: number;

  @Column("text")
  kind!: DealChangeKind;

  @Column("text", { nullable: true })
  was!: string | null;

  @Column("text", { nullable: true })
  became!: string | null;
}
