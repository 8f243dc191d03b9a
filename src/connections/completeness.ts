import type { CrmFailure } from "../crm/errors";
import { type CopyScope, listOf, ms } from "../database/database";
import { MAIN_LISTS, SYNC_LISTS } from "../entities/sync-list";
import type { GapCode, GapSummary, SyncResource } from "../entities/sync-run";
import { DAY_MS } from "../platform/clock";

/** A gap is named for the failure of the request that left it. */
export const GAP_CODE_OF: Record<CrmFailure, GapCode> = {
  RATE_LIMITED: "RATE_LIMITED",
  BUDGET_LOW: "NOT_READ_YET",
  UNAVAILABLE: "CRM_UNAVAILABLE",
  UNAUTHORIZED: "CRM_REFUSED",
  REFUSED: "CRM_REFUSED",
  NOT_FOUND: "RECORD_NOT_FOUND",
  ACCOUNT_CLOSED: "CRM_REFUSED",
  UNREADABLE: "CRM_ANSWER_UNREADABLE",
};

const inWords = (resource: string) => `replace(lower(${resource}), '_', ' ')`;

/** A record that cannot be read is missing as well, and nobody knows to what it belongs: it touches all. */
const UNREADABLE = `
  SELECT r.resource, 'RECORDS_UNREADABLE', 'Some ' || ${inWords("r.resource")} || ' of the CRM could not be read; '
    || 'they are missing here, or as they were read before. Tell the operator of this service.', r.since
  FROM rejected_record r WHERE r.tenant_id = $1 AND r.copy_id = $2`;

/** Lists that were never read to their end; where that failed, its own gap says why. */
const NEVER_READ = `
  SELECT l.resource, 'NOT_READ_YET', 'The ' || ${inWords("l.resource")} || ' of the CRM are still being read for the '
    || 'first time; some are missing here.', c.created_at
  FROM synced_copy c CROSS JOIN unnest('{${SYNC_LISTS}}'::text[]) l (resource)
  WHERE c.tenant_id = $1 AND c.id = $2
    AND NOT EXISTS (SELECT 1 FROM read_lists s WHERE s.resource = l.resource)
    AND NOT EXISTS (SELECT 1 FROM gaps g WHERE g.resource = l.resource AND g.crm_id = 0)`;

/** A walk that is to remove what it did not show has not shown much of a list, and waits for a second one to show the same. */
const NOT_SHOWN = `
  SELECT p.resource, 'NOT_SHOWN', 'The CRM did not show many of the ' || ${inWords("p.resource")}
    || ' that are held here; they are kept until a second look shows the same.', p.first_walk_ended_at
  FROM sync_pass p WHERE p.tenant_id = $1 AND p.copy_id = $2 AND p.first_walk_ended_at IS NOT NULL`;

/** Deals whose participants nobody asked for yet: they are due. Those that were asked for in vain have a gap of their own, found by its index: both may be many. */
const unasked = (among: string) => `
  SELECT 'DEAL_PARTICIPANTS', 'NOT_READ_YET', 'Who takes part in some deals was not read yet. Each deal takes a '
    || 'request of the company''s budget for the day; those of meetings and open ones come first.',
    greatest(c.created_at, d.add_time)
  FROM deal d JOIN synced_copy c ON c.tenant_id = $1 AND c.id = d.copy_id
  WHERE d.tenant_id = $1 AND d.copy_id = $2 AND d.participants_due AND NOT d.participants_known AND ${among.replaceAll("?", "d.crm_id")}
    AND NOT EXISTS (SELECT 1 FROM data_gap g
      WHERE g.tenant_id = $1 AND g.copy_id = $2 AND g.resource = 'DEAL_PARTICIPANTS' AND g.crm_id = d.crm_id)`;

/** Of a list of the CRM up to when the copy has all of it, and when it was last read to its end. */
export type ListState = [resource: SyncResource, watermark: number | null, readAt: number | null];
/** SQL: of each list of the copy $2. */
export const LISTS = listOf(
  ...["l.resource", ms("l.watermark"), ms("l.read_at")],
  "sync_list l WHERE l.tenant_id = $1 AND l.copy_id = $2",
);

/** The oldest watermark of lists; null where one of them was never read to its end. */
export function oldestOf(states: readonly ListState[], lists: readonly SyncResource[]): number | null {
  const marks = states.flatMap(([resource, mark]) => (mark !== null && lists.includes(resource) ? [mark] : []));
  return marks.length === lists.length ? Math.min(...marks) : null;
}

