import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn } from "typeorm";
import { MeetingRow } from "./meeting";

export const MEETING_MATCH_STATUSES = ["MATCHED", "NEEDS_CHOICE", "NONE", "PENDING"] as const;
export type MeetingMatchStatus = (typeof MEETING_MATCH_STATUSES)[number];

/** In the order in which they are asked. */
export const DEAL_RULES = [
  ...(["CHOSEN", "SAME_CRM_ACTIVITY", "ONE_DEAL_OF_ALL", "ONLY_CANDIDATE"] as const),
  ...(["MOST_ATTENDEES", "OWNER_ATTENDS", "OPEN_BEFORE_CLOSED"] as const),
] as const;
export type DealRule = (typeof DEAL_RULES)[number];

export interface StoredDealCandidate {
  dealId: number;
  reason: string;
}

export interface LastDeal {
  dealId: number;
  rule: DealRule | null;
  reason: string;
  /** Since when it is about this deal, in ISO 8601: what was written before was written by another match. */
  since: string;
}

/** Which deal a meeting is about, with the rule that decided; of the copy it was decided on. */
@Entity("meeting_match")
@Index("meeting_match_by_deal", ["tenantId", "copyId", "dealId"])
@Index("meeting_match_by_status", { synchronize: false })
@ForeignKey(() => MeetingRow, ["tenantId", "meetingId"], ["tenantId", "id"], {
  name: "meeting_match_meeting_fkey",
  onDelete: "CASCADE",
})
@Check("meeting_match_status", "status IN ('MATCHED', 'NEEDS_CHOICE', 'NONE', 'PENDING')")
export class MeetingMatchRow {
  @PrimaryColumn("bigint")
  tenantId!: number;

  @PrimaryColumn("uuid")
  meetingId!: string;

  @Column("bigint", { nullable: true })
  copyId!: number | null;

  /** The meeting's own: lists of one status are sorted by it. */
  @Column("timestamptz")
  startsAt!: Date;

  @Column("text")
  status!: MeetingMatchStatus;

  @Column("text", { nullable: true })
  rule!: DealRule | null;

  @Column("text")
  reason!: string;

  @Column("bigint", { nullable: true })
  dealId!: number | null;

  @Column("jsonb")
  candidates!: StoredDealCandidate[];

  @Column("timestamptz")
  matchedAt!: Date;

  /** Of all that this match says: matching that comes to the same writes nothing. */
  @Column("text")
  fingerprint!: string;

  /** What a user chose. It outlives matches in which the deal is not to be seen, and the copy. */
  @Column("bigint", { nullable: true })
  chosenDealId!: number | null;

  /** The CRM company in which that deal is. */
  @Column("bigint", { nullable: true })
  chosenCompanyId!: number | null;

  @Column("text", { nullable: true })
  chosenBy!: string | null;

  @Column("timestamptz", { nullable: true })
  chosenAt!: Date | null;

  /** What it is about, or was before it was cancelled, or before nothing could be known of its deal: what was written holds that. */
  @Column("jsonb", { nullable: true })
  lastDeal!: LastDeal | null;
}
