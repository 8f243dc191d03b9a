import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn } from "typeorm";
import { SyncedCopyRow } from "./connection";
import { OfCopy, OfTenant, TenantRow } from "./tenant";

@Entity("meeting")
@ForeignKey(() => TenantRow, ["tenantId"], ["id"], { name: "meeting_tenant_fkey" })
@Index("meeting_external_id", ["tenantId", "externalId"], { unique: true })
@Index("meeting_by_start", ["tenantId", "startsAt", "id"])
@Index("meeting_taking_place", ["tenantId", "startsAt", "id"], { where: "cancelled_at IS NULL" })
@Index("meeting_by_owner", ["tenantId", "ownerKey", "startsAt", "id"])
@Index("meeting_to_refresh", ["startsAt"], { where: "refreshed_at IS NULL" })
export class MeetingRow extends OfTenant {
  @PrimaryColumn("uuid")
  id!: string;

  @Column("text")
  externalId!: string;

  @Column("text")
  title!: string;

  @Column("timestamptz")
  startsAt!: Date;

  @Column("timestamptz", { nullable: true })
  endsAt!: Date | null;

  @Column("text")
  ownerEmail!: string;

  /** By which the meetings of an owner are found (`mailboxKeyOf`). */
  @Column("text", { select: false })
  ownerKey!: string;

  /** In lower case the title, and each attendee's address and name: where a text is looked for. */
  @Column("text", { select: false })
  searchText!: string;

  @Column("text", { select: false })
  recordedBy!: string;

  @Column("timestamptz", { select: false })
  recordedAt!: Date;

  /** When it was said that it does not take place; recording it again revives it. */
  @Column("timestamptz", { nullable: true })
  cancelledAt!: Date | null;

  /** When its records were last brought up to date because it begins soon; null: not yet, or not those of who attends by now. */
  @Column("timestamptz", { nullable: true, select: false })
  refreshedAt!: Date | null;
}

const WITH_DEAL = { where: "deal_id IS NOT NULL" };
const GoesWithMeeting = (name: string) =>
  ForeignKey(() => MeetingRow, ["tenantId", "meetingId"], ["tenantId", "id"], { name, onDelete: "CASCADE" });

abstract class OfMeeting extends OfTenant {
  @PrimaryColumn("uuid")
  meetingId!: string;
}

const ATTENDEE_SIDES = ["SELLER", "BUYER", "IGNORED"] as const;
export type AttendeeSide = (typeof ATTENDEE_SIDES)[number];
const MATCH_STATUSES = ["MATCHED", "AMBIGUOUS", "NONE", "PENDING"] as const;
export type MatchStatus = (typeof MATCH_STATUSES)[number];
const PERSON_RULES = ["EMAIL_EXACT", "EMAIL_WITHOUT_TAG", "ONLY_ONE_ON_OPEN_DEAL"] as const;
export type PersonRule = (typeof PERSON_RULES)[number];
const ORGANIZATION_RULES = ["ORGANIZATION_OF_PERSON", "DOMAIN_OF_PERSONS", "DOMAIN_OF_WEBSITE"] as const;
export type OrganizationRule = (typeof ORGANIZATION_RULES)[number];

@Entity("meeting_attendee")
@GoesWithMeeting("meeting_attendee_meeting_fkey")
@Check("meeting_attendee_side", "side IN ('SELLER', 'BUYER', 'IGNORED')")
@Check("meeting_attendee_match_status", "match_status IN ('MATCHED', 'AMBIGUOUS', 'NONE', 'PENDING')")
@Check("meeting_attendee_organization_status", "organization_status IN ('MATCHED', 'AMBIGUOUS', 'NONE', 'PENDING')")
export class MeetingAttendeeRow extends OfMeeting {
  @PrimaryColumn("integer")
  position!: number;

  @Column("text")
  email!: string;

  @Column("text", { nullable: true })
  name!: string | null;

  @Column("text")
  side!: AttendeeSide;

  @Column("text")
  matchStatus!: MatchStatus;

  @Column("text", { nullable: true })
  matchRule!: PersonRule | null;