/** How many deals were asked for their participants since $3. */
const ASKED = `
  SELECT sum(s.requests)::int FROM sync_run r
  JOIN sync_step s ON s.tenant_id = $1 AND s.run_id = r.id AND s.resource = 'DEAL_PARTICIPANTS'
  WHERE r.tenant_id = $1 AND r.copy_id = $2 AND r.queued_at > $3`;

/** One answer, as far as it lacks something that others do not. */
export interface GapsOfAnswer {
  /** SQL: common table expressions, among them `deals (crm_id)`, whose participants matter to it. */
  known: string;
  /** SQL: rows (resource, code, message, since) of what only it lacks, by those and by `read_lists`. */
  more: string;
  /** $4 and on in both. $1 is the tenant, $2 the copy. */
  parameters: readonly unknown[];
}

type Found = Omit<GapSummary, "since" | "expectedBy"> & { since: Date; asked: number | null };

/**
 * What a copy lacks now, by resource and reason: whole resources, and single deals' participants.
 * @param answer null: all that the copy lacks
 */
export async function readGaps(
  { tenantId, copyId, rows }: CopyScope,
  now: Date,
  answer: GapsOfAnswer | null = null,
): Promise<GapSummary[]> {
  const among = answer ? "? IN (SELECT crm_id FROM deals)" : "true";
  const found = await rows<Found>(
    `WITH ${answer ? `${answer.known}, ` : ""} read_lists AS MATERIALIZED (
       SELECT l.resource, l.watermark, l.read_at FROM sync_list l
       WHERE l.tenant_id = $1 AND l.copy_id = $2 AND l.watermark IS NOT NULL
     ), gaps AS MATERIALIZED (
       SELECT g.resource, g.crm_id, g.code, g.message, g.since FROM data_gap g
       WHERE g.tenant_id = $1 AND g.copy_id = $2 AND (g.crm_id = 0 OR g.resource = 'DEAL_PARTICIPANTS' AND ${among.replaceAll("?", "g.crm_id")})
     ), known (resource, code, message, since) AS (
       SELECT g.resource, g.code, g.message, g.since FROM gaps g
       UNION ALL ${UNREADABLE} UNION ALL ${NOT_SHOWN} UNION ALL ${NEVER_READ} UNION ALL ${unasked(among)}
       ${answer ? `UNION ALL ${answer.more}` : ""}
     )
     SELECT resource, code, count(*)::int AS count, min(since) AS since, min(message) AS message,
       CASE WHEN resource = 'DEAL_PARTICIPANTS' THEN (${ASKED}) END AS asked
     FROM known GROUP BY resource, code ORDER BY resource, code`,
    [tenantId, copyId, new Date(now.getTime() - DAY_MS), ...(answer?.parameters ?? [])],
    { resource: "text", code: "text", count: "number", since: "instant", message: "text", asked: "number" },
  );
  return found.map(({ asked, since, ...gap }) => ({
    ...gap,
    since: since.toISOString(),
    expectedBy: gap.code === "NOT_READ_YET" ? expectedBy(gap.count, asked, now) : null,
  }));
}

/** When so many deals will have been asked for, at the pace of the last day. */
function expectedBy(unread: number, askedInADay: number | null, now: Date): string | null {
  if (!askedInADay) return null;
  return new Date(now.getTime() + Math.ceil((unread / askedInADay) * DAY_MS)).toISOString();
}

/**
 * The moment up to which all that an answer shows is known to be complete, by the CRM's clock: the oldest watermark of
 * its lists, of all where it is a briefing. null while one of the main ones was never read to its end.
 */
export async function readAsOf(
  { tenantId, copyId, rows }: CopyScope,
  main: readonly string[] = MAIN_LISTS,
  named: readonly string[] = SYNC_LISTS,
): Promise<Date | null> {
  const [lists] = await rows<{ as_of: Date | null }>(
    `SELECT CASE WHEN count(watermark) FILTER (WHERE resource = ANY ($3)) = cardinality($3::text[]) THEN min(watermark) END AS as_of
     FROM sync_list WHERE tenant_id = $1 AND copy_id = $2 AND resource = ANY ($4)`,
    [tenantId, copyId, main, named],
    { as_of: "instant" },
  );
  return lists?.as_of ?? null;
}

