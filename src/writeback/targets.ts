import { holdLiveCopy, readConnection } from "../connections/connection-store";
import { NEEDS_REAUTHORIZATION, NOT_CONNECTED } from "../connections/refusals";
import { rows } from "../database/rows";
import type { TenantScope } from "../database/tenant-door";
import type { MatchedEntity } from "../entities/matched-record";
import { accepted, type Outcome, refused } from "../platform/outcome";

/** A record that a meeting makes writable. */
export interface Target {
  entity: MatchedEntity;
  id: number;
  /** True where it is the meeting's deal, a matched person or a company that the match shows; false for a mere candidate. */
  certain: boolean;
}

export interface MeetingTargets {
  meetingId: string;
  copyId: number;
  crmCompanyId: number;
  targets: Target[];
}

/** A record as a client names it; null where the id is none that this service gave for such a record. */
export type AskedTarget = { entity: MatchedEntity; copyId: number; id: number } | null;

export type TargetsRefusal = "MEETING_NOT_FOUND" | "NOT_CONNECTED" | "NEEDS_REAUTHORIZATION";

/**
 * What may be written to for a meeting (decision 0005). Until the transaction ends the meeting is not matched again and
 * the copy is not retired, so that the proof and a receipt made with it are of one moment.
 * @param meetingId a UUID; null: none of a meeting
 */
export async function holdTargets(
  scope: TenantScope,
  meetingId: string | null,
): Promise<Outcome<MeetingTargets, TargetsRefusal>> {
  if (!meetingId || !(await holdMeeting(scope, meetingId))) {
    return refused("MEETING_NOT_FOUND", "There is no such meeting. Record it first.", "meetingId");
  }
  const connection = await readConnection(scope);
  const copyId = connection?.copyId ?? null;
  const live = copyId === null ? null : await holdLiveCopy(scope, copyId);
  if (copyId === null || !live) return NOT_CONNECTED;
  if (connection?.state !== "CONNECTED") return NEEDS_REAUTHORIZATION;
  return accepted({ meetingId, copyId, ...live, targets: await matchedTargets(scope, copyId, meetingId) });
}

/** Whoever matches a meeting changes its row or locks it. */
async function holdMeeting({ tenantId, manager }: TenantScope, id: string): Promise<boolean> {
  const found = await rows(manager, "SELECT 1 FROM meeting WHERE tenant_id = $1 AND id = $2 FOR SHARE", [tenantId, id]);
  return found.length > 0;
}

const isCopied = (table: string) =>
  `EXISTS (SELECT 1 FROM ${table} t WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.crm_id = r.crm_id)`;

/** Matched to this meeting, and still in the copy. */
function matchedTargets({ tenantId, manager }: TenantScope, copyId: number, meetingId: string): Promise<Target[]> {
  return rows<Target>(
    manager,
    `WITH attending AS (
       SELECT person_id, organization_id FROM meeting_attendee WHERE tenant_id = $1 AND meeting_id = $3
     )
     SELECT r.entity, r.crm_id AS id, CASE r.entity
         WHEN 'DEAL' THEN EXISTS (SELECT 1 FROM meeting_match m
           WHERE m.tenant_id = $1 AND m.meeting_id = $3 AND m.copy_id = $2 AND m.deal_id = r.crm_id)
         WHEN 'PERSON' THEN EXISTS (SELECT 1 FROM attending a WHERE a.person_id = r.crm_id)
         ELSE EXISTS (SELECT 1 FROM attending a WHERE a.organization_id = r.crm_id) END AS certain
     FROM matched_record r
     WHERE r.tenant_id = $1 AND r.copy_id = $2 AND r.meeting_id = $3 AND CASE r.entity
         WHEN 'DEAL' THEN ${isCopied("deal")}
         WHEN 'PERSON' THEN ${isCopied("person")}
         ELSE ${isCopied("organization")} END
     ORDER BY r.entity, r.crm_id`,
    [tenantId, copyId, meetingId],
  );
}

export type ChoiceRefusal = "TARGET_NOT_MATCHED" | "NEEDS_CHOICE";

/** A foreign, unknown, deleted and unmatched record is answered alike. */
export function askedTarget(held: MeetingTargets, asked: AskedTarget): Outcome<Target, ChoiceRefusal> {
  const found = held.targets.find(
    ({ entity, id }) => asked?.copyId === held.copyId && entity === asked.entity && id === asked.id,
  );
  if (found) return accepted(found);
  const message =
    "The target is not matched to this meeting. Choose one of the meeting's deals, persons or organizations.";
  return refused("TARGET_NOT_MATCHED", message, "targetId");
}

/** The meeting's deal, else its only person, else its only organization. */
export function ownTarget({ targets }: MeetingTargets): Outcome<Target, ChoiceRefusal> {
  for (const entity of ["DEAL", "PERSON", "ORGANIZATION"] as const) {
    const [only, ...others] = targets.filter((target) => target.entity === entity && target.certain);
    if (only && others.length === 0) return accepted(only);
  }
  const message =
    targets.length > 0
      ? "The meeting has several records that could be meant. Say in targetId which deal, person or organization is."
      : "The meeting is matched to no record. Record it again with an attendee whom the CRM knows.";
  return refused("NEEDS_CHOICE", message, "targetId");
}
