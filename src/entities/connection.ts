import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn } from "typeorm";
import type { Refused } from "../platform/errors";
import type { Rematch } from "./sync-run";
import { DRAWN, OfCopy, OfTenant, TenantRow } from "./tenant";

/** Our copy of one CRM user's view of one CRM company. */
@Entity("synced_copy")
@ForeignKey(() => TenantRow, ["tenantId"], ["id"], { name: "synced_copy_tenant_fkey" })
@Index("synced_copy_one_live", ["tenantId"], { unique: true, where: "state = 'LIVE'" })
@Check("synced_copy_state", "state IN ('LIVE', 'RETIRED')")
export class SyncedCopyRow extends OfTenant {
  @PrimaryColumn("bigint", DRAWN)
  id!: number;

  @Column("bigint")
  crmCompanyId!: number;

  @Column("bigint")
  crmUserId!: number;

  /** That user's, as the CRM named it last. */
  @Column("text", { default: "UTC" })
  timeZone!: string;

  @Column("text")
  state!: "LIVE" | "RETIRED";

  @Column("timestamptz")
  createdAt!: Date;

  /** Whether the tenant's meetings were matched against this copy since every list that a match is made of was read to its end; null: not at all yet. */
  @Column("boolean", { nullable: true })
  matchedAsWhole!: boolean | null;

  /** While meetings are matched again, and that takes more than a moment; null: none are. */
  @Column("jsonb", { nullable: true })
  rematch!: Rematch | null;

  /** When the last day's part of the matched records was asked for by their ids; null: not yet. */
  @Column("timestamptz", { nullable: true })
  probedAt!: Date | null;

  /** Up to which the present round of that has come: resource and id; null: between two rounds. */
  @Column("text", { nullable: true })
  probeCursor!: string | null;

  /** Whether some of the present part of it could not be asked for. */
  @Column("boolean", { default: false })
  probeFailed!: boolean;

  /** The parts before it, in a row, of which some could not be. */
  @Column("integer", { default: 0 })
  probeFailures!: number;

  /** When participants were last asked again in turn; null: not yet. */
  @Column("timestamptz", { nullable: true })
  askedAgainAt!: Date | null;

  /** Deals whose one participant the CRM named and that was the deal's person. */
  @Column("integer", { default: 0 })
  loneParticipantsConfirmed!: number;

  /** Once somebody else was: from then on every deal is asked. */
  @Column("boolean", { default: false })
  loneParticipantsRefuted!: boolean;
}

export const CONNECTION_STATES = ["NOT_CONNECTED", "CONNECTED", "NEEDS_REAUTHORIZATION"] as const;
export type ConnectionState = (typeof CONNECTION_STATES)[number];

const REAUTHORIZATION_REASONS = ["GRANT_REVOKED", "RENEWAL_UNCONFIRMED", "IDENTITY_CHANGED"] as const;
export type ReauthorizationReason = (typeof REAUTHORIZATION_REASONS)[number];

/** What keeps a connected CRM from working for a time. */
export const TROUBLE_CODES = [
  "CRM_UNAVAILABLE",
  "RATE_LIMITED",
  "BUDGET_LOW",
  "CRM_REFUSED",
  "CRM_ACCOUNT_CLOSED",
  "CRM_ANSWER_UNREADABLE",
  "SERVICE_MISCONFIGURED",
] as const;
export type TroubleCode = (typeof TROUBLE_CODES)[number];

/** The tenant's one CRM connection and its state. */
@Entity("connection")
@ForeignKey(() => TenantRow, ["tenantId"], ["id"], { name: "connection_tenant_fkey" })
@ForeignKey(() => SyncedCopyRow, ["tenantId", "copyId"], ["tenantId", "id"], { name: "connection_copy_fkey" })
@Check("connection_state", "state IN ('NOT_CONNECTED', 'CONNECTED', 'NEEDS_REAUTHORIZATION')")
@Check(
  "connection_reauthorization_reason",
  "reauthorization_reason IN ('GRANT_REVOKED', 'RENEWAL_UNCONFIRMED', 'IDENTITY_CHANGED')",
)
@Check(
  "connection_trouble_whole",
  "num_nulls(trouble_code, trouble_message, trouble_since, trouble_last_seen_at) IN (0, 4)",
)
@Check("connection_has_copy", "(state = 'NOT_CONNECTED') = (copy_id IS NULL)")
export class ConnectionRow extends OfTenant {
  @Column("text")
  state!: ConnectionState;

