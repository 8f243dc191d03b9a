import { randomUUID } from "node:crypto";
import { Any, LessThanOrEqual } from "typeorm";
import { notify, PROGRESS_CHANGED } from "../database/between-processes";
import type { CopyScope, Database, TenantScope } from "../database/database";
import type { JobPlace } from "../database/jobs";
import { MAIN_LISTS, SyncListRow, SyncPassRow } from "../entities/sync-list";
import { SYNC_RESOURCES, type SyncKind, type SyncResource, SyncRunRow } from "../entities/sync-run";
import { isRemovable, LISTS, type ListResource } from "./lists";
import { askWhole, makeLists } from "./passes";
import { type Lists, REFRESH_AFTER_MS, REFRESH_BEFORE_MS, SLOW, SLOW_MS } from "./plan";
import { enqueueSync } from "./runs";

/** What is read anew before a meeting; its records are asked for by their ids besides. */
export const MEETING_LISTS = ["ACTIVITIES", "NOTES"] as const;
/** One day's meetings of a busy company may begin at the same minute; the next turn takes what is left. */
const MEETINGS_A_TURN = 20;
/** Found in one look across tenants; the next one, ten seconds later, finds those that are left. */
const TENANTS_A_LOOK = 200;

/** SQL: the meetings whose time to be brought up to date is now, from $1 to $2. What matches no record has nothing to read. */
const IS_NEAR = "m.refreshed_at IS NULL AND m.starts_at > $1 AND m.starts_at <= $2";
const isReadable = (copyId: string) => `r.tenant_id = m.tenant_id AND r.copy_id = ${copyId} AND r.meeting_id = m.id`;
const isSoon = (copyId: string) => `${IS_NEAR} AND EXISTS (SELECT 1 FROM matched_record r WHERE ${isReadable(copyId)})`;

/** The parameters of `isSoon`. */
export const soonAt = (now: Date): [after: Date, until: Date] => [
  new Date(now.getTime() - REFRESH_AFTER_MS),
  new Date(now.getTime() + REFRESH_BEFORE_MS),
];

/**
 * SQL: tenants with such a meeting, of whom no run is open nor has ended since $3; one behind $2 is of a wrong clock. Each by an
 * index of its own: by one condition all runs that are kept were gone through for each meeting, and by an EXISTS half of what all
 * meetings of the tenant made readable.
 */
export const TENANTS_WITH_MEETINGS_SOON = `
  WITH soon AS MATERIALIZED (
    SELECT m.tenant_id FROM meeting m JOIN connection c ON c.tenant_id = m.tenant_id JOIN matched_record r ON ${isReadable("c.copy_id")}
    WHERE c.state = 'CONNECTED' AND ${IS_NEAR}
      AND NOT EXISTS (SELECT 1 FROM sync_run o WHERE o.tenant_id = m.tenant_id AND o.state IN ('QUEUED', 'RUNNING'))
      AND NOT EXISTS (SELECT 1 FROM sync_run e WHERE e.tenant_id = m.tenant_id AND e.finished_at BETWEEN $3 AND $2)
  )
  SELECT DISTINCT tenant_id AS "tenantId" FROM soon LIMIT ${TENANTS_A_LOOK}`;

/** The recorded meetings that a run brings up to date now, the first to begin first. */
export async function meetingsToRefresh({ tenantId, copyId, rows }: CopyScope, now: Date): Promise<string[]> {
  const found = await rows<{ id: string }>(
    `SELECT m.id FROM meeting m WHERE m.tenant_id = $3 AND ${isSoon("$4")} ORDER BY m.starts_at, m.id LIMIT ${MEETINGS_A_TURN}`,
    [...soonAt(now), tenantId, copyId],
    { id: "text" },
  );
  return found.map(({ id }) => id);
}

/** It is brought up to date, or cannot be: once a meeting and start. One that begins at another time by now is not meant. */
export async function markRefreshed({ tenantId, rows }: CopyScope, meetingId: string, now: Date): Promise<void> {
  await rows(
    `UPDATE meeting SET refreshed_at = $3
     WHERE tenant_id = $1 AND id = $2 AND starts_at > $4 AND starts_at <= $5`,
    [tenantId, meetingId, now, ...soonAt(now)],
  );
}

