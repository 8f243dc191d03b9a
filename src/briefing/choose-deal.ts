import type { Actor } from "../auth/actor";
import { recordAudit } from "../auth/audit";
import { liveCopyId } from "../connections/connection-store";
import { NOT_CONNECTED } from "../connections/refusals";
import type { TenantScope } from "../database/database";
import { DealRow } from "../entities/deal";
import type { MeetingRow } from "../entities/meeting";
import { MeetingMatchRow } from "../entities/meeting-match";
import type { Logger } from "../platform/logger";
import { accepted, type Outcome, refused } from "../platform/outcome";
import { matchMeetings } from "./match-meeting";
import { lockMeeting } from "./meeting-rows";

export interface DealChoice {
  /** null where the id that was given is no meeting's. */
  meetingId: string | null;
  /** A deal of a copy; null where the id that was given is no deal's. */
  deal: { copyId: number; crmId: number } | null;
}

export type ChoiceRefusal = "MEETING_NOT_FOUND" | "NOT_CONNECTED" | "TARGET_NOT_MATCHED";

/**
 * A user says which deal a meeting is about: one of the candidates that the user was shown. Any actor of the tenant
 * may, as any may record the meeting. Unknown deals, those of others and those that are no candidates answer alike.
 */
export async function chooseDeal(
  scope: TenantScope,
  actor: Actor,
  { meetingId, deal }: DealChoice,
  now: Date,
  logger: Logger,
): Promise<Outcome<MeetingRow, ChoiceRefusal>> {
  const meeting = meetingId === null ? null : await lockMeeting(scope, meetingId);
  if (!meeting) return refused("MEETING_NOT_FOUND", "There is no meeting with this id. Record it first.", "meetingId");
  const copyId = await liveCopyId(scope);
  if (copyId === null) return NOT_CONNECTED;
  if (deal?.copyId !== copyId || !(await isCandidate(scope, meeting.row.id, copyId, deal.crmId))) {
    return refused("TARGET_NOT_MATCHED", "Choose one of the deals in the meeting's match.candidates.", "dealId");
  }
  await storeChoice(scope, meeting.row.id, copyId, { dealId: deal.crmId, by: actor.userId, at: now });
  await matchMeetings(scope, [meeting], now, "CHOSEN");
  await recordAudit(scope, logger, { action: "DEAL_CHOSEN", actor, at: now, subject: meeting.row.id });
  return accepted(meeting.row);
}

/** Whether the user was shown the deal as a candidate, and it is still there. */
async function isCandidate(scope: TenantScope, meetingId: string, copyId: number, dealId: number): Promise<boolean> {
  const { tenantId, typed } = scope;
  const match = await typed((orm) => orm.findOneBy(MeetingMatchRow, { tenantId, meetingId, copyId }));
  if (!match?.candidates.some((candidate) => candidate.dealId === dealId)) return false;
  return typed((orm) => orm.existsBy(DealRow, { tenantId, copyId, crmId: dealId }));
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
