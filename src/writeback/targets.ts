import { NEEDS_REAUTHORIZATION, NOT_CONNECTED, readConnection } from "../connections/connection";
import { holdCopyToJudge, holdLiveCopy } from "../connections/copies";
import type { CrmCustomFields } from "../crm/parsing/fields";
import type { TenantScope } from "../database/database";
import { jsonRows } from "../database/upsert";
import type { MatchedEntity } from "../entities/meeting";
import { accepted, type Outcome, refused } from "../platform/errors";

/** A record that a meeting makes writable. */
export interface Target {
  entity: MatchedEntity;
  id: number;
}

/** What the match of a meeting says of targets. */
export interface TargetFacts {
  copyId: number;
  /** The meeting's deal, the persons that attendees certainly are, and their companies. */
  certain: readonly Target[];
  /** Companies that only a domain tells of: targets where a client names them. */
  byDomain: readonly Target[];
  /** Whether deals could be meant: the match has candidates. */
  hasDeals: boolean;
  /** Whether somebody chose a deal, which may be gone from the copy. */
  hasChoice: boolean;
  /** Whether persons or deals were still being read for the first time when the meeting was matched: others may come to be meant. */
  mayChange: boolean;
  /** Whether organizations are, and one of a certain person's is not there yet. */
  lacksCompany: boolean;
  /** Whether somebody whom an ambiguous attendee could be takes part in a deal: nobody knows whether that one is meant. */
  ambiguousHaveDeals: boolean;
}

export interface MeetingTargets extends TargetFacts {
  meetingId: string;
  crmCompanyId: number;
}

/** A record as a client names it; null where the id is none that this service gave for such a record. */
export type AskedTarget = { entity: MatchedEntity; copyId: number; id: number } | null;

export type UncertainRefusal = "TARGET_NOT_MATCHED" | "NEEDS_CHOICE";

/**
 * Where a write goes (decision 0005): only where the match is certain, because it cannot be taken back.
 * @param entity of a field's value; null: a note, which goes on any
 * @param named absent: the client names none
 */
export function targetOf(
  facts: TargetFacts,
  entity: MatchedEntity | null,
  named?: AskedTarget,
): Outcome<Target, UncertainRefusal> {
  if (named !== undefined) return namedTarget(facts, entity, named);
  const of = (kind: MatchedEntity) => facts.certain.filter((target) => target.entity === kind);
  const isInQuestion = facts.hasDeals || facts.hasChoice;
  const isOfDeal = entity === "DEAL" || (entity === null && (isInQuestion || of("DEAL").length > 0));
  const kind = isOfDeal ? "DEAL" : (entity ?? "PERSON");
  const [only, ...others] = of(kind);
  if (!only && isOfDeal && facts.hasDeals) return DEAL_NOT_SETTLED;
  const isOfCompany = kind === "ORGANIZATION" && facts.lacksCompany;
  if ((facts.mayChange || isOfCompany) && !(only && isOfDeal && facts.hasChoice)) return NOT_READ;
  if (!only && isOfDeal && facts.hasChoice) return CHOICE_NOT_THERE;
  if (!only) return nothingCertain(kind);
  if (others.length > 0) return severalCertain(kind);
  return entity === null && kind === "PERSON" && facts.ambiguousHaveDeals ? DEAL_OF_WHOM : accepted(only);
}

/** A candidate, and a foreign, unknown, deleted or unmatched record, are answered alike. */
function namedTarget(facts: TargetFacts, entity: MatchedEntity | null, named: AskedTarget) {
  const found = [...facts.certain, ...facts.byDomain].find(
    (target) => target.entity === named?.entity && target.id === named.id && facts.copyId === named.copyId,
  );
  return found && (entity === null || found.entity === entity) ? accepted(found) : NOT_CERTAIN;
}

