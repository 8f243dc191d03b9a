import { Check, Column, Entity, ForeignKey, PrimaryColumn } from "typeorm";
import { MeetingRow } from "./meeting";

export const ATTENDEE_SIDES = ["SELLER", "BUYER", "IGNORED"] as const;
export type AttendeeSide = (typeof ATTENDEE_SIDES)[number];

export const MATCH_STATUSES = ["MATCHED", "AMBIGUOUS", "NONE", "PENDING"] as const;
export type MatchStatus = (typeof MATCH_STATUSES)[number];

export const PERSON_RULES = ["EMAIL_EXACT", "EMAIL_WITHOUT_TAG", "ONLY_ONE_ON_OPEN_DEAL"] as const;
export type PersonRule = (typeof PERSON_RULES)[number];

export const ORGANIZATION_RULES = ["ORGANIZATION_OF_PERSON", "DOMAIN_OF_PERSONS", "DOMAIN_OF_WEBSITE"] as const;
export type OrganizationRule = (typeof ORGANIZATION_RULES)[number];

@Entity("meeting_attendee")
@ForeignKey(() => MeetingRow, ["tenantId", "meetingId"], ["tenantId", "id"], {
  name: "meeting_attendee_meeting_fkey",
  onDelete: "CASCADE",
})
@Check("meeting_attendee_side", "side IN ('SELLER', 'BUYER', 'IGNORED')")
@Check("meeting_attendee_match_status", "match_status IN ('MATCHED', 'AMBIGUOUS', 'NONE', 'PENDING')")
@Check("meeting_attendee_organization_status", "organization_status IN ('MATCHED', 'AMBIGUOUS', 'NONE', 'PENDING')")
export class MeetingAttendeeRow {
  @PrimaryColumn("bigint")
  tenantId!: number;

  @PrimaryColumn("uuid")
  meetingId!: string;

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