  /** null before anyone connected. */
  @Column("timestamptz", { nullable: true })
  stateChangedAt!: Date | null;

  @Column("bigint", { nullable: true })
  copyId!: number | null;

  @Column("text", { nullable: true })
  boundEmail!: string | null;

  @Column("text", { nullable: true })
  boundUserName!: string | null;

  @Column("text", { nullable: true })
  companyName!: string | null;

  @Column("text", { nullable: true })
  companyDomain!: string | null;

  @Column("timestamptz", { nullable: true })
  connectedAt!: Date | null;

  @Column("text", { nullable: true })
  reauthorizationReason!: ReauthorizationReason | null;

  @Column("text", { nullable: true })
  troubleCode!: TroubleCode | null;

  @Column("text", { nullable: true })
  troubleMessage!: string | null;

  @Column("timestamptz", { nullable: true })
  troubleSince!: Date | null;

  @Column("timestamptz", { nullable: true })
  troubleLastSeenAt!: Date | null;

  /** When the schedule runs next; null where runs are only made by request. */
  @Column("timestamptz", { nullable: true })
  nextSyncAt!: Date | null;
}

/** The sealed token pair of a connection, apart from it so that no reader of a connection meets it. */
@Entity("credential")
@ForeignKey(() => SyncedCopyRow, ["tenantId", "copyId"], ["tenantId", "id"], { name: "credential_copy_fkey" })
export class CredentialRow extends OfTenant {
  @Column("bigint")
  copyId!: number;

  @Column("integer")
  version!: number;

  /** The version whose access token the CRM has shown to be the bound user's: the present one, or the token is not used. */
  @Column("integer", { nullable: true })
  provenVersion!: number | null;

  @Column("bytea")
  accessToken!: Buffer;

  @Column("bytea")
  refreshToken!: Buffer;

  @Column("timestamptz")
  accessTokenAskedAt!: Date;

  /** When it was last tried to renew it for no other reason than that the CRM forgets what nobody uses. */
  @Column("timestamptz", { nullable: true })
  keptAliveAt!: Date | null;
}

/** A consent that was started: its state is stored only as a SHA-256 hash. */
@Entity("authorization_request")
@ForeignKey(() => TenantRow, ["tenantId"], ["id"], { name: "authorization_request_tenant_fkey" })
export class AuthorizationRequestRow extends OfTenant {
  @PrimaryColumn("bytea")
  stateHash!: Buffer;

  @Column("text")
  userId!: string;

  @Column("timestamptz")
  expiresAt!: Date;

  /** Since when it is being completed; where it has connected, that connection's `connectedAt`. Voided by a disconnect, it is gone. */
  @Column("timestamptz", { nullable: true })
  usedAt!: Date | null;

  /** With what it was used up: code or error of the CRM, as a hash. */
  @Column("bytea", { nullable: true })
  answerHash!: Buffer | null;

  /** When who completes it last said so, by the database's clock; null: nobody does. */
  @Column("timestamptz", { nullable: true })
  aliveAt!: Date | null;

  /** What its user was told, where it came to nothing; no address of anybody. */
  @Column("jsonb", { nullable: true })
  refusal!: Refused | null;
}

/** A renewal that was begun with the credential of `version` and whose outcome is not known (yet). */
@Entity("renewal_attempt")
@ForeignKey(() => TenantRow, ["tenantId"], ["id"], { name: "renewal_attempt_tenant_fkey" })
export class RenewalAttemptRow extends OfCopy {
  @Column("integer")
  version!: number;

  @Column("timestamptz")
  startedAt!: Date;
}