const NOT_CERTAIN = refused(
  "TARGET_NOT_MATCHED",
  "The target is not certainly matched to this meeting. Name the meeting's deal, or one of match.persons or match.organizations. Another deal is first to be chosen with chooseDeal.",
  "targetId",
);
const DEAL_NOT_SETTLED = refused(
  "NEEDS_CHOICE",
  "Which deal the meeting is about is not settled. Choose it with chooseDeal; for a note, targetId may name a person or organization instead.",
  "targetId",
);
const NOT_READ = refused(
  "NEEDS_CHOICE",
  "The CRM is still being read for the first time, and what else could be meant is not known yet. Say in targetId where to write, or send it again once the CRM is read.",
  "targetId",
);
const CHOICE_NOT_THERE = refused(
  "NEEDS_CHOICE",
  "The deal that a user chose is not in the connected CRM, and no other could be meant. Take the choice back with unchooseDeal; for a note, targetId may name a person or organization instead.",
  "targetId",
);
const DEAL_OF_WHOM = refused(
  "NEEDS_CHOICE",
  "For one attendee several persons of the CRM could be meant, and they have deals. Say in targetId where to write.",
  "targetId",
);
const severalCertain = (kind: MatchedEntity) =>
  refused("NEEDS_CHOICE", `The meeting has more than one ${kind.toLowerCase()}. Say in targetId which.`, "targetId");
const nothingCertain = (kind: MatchedEntity) =>
  refused(
    "TARGET_NOT_MATCHED",
    `No ${kind.toLowerCase()} is certainly matched to the meeting. An organization that is known by its domain has to be named in targetId.`,
    "targetId",
  );

export type TargetsRefusal = "MEETING_NOT_FOUND" | "NOT_CONNECTED" | "NEEDS_REAUTHORIZATION";

/**
 * What may be written to for a meeting. Until the transaction ends the meeting is not matched again and the copy is not
 * retired, so that the proof and a receipt made with it are of one moment.
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
  return accepted({ meetingId, ...live, ...(await readFacts(scope, copyId, meetingId)) });
}

/** Whoever matches a meeting changes its row or locks it. */
async function holdMeeting({ tenantId, rows }: TenantScope, id: string): Promise<boolean> {
  const found = await rows("SELECT 1 FROM meeting WHERE tenant_id = $1 AND id = $2 FOR SHARE", [tenantId, id]);
  return found.length > 0;
}

async function readFacts(scope: TenantScope, copyId: number, meetingId: string): Promise<TargetFacts> {
  const { tenantId, rows } = scope;
  const parameters = [tenantId, copyId, meetingId];
  const found = await rows<Target & { isCertain: boolean }>(MATCHED_TARGETS, parameters, {
    ...{ entity: "text", id: "number", isCertain: "flag" },
  });
  const [deals] = await rows<Omit<TargetFacts, "copyId" | "certain" | "byDomain">>(DEALS_IN_QUESTION, parameters, {
    ...{ hasDeals: "flag", hasChoice: "flag", mayChange: "flag", lacksCompany: "flag", ambiguousHaveDeals: "flag" },
  });
  if (!deals) throw new Error("a statement that always gives a row gave none");
  const targets = (certain: boolean) =>
    found.filter(({ isCertain }) => isCertain === certain).map(({ entity, id }): Target => ({ entity, id }));
  return { copyId, certain: targets(true), byDomain: targets(false), ...deals };
}

const isCopied = (table: string, id: string) =>
  `EXISTS (SELECT 1 FROM ${table} t WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.crm_id = ${id})`;

/** Matched to this meeting and still in the copy. A company is certain through a person who is there as well. */
const MATCHED_TARGETS = `
  WITH attending AS (
    SELECT person_id, organization_id, organization_rule FROM meeting_attendee WHERE tenant_id = $1 AND meeting_id = $3
  ), readable AS (
    SELECT entity, crm_id FROM matched_record WHERE tenant_id = $1 AND copy_id = $2 AND meeting_id = $3
  )
  SELECT r.entity, r.crm_id AS id, true AS "isCertain" FROM readable r WHERE CASE r.entity
    WHEN 'DEAL' THEN ${isCopied("deal", "r.crm_id")} AND EXISTS (SELECT 1 FROM meeting_match m
      WHERE m.tenant_id = $1 AND m.meeting_id = $3 AND m.copy_id = $2 AND m.status = 'MATCHED' AND m.deal_id = r.crm_id)
    WHEN 'PERSON' THEN ${isCopied("person", "r.crm_id")} AND EXISTS (
      SELECT 1 FROM attending a WHERE a.person_id = r.crm_id)
    ELSE ${isCopied("organization", "r.crm_id")} AND EXISTS (
      SELECT 1 FROM attending a WHERE a.organization_id = r.crm_id AND a.organization_rule = 'ORGANIZATION_OF_PERSON'
        AND ${isCopied("person", "a.person_id")}) END
  UNION ALL
  SELECT r.entity, r.crm_id, false FROM readable r
  WHERE r.entity = 'ORGANIZATION' AND ${isCopied("organization", "r.crm_id")} AND EXISTS (
    SELECT 1 FROM attending a WHERE a.organization_id = r.crm_id AND a.organization_rule <> 'ORGANIZATION_OF_PERSON')
  ORDER BY 3 DESC, 1, 2`;