/** Deals of one owner, or of one pipeline; null: of all that are not known. */
export interface SeenDeals {
  crmId: number | null;
  deals: number;
  openDeals: number;
}

/** What the copy holds, which is what the user who authorized is shown. */
export interface Visibility {
  asOf: Date | null;
  deals: number;
  persons: number;
  organizations: number;
  byOwner: SeenDeals[];
  byPipeline: SeenDeals[];
  /** Active users who own nothing of it. */
  unseenIds: number[];
}

/** Without one of them it would say too little. */
const COUNTED = ["USERS", "ORGANIZATIONS", "PERSONS", "DEALS"];
/** Rows of a table for people; a company has some hundred users. */
const MOST_ROWS = 500;

type Counted = SeenDeals & { kind: "OWNER" | "PIPELINE" | "PERSONS" | "ORGANIZATIONS" | "UNSEEN" };

/** Each table is gone through once. */
const COUNT = `
  WITH deals AS MATERIALIZED (
    SELECT d.owner_id, d.pipeline_id, count(*) AS n, count(*) FILTER (WHERE d.status = 'open') AS open FROM deal d
    WHERE d.tenant_id = $1 AND d.copy_id = $2 GROUP BY d.owner_id, d.pipeline_id
  ), persons AS MATERIALIZED (
    SELECT p.owner_id, count(*) AS n FROM person p WHERE p.tenant_id = $1 AND p.copy_id = $2 GROUP BY p.owner_id
  ), organizations AS MATERIALIZED (
    SELECT o.owner_id, count(*) AS n FROM organization o WHERE o.tenant_id = $1 AND o.copy_id = $2 GROUP BY o.owner_id
  ), owners AS (
    SELECT owner_id FROM deals UNION SELECT owner_id FROM persons UNION SELECT owner_id FROM organizations
  )
  SELECT 'OWNER' AS kind, u.crm_id AS "crmId", sum(deals.n)::int AS deals, sum(deals.open)::int AS "openDeals"
  FROM deals LEFT JOIN crm_user u ON u.tenant_id = $1 AND u.copy_id = $2 AND u.crm_id = deals.owner_id GROUP BY u.crm_id
  UNION ALL
  SELECT 'PIPELINE', l.crm_id, sum(deals.n)::int, sum(deals.open)::int
  FROM deals LEFT JOIN pipeline l ON l.tenant_id = $1 AND l.copy_id = $2 AND l.crm_id = deals.pipeline_id GROUP BY l.crm_id
  UNION ALL SELECT 'PERSONS', NULL, coalesce(sum(n), 0)::int, 0 FROM persons
  UNION ALL SELECT 'ORGANIZATIONS', NULL, coalesce(sum(n), 0)::int, 0 FROM organizations
  UNION ALL
  SELECT 'UNSEEN', u.crm_id, 0, 0 FROM crm_user u WHERE u.tenant_id = $1 AND u.copy_id = $2 AND u.active
    AND NOT EXISTS (SELECT 1 FROM owners WHERE owners.owner_id = u.crm_id)
  ORDER BY kind, deals DESC, "crmId"`;

/** What the permissions of the user who authorized show (decision 0084); counted when it is asked for, at no call to the CRM. */
export async function readVisibility(copy: CopyScope): Promise<Visibility> {
  const { tenantId, copyId, rows } = copy;
  const shape = { kind: "text", crmId: "number", deals: "number", openDeals: "number" } as const;
  const [counted, asOf] = await Promise.all([
    rows<Counted>(COUNT, [tenantId, copyId], shape),
    readAsOf(copy, COUNTED, [...COUNTED, "PIPELINES"]),
  ]);
  const of = (kind: Counted["kind"]) => counted.filter((row) => row.kind === kind);
  const sum = (kind: Counted["kind"]) => of(kind).reduce((total, { deals }) => total + deals, 0);
  return {
    asOf,
    deals: sum("OWNER"),
    persons: sum("PERSONS"),
    organizations: sum("ORGANIZATIONS"),
    byOwner: of("OWNER").slice(0, MOST_ROWS),
    byPipeline: of("PIPELINE").slice(0, MOST_ROWS),
    unseenIds: of("UNSEEN")
      .flatMap(({ crmId }) => crmId ?? [])
      .slice(0, MOST_ROWS),
  };
}
