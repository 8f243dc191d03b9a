import { hash } from "node:crypto";
import { liveCopyId } from "../connections/connection";
import { holdPresentCopy } from "../connections/copies";
import { MEETING_MATCHED, notifyOf } from "../database/between-processes";
import type { CopyScope, TenantScope } from "../database/database";
import { jsonRows } from "../database/upsert";
import { type LastDeal, MeetingRow } from "../entities/meeting";
import { normalizeAddress } from "../platform/email-address";
import type { Logger } from "../platform/logger";
import { inSlice } from "../platform/work";
import { readCopyFacts, readStored, type StoredMatch } from "./copy-facts";
import type { MeetingFact } from "./matching/facts";
import { cancelled, type Match, match, matchUnconnected } from "./matching/match";
import { type AttendeeInput, readAttendees, replaceReadable } from "./meeting-rows";
import { judgeMatched } from "./quiet/stored-silence";

/** A meeting as it is matched: itself and who attends. */
export interface MatchableMeeting {
  row: Pick<MeetingRow, "id" | "startsAt" | "endsAt" | "ownerEmail" | "cancelledAt">;
  attendees: readonly AttendeeInput[];
}

export type LockedMeeting = MatchableMeeting & { row: MeetingRow };

/** Takes a meeting as it was recorded, until the transaction ends. null: this tenant has none with this id. */
export async function lockMeeting(scope: TenantScope, id: string): Promise<LockedMeeting | null> {
  const lock = { mode: "pessimistic_write" } as const;
  const row = await scope.typed((orm) => orm.findOne(MeetingRow, { where: { tenantId: scope.tenantId, id }, lock }));
  return row && { row, attendees: await readAttendees(scope, [id]) };
}

/** The same for several, without those that somebody else has at this moment: who waits for several may wait for each other. */
export async function lockMeetings(scope: TenantScope, ids: readonly string[]): Promise<MatchableMeeting[]> {
  const sql = "SELECT * FROM meeting WHERE tenant_id = $1 AND id = ANY ($2) FOR UPDATE SKIP LOCKED";
  const found = await scope.entities(MeetingRow, sql, [scope.tenantId, ids]);
  const attendees = await readAttendees(scope, ids);
  return found.map((row) => ({ row, attendees: attendees.filter(({ meetingId }) => meetingId === row.id) }));
}

/**
 * Why meetings are matched. UNCHOSEN: nothing is kept of the match before. FIRST: against a copy that is new, of which it is told
 * as a whole, and not of each that says something else now.
 */
export type Occasion = "RECORDED" | "CANCELLED" | "CHOSEN" | "UNCHOSEN" | "SYNCED" | "FIRST";

/**
 * Matches meetings against the present copy and stores the results with what they make readable, in as many statements for
 * one as for a hundred. The caller's transaction holds the meetings' rows, so that two matches of one follow each other.
 */
export async function matchMeetings(
  scope: TenantScope,
  meetings: readonly MatchableMeeting[],
  now: Date,
  occasion: Occasion,
  logger: Logger,
): Promise<void> {
  const copyId = await holdPresentCopy(scope);
  const found = await findMatches(scope, copyId, meetings, occasion);
  await storeAttendees(scope, found);
  await storeMatches(scope, found, now);
  if (copyId !== null) {
    const copy = { ...scope, copyId };
    const readable = found.flatMap((one) => one.match.readable.map((record) => ({ meetingId: idOf(one), ...record })));
    const { left, matchedFirst } = await replaceReadable(copy, found.map(idOf), readable);
    // A verdict hangs on what a meeting is about, and not on what else it could be about.
    const changed = [...matchedFirst, ...found.flatMap(aboutOf)];
    await judgeMatched(copy, { left, changed }, now, occasion === "FIRST" ? "AS_A_WHOLE" : "EACH");
  }
  if (occasion === "FIRST") return;
  await notifyOf(scope, MEETING_MATCHED, found.filter(isChanged).map(idOf));
  const moved = found.flatMap(({ meeting, was: { dealId: was = null } = {}, match: { deal } }) =>
    was === deal.dealId ? [] : [{ meetingId: meeting.row.id, was, became: deal.dealId, rule: deal.rule }],
  );
  const line = { tenantId: scope.tenantId, occasion };
  for (const one of moved) scope.afterCommit(() => logger.info({ ...line, ...one }, "a meeting has another deal"));
}

/** The meetings whose match would now say something else than it does. */
export async function findOutdated(
  scope: TenantScope,
  meetings: readonly MatchableMeeting[],
): Promise<MatchableMeeting[]> {
  const found = await findMatches(scope, await liveCopyId(scope), meetings, "SYNCED");
  return found.filter(isChanged).map(({ meeting }) => meeting);
}