const DEALS_IN_QUESTION = `
  SELECT coalesce(m.candidates <> '[]', false) AS "hasDeals", m.chosen_deal_id IS NOT NULL AS "hasChoice",
    coalesce(m.may_change, true) AS "mayChange", NOT EXISTS (SELECT 1 FROM sync_list l
      WHERE l.tenant_id = $1 AND l.copy_id = $2 AND l.resource = 'ORGANIZATIONS' AND l.watermark IS NOT NULL) AND EXISTS (
      SELECT 1 FROM meeting_attendee a WHERE a.tenant_id = $1 AND a.meeting_id = $3
        AND a.organization_rule = 'ORGANIZATION_OF_PERSON' AND NOT ${isCopied("organization", "a.organization_id")}) AS "lacksCompany", EXISTS (
    SELECT 1 FROM meeting_attendee a CROSS JOIN unnest(a.candidate_ids) AS could_be (id)
    WHERE a.tenant_id = $1 AND a.meeting_id = $3 AND a.match_status = 'AMBIGUOUS' AND (
      EXISTS (SELECT 1 FROM deal d WHERE d.tenant_id = $1 AND d.copy_id = $2 AND d.person_id = could_be.id)
      OR EXISTS (SELECT 1 FROM deal_participant p WHERE p.tenant_id = $1 AND p.copy_id = $2 AND p.person_id = could_be.id))
  ) AS "ambiguousHaveDeals"
  FROM meeting one LEFT JOIN meeting_match m ON m.tenant_id = $1 AND m.meeting_id = one.id AND m.copy_id = $2
  WHERE one.tenant_id = $1 AND one.id = $3`;

const TABLES: Record<MatchedEntity, string> = { DEAL: "deal", PERSON: "person", ORGANIZATION: "organization" };

/**
 * The tenant's readers see at once what the CRM showed after a write. The newest state stays: a page of a sync that was
 * read before the write and comes after it finds a newer row.
 */
export async function copyFields(
  scope: TenantScope,
  copyId: number,
  entity: MatchedEntity,
  { id, updateTime, customFields }: CrmCustomFields,
): Promise<void> {
  if (!(await holdCopyToJudge(scope, copyId))) return;
  const { tenantId, rows } = scope;
  const copied = await rows(
    `UPDATE ${TABLES[entity]} SET update_time = coalesce($5, update_time),
       custom_fields = (custom_fields || ($4::jsonb -> 0)) - ARRAY (SELECT key FROM jsonb_each($4::jsonb -> 0) WHERE value = 'null')
     WHERE tenant_id = $1 AND copy_id = $2 AND crm_id = $3
       AND (update_time IS NULL OR $5::timestamptz IS NULL OR update_time <= $5)
     RETURNING 1 AS copied`,
    [tenantId, copyId, id, jsonRows([customFields]), updateTime],
  );
  const isMoved = entity === "DEAL" && updateTime && copied.length > 0;
  if (isMoved) await rows(MOVE_IN_LISTS, [tenantId, copyId, id, updateTime]);
}

/** Lists of deals sort by it. No verdict hangs on it. */
const MOVE_IN_LISTS = "UPDATE deal_silence SET changed_at = $4 WHERE tenant_id = $1 AND copy_id = $2 AND deal_id = $3";