/** When the next meeting begins that is still to be brought up to date; null: none is recorded. */
export async function nextMeetingAt({ tenantId, copyId, rows }: CopyScope, now: Date): Promise<Date | null> {
  const [next] = await rows<{ at: Date | null }>(
    `SELECT m.starts_at AS at FROM meeting m
     WHERE m.tenant_id = $3 AND ${isSoon("$4")} ORDER BY m.starts_at LIMIT 1`,
    [soonAt(now)[0], "infinity", tenantId, copyId],
    { at: "instant" },
  );
  return next?.at ?? null;
}

export function openRun({ tenantId, typed }: TenantScope): Promise<SyncRunRow | null> {
  return typed((orm) => orm.findOneBy(SyncRunRow, { tenantId, state: Any(["QUEUED", "RUNNING"]) }));
}

/** When the last run ended, or was made where it has not; null: none was made yet. What a clock far ahead has noted is not believed. */
export async function lastRunAt({ tenantId, copyId, typed }: CopyScope, now: Date): Promise<Date | null> {
  const where = { tenantId, copyId, queuedAt: LessThanOrEqual(now) };
  const last = await typed((orm) => orm.findOne(SyncRunRow, { where, order: { queuedAt: "DESC" } }));
  return last && (last.finishedAt && last.finishedAt <= now ? last.finishedAt : last.queuedAt);
}

function readLists({ tenantId, copyId, typed }: CopyScope): Promise<SyncListRow[]> {
  return typed((orm) => orm.findBy(SyncListRow, { tenantId, copyId }));
}

/** How far each list has been read, and whether a pass through it is under way. */
export async function readPaces(copy: CopyScope): Promise<Lists> {
  const { tenantId, copyId, typed } = copy;
  const passes = await typed((orm) => orm.findBy(SyncPassRow, { tenantId, copyId }));
  const lists = await readLists(copy);
  return new Map(lists.map((list) => [list.resource, { ...list, ...standOf(list, passes) }]));
}

/** Whether a way through a list is under way, and rests: what changed, where the CRM tells it, else the whole list is how it is read. */
function standOf({ resource, watermark }: SyncListRow, passes: readonly SyncPassRow[]) {
  const open = passes.filter((pass) => pass.resource === resource);
  const read = open.find(({ kind }) => (kind === "CHANGES") === (watermark !== null && !SLOW.has(resource)));
  const { restsUntil = null } = read ?? open[0] ?? {};
  return { isOpen: open.length > 0, restsUntil, isUnread: read !== undefined && restsUntil !== null };
}

/** Whether the copy's first sync is still under way: a list was never read to its end. */
async function isFirst(copy: CopyScope): Promise<boolean> {
  return (await readLists(copy)).some(({ resource, readAt }) => resource !== "DEAL_PARTICIPANTS" && readAt === null);
}

/** What the copy's lists are paid from now. */
export const payerOfLists = async (copy: CopyScope) => ((await isFirst(copy)) ? "FIRST_LISTS" : "LISTS");

/** Since when the last of what waits for a second look does so: missed records, and lists that showed much less; null: nothing does. */
export async function lastMissedAt({ tenantId, copyId, rows }: CopyScope): Promise<Date | null> {
  const [missed] = await rows<{ at: Date | null }>(
    `SELECT greatest(
       (SELECT max(missed_at) FROM missed_record WHERE tenant_id = $1 AND copy_id = $2 AND failed_at IS NULL),
       (SELECT max(first_walk_ended_at) FROM sync_pass WHERE tenant_id = $1 AND copy_id = $2 AND walk = 2)) AS at`,
    [tenantId, copyId],
    { at: "instant" },
  );
  return missed?.at ?? null;
}

/** How many records the copy holds of lists. */
export async function countRecords<L extends ListResource>(
  { tenantId, copyId, rows, metadata }: CopyScope,
  lists: readonly L[],
): Promise<[list: L, records: number][]> {
  const counts: [L, number][] = [];
  for (const list of lists) {
    const sql = `SELECT count(*)::int AS n FROM ${metadata(LISTS[list].entity).tableName} t WHERE t.tenant_id = $1 AND t.copy_id = $2`;
    const [count] = await rows<{ n: number }>(sql, [tenantId, copyId], { n: "number" });
    counts.push([list, count?.n ?? 0]);
  }
  return counts;
}

/**
 * The last successful run's counts of the same kind are the best estimate of what is to come. Of participants it is reckoned as they are asked for:
 * those of a meeting may be asked for before.
 */
