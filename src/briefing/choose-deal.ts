import type { Actor } from "../auth/actor";
import { recordAudit } from "../auth/audit";
import { liveCopyId, NOT_CONNECTED } from "../connections/connection";
import type { CopyScope, TenantScope } from "../database/database";
import { MeetingMatchRow, type MeetingRow } from "../entities/meeting";
import { accepted, type Outcome, refused } from "../platform/errors";
import type { Logger } from "../platform/logger";
import { DROP_CHOICES, matchMeetings } from "./match-meeting";
import { lockMeeting } from "./meeting-rows";
import { isMatched } from "./records";

export interface DealChoice {
  /** null where the id that was given is no meeting's. */
  meetingId: string | null;
  /** A deal of a copy; null where the id that was given is no deal's. */
  deal: { copyId: number; crmId: number } | null;
}

export type ChoiceRefusal = "MEETING_NOT_FOUND" | "NOT_CONNECTED" | "DEAL_NOT_FOUND" | "TARGET_NOT_MATCHED";

export const NO_MEETING = refused(
  "MEETING_NOT_FOUND",
  "There is no meeting with this id. Record it first.",
  "meetingId",
);
const NO_DEAL = refused(
  "DEAL_NOT_FOUND",
  "There is no such deal. Choose one of the deals in the meeting's match.candidates.",
  "dealId",
);
const NO_CANDIDATE = refused(
  "TARGET_NOT_MATCHED",
  "This deal is none of the meeting's. Choose one of the deals in its match.candidates.",
  "dealId",
);

/**
 * A user says which deal a meeting is about: one of the candidates that the user was shown. Any actor of the tenant
 * may, as any may record the meeting. Unknown deals, those of others and those that the tenant may not read answer alike.
 */
export async function chooseDeal(
  scope: TenantScope,
  actor: Actor,
  { meetingId, deal }: DealChoice,
  now: Date,
  logger: Logger,
): Promise<Outcome<MeetingRow, ChoiceRefusal>> {
  const meeting = meetingId === null ? null : await lockMeeting(scope, meetingId);
  if (!meeting) return NO_MEETING;
  const copyId = await liveCopyId(scope);
  if (copyId === null) return NOT_CONNECTED;
  if (deal?.copyId !== copyId || !(await isReadable({ ...scope, copyId }, deal.crmId))) return NO_DEAL;
  if (!(await isCandidate(scope, meeting.row.id, copyId, deal.crmId))) return NO_CANDIDATE;
  await storeChoice(scope, meeting.row.id, copyId, { dealId: deal.crmId, by: actor.userId, at: now });
  await matchMeetings(scope, [meeting], now, "CHOSEN");
  await recordAudit(scope, logger, { action: "DEAL_CHOSEN", actor, at: now, subject: meeting.row.id });
  return accepted(meeting.row);
}

/** The rules decide again, also where something was written: a person says so. */
export async function unchooseDeal(
  scope: TenantScope,
  actor: Actor,
  meetingId: string | null,
  now: Date,
  logger: Logger,
): Promise<Outcome<MeetingRow, "MEETING_NOT_FOUND">> {
  const meeting = meetingId === null ? null : await lockMeeting(scope, meetingId);
  if (!meeting) return NO_MEETING;
  const subject = meeting.row.id;
  const taken = await scope.rows(`${DROP_CHOICES} AND chosen_deal_id IS NOT NULL RETURNING 1`, [
    ...[scope.tenantId, [subject]],
  ]);
  if (taken.length === 0) return accepted(meeting.row);
  await matchMeetings(scope, [meeting], now, "UNCHOSEN");
  await recordAudit(scope, logger, { action: "DEAL_CHOSEN", actor, at: now, subject, code: "TAKEN_BACK" });
  return accepted(meeting.row);
}

async function isReadable(copy: CopyScope, dealId: number): Promise<boolean> {
  const found = await copy.rows(
    `SELECT 1 FROM deal t WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.crm_id = $3 AND ${isMatched("DEAL")}`,
    [copy.tenantId, copy.copyId, dealId],
  );
  return found.length > 0;
}

/** Whether the user was shown the deal as a candidate. */
async function isCandidate(scope: TenantScope, meetingId: string, copyId: number, dealId: number): Promise<boolean> {
  const { tenantId, typed } = scope;
  const match = await typed((orm) => orm.findOneBy(MeetingMatchRow, { tenantId, meetingId, copyId }));
  return match?.candidates.some((candidate) => candidate.dealId === dealId) ?? false;
}

async function storeChoice(
  { tenantId, rows }: TenantScope,
  meetingId: string,
  copyId: number,
  { dealId, by, at }: { dealId: number; by: string; at: Date },
): Promise<void> {
  await rows(
    `UPDATE meeting_match SET chosen_deal_id = $3, chosen_by = $4, chosen_at = $5,
       chosen_company_id = (SELECT crm_company_id FROM synced_copy WHERE tenant_id = $1 AND id = $6)
     WHERE tenant_id = $1 AND meeting_id = $2`,
    [tenantId, meetingId, dealId, by, at, copyId],
  );
}
