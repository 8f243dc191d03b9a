import { Check, Column, Entity, Index, PrimaryColumn } from "typeorm";
import type { GapCode, SyncResource } from "./sync-run";
import { OfCopy } from "./tenant";

/** What is known of one of the CRM's lists, in one copy. */
abstract class OfList extends OfCopy {
  @PrimaryColumn("text")
  resource!: SyncResource;
}

/** Of one record of it; 0 where the whole list is meant. */
abstract class OfListedRecord extends OfList {
  @PrimaryColumn("bigint")
  crmId!: number;
}

/**
 * Without one of these an answer would hide what is there, and a run has failed; without the others, which only name things,
 * it succeeds and says what is missing (specification 4.3).
 */
export const MAIN_LISTS: readonly SyncResource[] = [
  "USERS",
  "ORGANIZATIONS",
  "PERSONS",
  "DEALS",
  "ACTIVITIES",
  "NOTES",
];
/** All lists of the CRM; up to when participants are read no one watermark can say. */
export const SYNC_LISTS = [...MAIN_LISTS, "PIPELINES", "STAGES"] as const;

/** Up to when the copy has all of one list of the CRM. */
@Entity("sync_list")
export class SyncListRow extends OfList {
  /** By the CRM's clock; null before it was first read to its end. It never goes back. */
  @Column("timestamptz", { nullable: true })
  watermark!: Date | null;

  /** When it was last read to its end, by our clock. */
  @Column("timestamptz", { nullable: true })
  readAt!: Date | null;

  /** When it was last read whole, by our clock. */
  @Column("timestamptz", { nullable: true })
  wholeAt!: Date | null;

  /** Reads in a row that changed nothing: such a list may be read less often. */
  @Column("integer", { default: 0 })
  quietReads!: number;

  /** The last time that it was walked to find what is gone, that was much: it may come back, which nothing else tells. */
  @Column("boolean", { default: false })
  muchGone!: boolean;

  /** When one of its records last came that was there before: what hangs on it may be in sight by now, which nothing else tells. */
  @Column("timestamptz", { nullable: true })
  lateAt!: Date | null;

  /** What records of other lists named and it did not have, the latest first: it was asked for that once. */
  @Column("bigint", { array: true, select: false, default: [] })
  missing!: number[];
}

/** A way through a list that is under way: where it goes on after a turn, a crash or a day without tokens. */
@Entity("sync_pass")
@Check("sync_pass_kind", "kind IN ('WHOLE', 'CHANGES')")
export class SyncPassRow extends OfList {
  @PrimaryColumn("text")
  kind!: "WHOLE" | "CHANGES";

  /** A reconciling pass: what two walks do not show is removed at its end. */
  @Column("boolean")
  removes!: boolean;

  @Column("timestamptz", { nullable: true })
  updatedSince!: Date | null;

  /** The lesser of the CRM's clock and ours at its beginning: the list's watermark when it ends. null: asked for, not begun. */
  @Column("timestamptz", { nullable: true })
  beganAt!: Date | null;

  @Column("text", { nullable: true })
  cursor!: string | null;

  /** The highest id that it has shown; a page with nothing above it ends the walk as unreadable. */
  @Column("bigint", { default: 0 })
  lastId!: number;

  /** Which walk this is: a reconciling pass may need two. */
  @Column("integer", { default: 1 })
  walk!: number;

  /** null too where the last walk that ended left out little. */
  @Column("timestamptz", { nullable: true })
  firstWalkEndedAt!: Date | null;

  /** Since when it has failed where it stands; null: its last page came. */
  @Column("timestamptz", { nullable: true })
  failedSince!: Date | null;

  /** Until when it is not tried again, because it has failed; null: it has not, has got on since, or somebody asks for it. */
  @Column("timestamptz", { nullable: true })
  restsUntil!: Date | null;

  /** When it first had to begin anew, because its list had no end or its cursor was refused. */
  @Column("timestamptz", { nullable: true })
  inVainSince!: Date | null;

  /** When it last had to; null: it never had, or somebody asks for it. */
  @Column("timestamptz", { nullable: true })
  begunAnewAt!: Date | null;

  /** So many of its next pages are asked for with fewer records: one of full size did not come. */
  @Column("integer", { default: 0 })
  smallPages!: number;
}

/** Something that the copy lacks now: of one record (`crmId`), or of a whole resource (0). */
@Entity("data_gap")
export class DataGapRow extends OfListedRecord {
  @Column("text")
  code!: GapCode;

  @Column("text")
  message!: string;

  @Column("timestamptz")
  since!: Date;
}

/** A record of the copy that the walk of a reconciling run has not seen so far. */
@Entity("absent_record")
export class AbsentRecordRow extends OfListedRecord {}

/** A record that the CRM did not show when it was asked for by its id, or that is to be asked for because of what is gone. */
@Entity("missed_record")
export class MissedRecordRow extends OfListedRecord {
  /** null: no answer has left it out. */
  @Column("timestamptz", { nullable: true })
  missedAt!: Date | null;

  /** When the look that was to show it again, or to prove that it is gone, last failed; null: none did. */
  @Column("timestamptz", { nullable: true })
  failedAt!: Date | null;
}

/** A record that could not be read, kept aside with the reason. */
@Entity("rejected_record")
@Index("rejected_record_of_deal", ["tenantId", "copyId", "dealId"], { where: "deal_id IS NOT NULL" })
@Index("rejected_record_by_age", ["tenantId", "copyId", "resource", "since"])
export class RejectedRecordRow extends OfList {
  @PrimaryColumn("text")
  recordKey!: string;

  @Column("text")
  reason!: string;

  @Column("jsonb")
  payload!: unknown;

  /** The deal to which the CRM says it belongs, where that can be read. */
  @Column("bigint", { nullable: true })
  dealId!: number | null;

  /** When the CRM first showed it in a form that cannot be read. */
  @Column("timestamptz")
  since!: Date;

  @Column("timestamptz")
  seenAt!: Date;
}