/** Meetings up to `until` that know a record behind `after` which the copy has no more: a thousand records are looked for at once. */
export async function* findBereft({ tenantId, copyId, rows }: CopyScope, until: Date, after = { entity: "", id: 0 }) {
  for (let last: typeof after | undefined = after; last; ) {
    const known: Known[] = await rows<Known>(BEREFT, [tenantId, copyId, until, last.entity, last.id], KNOWN);
    last = known.at(-1);
    yield { ids: [...new Set(known.flatMap(({ meetingIds }) => meetingIds))], last };
  }
}

type Known = { entity: string; id: number; meetingIds: string[] };
const KNOWN = { entity: "text", id: "number", meetingIds: "json" } as const;
const isGone = (table: string) =>
  `NOT EXISTS (SELECT 1 FROM ${table} t WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.crm_id = r.crm_id OFFSET 0)`;
const BEREFT = `
  SELECT r.entity, r.crm_id AS id, CASE WHEN CASE r.entity WHEN 'DEAL' THEN ${isGone("deal")} WHEN 'PERSON' THEN ${isGone("person")} END
    THEN ARRAY (SELECT m.id FROM matched_record x JOIN meeting m ON m.tenant_id = $1 AND m.id = x.meeting_id
      WHERE x.tenant_id = $1 AND x.copy_id = $2 AND x.entity = r.entity AND x.crm_id = r.crm_id AND m.starts_at <= $3) ELSE '{}' END AS "meetingIds"
  FROM (SELECT DISTINCT entity, crm_id FROM matched_record WHERE tenant_id = $1 AND copy_id = $2
    AND (entity, crm_id) > ($4::text, $5::bigint) ORDER BY entity, crm_id LIMIT 1000) r ORDER BY r.entity, r.crm_id`;

interface FoundMatch {
  meeting: MatchableMeeting;
  copyId: number | null;
  match: Match;
  fingerprint: string;
  was: StoredMatch | undefined;
  /** What it was about before; null where a person says that the rules decide. */
  before: LastDeal | null;
  /** It is cancelled, or its deal may not have been read yet, or is one that is kept: away, or in doubt. */
  isUnknown: boolean;
}

const isChanged = ({ fingerprint, was }: FoundMatch) => fingerprint !== was?.fingerprint;
const idOf = ({ meeting }: FoundMatch) => meeting.row.id;
/** The deal that counted it as contact until now, and that which does now. */
const aboutOf = ({ was, match: { deal } }: FoundMatch) => [was?.dealId, deal.dealId].filter((dealId) => dealId != null);

/** What an attendee, a person or a deal weighs, of which a meeting is compared with all that were read together. */
const WEIGHT = 10;

/** In the order of `meetings`, with a number of statements that does not depend on theirs. */
async function findMatches(
  scope: TenantScope,
  copyId: number | null,
  meetings: readonly MatchableMeeting[],
  occasion: Occasion,
): Promise<FoundMatch[]> {
  const ids = meetings.map(({ row }) => row.id);
  const stored = await readStored(scope, copyId, ids);
  const each = meetings.map((meeting) => ({ meeting, fact: factOf(meeting), was: stored.get(meeting.row.id) }));
  const [facts, keptIds] = [each.map(({ fact }) => fact), each.flatMap(({ was }) => was?.kept?.dealId ?? [])];
  const copy = copyId === null ? null : await readCopyFacts({ ...scope, copyId }, facts, keptIds);
  const isFree = occasion === "UNCHOSEN";
  const found = each.map(({ meeting, fact, was }) => {
    const weight = WEIGHT * (fact.attendees.length + (copy ? copy.persons.length + copy.deals.length : 0));
    return inSlice(weight, (): FoundMatch => {
      const kept = isFree ? null : (was?.kept ?? null);
      const held = copy ? match(fact, copy, kept) : matchUnconnected(fact);
      const found = meeting.row.cancelledAt === null ? held : cancelled(held);
      const before = isFree ? null : (was?.lastDeal ?? null);
      const isHeld = kept !== null && !held.dropsChoice && (kept.isThere || kept.written === null);
      const isUnknown = meeting.row.cancelledAt !== null || copy === null || copy.unread.length > 0 || isHeld;
      const fingerprint = fingerprintOf(meeting.row, copyId, found);
      return { meeting, copyId, match: found, fingerprint, was, before, isUnknown };
    });
  });
  return Promise.all(found);
}

function factOf({ row, attendees }: MatchableMeeting): MeetingFact {
  return {
    startsAt: row.startsAt,
    ownerAddress: normalizeAddress(row.ownerEmail),
    attendees: attendees.map(({ email }, position) => ({ position, address: normalizeAddress(email) })),
  };
}