  @Column("text")
  matchReason!: string;

  @Column("bigint", { nullable: true })
  personId!: number | null;

  @Column("bigint", { array: true })
  candidateIds!: number[];

  @Column("text")
  organizationStatus!: MatchStatus;

  @Column("bigint", { nullable: true })
  organizationId!: number | null;

  @Column("text", { nullable: true })
  organizationRule!: OrganizationRule | null;

  @Column("text", { nullable: true })
  organizationReason!: string | null;
}

const MEETING_MATCH_STATUSES = ["MATCHED", "NEEDS_CHOICE", "NONE", "PENDING"] as const;
export type MeetingMatchStatus = (typeof MEETING_MATCH_STATUSES)[number];

/** In the order in which they are asked. */
const DEAL_RULES = [
  "CHOSEN",
  "SAME_CRM_ACTIVITY",
  "ONE_DEAL_OF_ALL",
  "ONLY_CANDIDATE",
  "MOST_ATTENDEES",
  "OWNER_ATTENDS",
  "OPEN_BEFORE_CLOSED",
] as const;
export type DealRule = (typeof DEAL_RULES)[number];
export type StoredDealCandidate = { dealId: number; reason: string };

export interface LastDeal {
  dealId: number;
  rule: DealRule | null;
  reason: string;
  /** Since when it is about this deal, in ISO 8601: what was written before was written by another match. */
  since: string;
  /** Who led to it, by mailbox, or for want of them all buyers: it is kept for them. */
  people: string[];
}

/** Which deal a meeting is about, with the rule that decided; of the copy it was decided on. */
@Entity("meeting_match")
@Index("meeting_match_by_deal", ["tenantId", "copyId", "dealId", "startsAt", "meetingId"], WITH_DEAL)
@Index("meeting_match_by_status", { synchronize: false })
@GoesWithMeeting("meeting_match_meeting_fkey")
@Check("meeting_match_status", "status IN ('MATCHED', 'NEEDS_CHOICE', 'NONE', 'PENDING')")
export class MeetingMatchRow extends OfMeeting {
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

  @Column("boolean", { default: false })
  mayChange!: boolean;

  @Column("bigint", { nullable: true })
  dealId!: number | null;

  /** Somebody who is on hundreds of deals makes as many. */
  @Column("jsonb", { select: false })
  candidates!: StoredDealCandidate[];

  @Column("timestamptz")
  matchedAt!: Date;

  /** Of all that this match says, and when: matching that comes to the same writes nothing. */
  @Column("text")
  fingerprint!: string;

  /** The user's choice, and the CRM company of that deal. It outlives matches in which the deal is not to be seen, and the copy. */
  @Column("bigint", { nullable: true })
  chosenDealId!: number | null;

  @Column("bigint", { nullable: true, select: false })
  chosenCompanyId!: number | null;

  @Column("text", { nullable: true, select: false })
  chosenBy!: string | null;

  @Column("timestamptz", { nullable: true, select: false })
  chosenAt!: Date | null;

  /** What it is about, or was before it was cancelled, or before nothing could be known of its deal: what was written holds that. */
  @Column("jsonb", { nullable: true, select: false })
  lastDeal!: LastDeal | null;
}

export type MatchedEntity = "DEAL" | "PERSON" | "ORGANIZATION";

/** The proof that a record may be read: it is matched to an attendee of a recorded meeting. */
@Entity("matched_record")
@ForeignKey(() => SyncedCopyRow, ["tenantId", "copyId"], ["tenantId", "id"], { name: "matched_record_copy_fkey" })
@GoesWithMeeting("matched_record_meeting_fkey")
@Index("matched_record_by_meeting", ["tenantId", "meetingId", "copyId", "entity", "crmId"])
@Check("matched_record_entity", "entity IN ('DEAL', 'PERSON', 'ORGANIZATION')")
export class MatchedRecordRow extends OfCopy {
  @PrimaryColumn("text")
  entity!: MatchedEntity;

  @PrimaryColumn("bigint")
  crmId!: number;

  @PrimaryColumn("uuid")
  meetingId!: string;
}