export async function insertSteps(
  { tenantId, copyId, rows }: CopyScope,
  runId: string,
  kind: SyncKind,
  resources: readonly SyncResource[],
): Promise<void> {
  await rows(
    `INSERT INTO sync_step (tenant_id, run_id, resource, state, expected)
     SELECT $1, $2, planned.resource, 'QUEUED', CASE WHEN planned.resource <> 'DEAL_PARTICIPANTS' THEN
       (SELECT s.fetched FROM sync_run r JOIN sync_step s ON s.tenant_id = $1 AND s.run_id = r.id
        WHERE r.tenant_id = $1 AND r.copy_id = $3 AND r.kind = $4 AND r.state = 'SUCCEEDED' AND s.resource = planned.resource
        ORDER BY r.queued_at DESC LIMIT 1) END
     FROM unnest($5::text[]) AS planned (resource)
     ON CONFLICT DO NOTHING`,
    [tenantId, runId, copyId, kind, resources],
  );
}

/**
 * Makes a run with its steps and its job, all in the caller's transaction, which holds the connection's lock; one run at
 * a time is held by the database besides. What is asked for beyond what changed is noted as passes: where the run does not
 * come to their end, later runs go on with them.
 * @param resources which lists it reads; all where nothing is said
 * @returns the run's id
 */
export async function enqueueRun(
  scope: TenantScope,
  copyId: number,
  asked: SyncKind,
  now: Date,
  resources: readonly SyncResource[] = SYNC_RESOURCES,
  place?: JobPlace,
): Promise<string> {
  const copy = { ...scope, copyId };
  await makeLists(copy);
  const known = new Set((await readLists(copy)).flatMap(({ resource, watermark }) => (watermark ? resource : [])));
  // Whichever of the two shows a list whole again: each puts off the next RECONCILE, so each is to find what is gone.
  const removes = (resource: SyncResource) => asked === "RECONCILE" || known.has(resource);
  if (asked !== "INCREMENTAL") await askWhole(copy, resources.filter(isRemovable), removes);
  // Without a list that was ever read to its end there is nothing to add to.
  const kind = known.size > 0 ? asked : "FULL";
  const id = randomUUID();
  const run = { tenantId: scope.tenantId, id, copyId, kind, state: "QUEUED" as const, queuedAt: now };
  await scope.typed((orm) => orm.insert(SyncRunRow, run));
  await insertSteps(copy, id, kind, resources);
  await enqueueSync(scope, id, 0, place);
  await notify(scope, PROGRESS_CHANGED);
  return id;
}

export interface Freshness {
  /** How old what is known of the list is that was read least lately; null: none is read by the schedule, or was to its end yet. */
  oldestSeconds: number | null;
  /** For how long the oldest authorization has had a list that was never read to its end; 0: there is none. */
  firstSeconds: number;
}

/**
 * Of all working connections. A slow list counts as so much younger as it waits. Who authorizes again begins anew: what
 * is old in such a copy is no fault of the sync, nor is what a company's closed account keeps from it, or a missing right a list.
 */
export async function readFreshnessOfAll(database: Database): Promise<Freshness | null> {
  const [freshness] = await database.acrossTenants<Freshness>(
    `SELECT extract(epoch FROM now() - min(l.watermark + CASE WHEN l.resource = ANY ($2) THEN $3 ELSE 0 END * interval '1 ms')
         FILTER (WHERE c.next_sync_at IS NOT NULL))::float8 AS "oldestSeconds",
       coalesce(extract(epoch FROM now() - min(c.connected_at) FILTER (WHERE l.watermark IS NULL AND l.resource = ANY ($1))), 0)::float8 AS "firstSeconds"
     FROM sync_list l JOIN connection c ON c.tenant_id = l.tenant_id AND c.copy_id = l.copy_id
     WHERE c.state = 'CONNECTED' AND c.trouble_code IS DISTINCT FROM 'CRM_ACCOUNT_CLOSED'
       AND l.resource = ANY ($1 || $2)
       AND NOT EXISTS (SELECT 1 FROM data_gap g WHERE g.tenant_id = l.tenant_id AND g.copy_id = l.copy_id AND g.resource = l.resource
         AND g.crm_id = 0 AND g.code = 'CRM_REFUSED')`,
    [MAIN_LISTS, [...SLOW], SLOW_MS],
    { oldestSeconds: "number", firstSeconds: "number" },
  );
  return freshness ?? null;
}