/** With when it begins and ends: whoever shows a meeting, or what counts from its end, is told where it was moved. */
const fingerprintOf = (
  { startsAt, endsAt }: MatchableMeeting["row"],
  copyId: number | null,
  { attendees, deal, readable, keptFor }: Match,
) => hash("sha256", JSON.stringify([startsAt, endsAt, copyId, attendees, deal, readable, keptFor]), "base64url");

async function storeAttendees({ tenantId, rows }: TenantScope, found: readonly FoundMatch[]): Promise<void> {
  const stored = found.flatMap(({ meeting, match: { attendees } }) =>
    attendees.map((match, index) => ({ ...meeting.attendees[index], meetingId: meeting.row.id, ...match })),
  );
  const ids = found.map(idOf);
  await rows("DELETE FROM meeting_attendee WHERE tenant_id = $1 AND meeting_id = ANY ($2)", [tenantId, ids]);
  if (stored.length > 0) await rows(STORE_ATTENDEES, [tenantId, jsonRows(stored)]);
}

/** One parameter for all: to build a statement with fifteen for each of 500 attendees held the event loop. */
const STORE_ATTENDEES = `
  INSERT INTO meeting_attendee (tenant_id, meeting_id, position, email, name, side, match_status, match_rule, match_reason, person_id, candidate_ids,
    organization_status, organization_id, organization_rule, organization_reason)
  SELECT $1, r."meetingId", r.position, r.email, r.name, r.side, r.status, r.rule, r.reason, r."personId", r."candidateIds", r."organizationStatus", r."organizationId", r."organizationRule", r."organizationReason"
  FROM jsonb_to_recordset($2::jsonb) AS r ("meetingId" uuid, position integer, email text, name text, side text, status text, rule text, reason text,
    "personId" bigint, "candidateIds" bigint[], "organizationStatus" text, "organizationId" bigint, "organizationRule" text, "organizationReason" text)
  ON CONFLICT DO NOTHING`;

async function storeMatches({ tenantId, rows }: TenantScope, found: readonly FoundMatch[], now: Date): Promise<void> {
  const stored = found.map((one) => ({
    meetingId: idOf(one),
    startsAt: one.meeting.row.startsAt,
    copyId: one.copyId,
    fingerprint: one.fingerprint,
    lastDeal: lastDealOf(one, now),
    ...one.match.deal,
  }));
  await rows(STORE_MATCHES, [tenantId, jsonRows(stored), now]);
  const dropped = found.filter(({ match: { dropsChoice } }) => dropsChoice).map(idOf);
  if (dropped.length > 0) await rows(DROP_CHOICES, [tenantId, dropped]);
}

/** Without a deal it is the one before, where none can be known: what was written holds it when one can. */
function lastDealOf({ before, isUnknown, match: { deal, keptFor } }: FoundMatch, now: Date): LastDeal | null {
  const { dealId, rule, reason } = deal;
  if (dealId === null) return isUnknown ? before : null;
  return { dealId, rule, reason, since: before?.dealId === dealId ? before.since : now.toISOString(), people: keptFor };
}

const STORE_MATCHES = `
  INSERT INTO meeting_match (tenant_id, meeting_id, copy_id, starts_at, status, rule, reason, may_change, deal_id, candidates, fingerprint, last_deal, matched_at)
  SELECT $1, r."meetingId", r."copyId", r."startsAt", r.status, r.rule, r.reason, r."mayChange", r."dealId", r.candidates, r.fingerprint, r."lastDeal", $3
  FROM jsonb_to_recordset($2::jsonb) AS r ("meetingId" uuid, "copyId" bigint, "startsAt" timestamptz, status text, rule text, reason text,
    "mayChange" boolean, "dealId" bigint, candidates jsonb, fingerprint text, "lastDeal" jsonb)
  ON CONFLICT (tenant_id, meeting_id) DO UPDATE SET copy_id = EXCLUDED.copy_id, starts_at = EXCLUDED.starts_at, status = EXCLUDED.status, rule = EXCLUDED.rule, reason = EXCLUDED.reason,
    may_change = EXCLUDED.may_change, deal_id = EXCLUDED.deal_id, candidates = EXCLUDED.candidates, fingerprint = EXCLUDED.fingerprint, last_deal = EXCLUDED.last_deal, matched_at = EXCLUDED.matched_at`;

export const DROP_CHOICES = `
  UPDATE meeting_match SET chosen_deal_id = NULL, chosen_company_id = NULL, chosen_by = NULL, chosen_at = NULL WHERE tenant_id = $1 AND meeting_id = ANY ($2)`;
