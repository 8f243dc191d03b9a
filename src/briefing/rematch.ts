import { liveCopyId } from "../connections/connection";
import { NOT_SEEN, tellFresh } from "../connections/journal";
import { CONNECTION_CHANGED, notify } from "../database/between-processes";
import type { CopyScope, Database, TenantScope } from "../database/database";
import { SyncedCopyRow } from "../entities/connection";
import type { Rematch, SyncResource } from "../entities/sync-run";
import { type Clock, DAY_MS, SECOND_MS } from "../platform/clock";
import type { Logger } from "../platform/logger";
import { countMeetingsSince, readMeetingsSince } from "./lists/contact-and-meeting-lists";
import {
  findBereft,
  findOutdated,
  lockMeeting,
  lockMeetings,
  type MatchableMeeting,
  matchMeetings,
  type Occasion,
} from "./match-meeting";
import { MATCHED_LISTS } from "./matching/facts";
import { STALE_HOURS } from "./quiet/facts";
import { isFresh } from "./quiet/read-quiet";

/** Older meetings are matched again only where a record of theirs is gone, and against a copy that is new, or whole at last. */
const REMATCH_FOR_MS = 30 * DAY_MS;
/** A tenant gives its place to others after this, and goes on from where it stood. */
const TURN_MS = 15 * SECOND_MS;
/** Where it stands is noted so often: what came after that is looked at again by whoever goes on for one that was killed. */
const NOTED_EVERY_MS = SECOND_MS;
/** Meetings that are looked at with one set of statements; a town hall has 500 attendees. */
const BATCH = 50;
/** Meetings matched again in one transaction, which judges the deals that they are the first to match. */
const TOGETHER = 10;
/** So long after a success deals may have been UNKNOWN: a list is as old as the beginning of its read. */
const MAY_BE_STALE_HOURS = STALE_HOURS - 1;
/** The lists that a match is made of: no change of pipelines, stages or notes changes one. */
const MATTERS: readonly SyncResource[] = [...MATCHED_LISTS, "DEAL_PARTICIPANTS", "ACTIVITIES"];

/**
 * Matching again after a sync: the tenant's meetings of the last 30 days and of the future, and of those only the ones
 * about which the copy now says something else. Against a new copy nothing was matched yet, so it gets them all, and all once
 * more when the lists that a match is made of were each read to their end. Each run remembers whether it is done, the copy how far.
 */
export class Rematching {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly logger: Logger,
    private readonly elapsed = () => performance.now(),
  ) {}

  /** @returns whether it is to be run again: it has paused, or runs have ended since it began, whose jobs left them to this one */
  async run(tenantId: number, stop: AbortSignal): Promise<boolean> {
    const tenant = this.database.tenant(tenantId);
    const copyId = await liveCopyId(tenant);
    const copy = copyId && (await tenant.typed((orm) => orm.findOneBy(SyncedCopyRow, { tenantId, id: copyId })));
    if (!copy) return false;
    const scope = { ...tenant, copyId: copy.id };
    const from = (copy.rematch?.again === "WAITS" ? null : copy.rematch) ?? (await this.#begin(scope, copy));
    if (!from) return false;
    let [way, noted, notedAt] = [from, copy.rematch, this.elapsed()];
    const turnEnds = notedAt + TURN_MS;
    for await (const { ids, looked, place } of stretchesOf(scope, from)) {
      const failed = await this.#rematchEach(scope, ids, way.since || way.again ? "SYNCED" : "FIRST", stop);
      const done = Math.min(way.done + looked, way.total);
      if (!stop.aborted) way = { ...way, place, done, failed: way.failed + failed };
      const pauses = stop.aborted || this.elapsed() >= turnEnds;
      if (!pauses && this.elapsed() < notedAt + NOTED_EVERY_MS) continue;
      if (!(await note(scope, noted, way))) return false;
      if (pauses) return true;
      [noted, notedAt] = [way, this.elapsed()];
    }
    return (await finish(scope, noted, way)) && noted !== null && (await endedSince(way, scope)).length > 0;
  }

  /** null: there is nothing to go through. */
  async #begin(scope: CopyScope, copy: SyncedCopyRow): Promise<Rematch | null> {
    const now = this.clock();
    const due = await whatIsDue(scope, copy, now);
    if (!due) return null;
    if (due.isFreshAgain && (await isFresh(scope, now))) await tellFresh(scope, now);
    const since = due.isOfAll ? null : new Date(now.getTime() - REMATCH_FOR_MS).toISOString();
    const { runs, isWhole, isLess, again } = due;
    const way = { runs, since, isWhole, isLess, done: 0, total: 0, failed: 0, place: null, again };
    if (due.isChanged) return { ...way, total: await countMeetingsSince(scope, since) };
    await note(scope, null, null, way);
    return null;
  }

  async #rematchEach(scope: TenantScope, ids: readonly string[], occasion: Occasion, stop: AbortSignal) {
    let failed = 0;
    for (let from = 0; from < ids.length && !stop.aborted; from += TOGETHER)
      failed += await this.#rematch(scope, ids.slice(from, from + TOGETHER), occasion);
    return failed;
  }

  /** Together, and alone those for which that fails: one meeting's failure is its own. @returns how many have failed */
  async #rematch(tenant: TenantScope, meetingIds: readonly string[], occasion: Occasion): Promise<number> {
    const done = await tenant
      .transaction(async (scope) => {
        const meetings = await lockMeetings(scope, meetingIds);
        if (meetings.length > 0) await matchMeetings(scope, meetings, this.clock(), occasion, this.logger);
        return new Set(meetings.map(({ row }) => row.id));
      })
      .catch(() => new Set<string>());
    let failed = 0;
    for (const id of meetingIds) if (!done.has(id)) failed += (await this.#rematchAlone(tenant, id, occasion)) ? 0 : 1;
    return failed;
  }

  async #rematchAlone(tenant: TenantScope, meetingId: string, occasion: Occasion): Promise<boolean> {
    try {
      await tenant.transaction(async (scope) => {
        const meeting = await lockMeeting(scope, meetingId);
        if (meeting) await matchMeetings(scope, [meeting], this.clock(), occasion, this.logger);
      });
      return true;
    } catch (error) {
      const { tenantId } = tenant;
      this.logger.error({ err: error, tenantId, meetingId }, "a meeting could not be matched again; the others are");
      return false;
    }
  }
}

/** Attendees who are compared with all that they lead to together: for a page of town halls that grew with its square. */
const ATTENDEES = 1_000;

function* fewAtOnce(page: readonly MatchableMeeting[]): Generator<MatchableMeeting[]> {
  let some: MatchableMeeting[] = [];
  for (const meeting of page) {
    some.push(meeting);
    if (some.reduce((sum, { attendees }) => sum + attendees.length, 0) < ATTENDEES && meeting !== page.at(-1)) continue;
    yield some;
    some = [];
  }
}

/** What there is to look at from where a way stands, in pieces: meetings, and those whose records are gone. */
async function* stretchesOf(scope: CopyScope, { since, isLess, place }: Rematch) {
  const isBehindAll = place !== null && "entity" in place;
  for (let last = isBehindAll ? undefined : place; last !== undefined; ) {
    const page = await readMeetingsSince(scope, since, last, BATCH);
    const ids: string[] = [];
    // What one of them makes fail is left to their matching: each that fails there fails alone.
    const outdated = (some: MatchableMeeting[]) => findOutdated(scope, some).catch(() => some);
    for (const some of fewAtOnce(page)) ids.push(...(await outdated(some)).map(({ row }) => row.id));
    const end = page.at(-1)?.row;
    last = end && { startsAt: end.startsAt.toISOString(), id: end.id };
    if (last) yield { ids, looked: page.length, place: last };
    if (page.length < BATCH) break;
  }
  if (since === null || !isLess) return;
  for await (const { ids, last } of findBereft(scope, new Date(since), isBehindAll ? place : undefined))
    if (last) yield { ids, looked: 0, place: { entity: last.entity, id: last.id } };
}

/** @returns false where another job has gone on with it meanwhile @param over the way, once it is gone */
async function note(
  { tenantId, copyId, rows }: CopyScope,
  before: Rematch | null,
  now: Rematch | null,
  over: Record<"isWhole", boolean | null> & Pick<Rematch, "runs"> = { isWhole: null, runs: [] },
): Promise<boolean> {
  const noted = await rows(
    `WITH noted AS (
       UPDATE synced_copy SET rematch = $4, matched_as_whole = greatest(matched_as_whole, $5::boolean)
       WHERE tenant_id = $1 AND id = $2 AND state = 'LIVE' AND rematch IS NOT DISTINCT FROM $3::jsonb RETURNING 1 AS noted
     ), done AS (
       UPDATE sync_run SET rematched = true WHERE tenant_id = $1 AND id = ANY ($6::uuid[]) AND EXISTS (SELECT 1 FROM noted))
     SELECT noted FROM noted`,
    [tenantId, copyId, before, now, over.isWhole, over.runs],
  );
  return noted.length > 0;
}

/** Where it failed for a meeting, the next run's end begins anew: one run stays for that, of those that changed most. The others are matched. */
const finish = (scope: CopyScope, noted: Rematch | null, way: Rematch) =>
  scope.transaction(async (inner) => {
    const copy = { ...inner, copyId: scope.copyId };
    const [hasFailed, isOfAll] = [way.failed > 0, way.since === null];
    const left = { ...way, runs: way.runs.slice(1), total: 0 };
    const waits = hasFailed && isOfAll ? { ...left, again: "WAITS" as const } : null;
    const isOurs = await note(copy, noted, waits, hasFailed ? left : way);
    if (isOurs && isOfAll) await notify(copy, CONNECTION_CHANGED);
    return isOurs;
  });

/** SQL: a run that has ended since the last time. A failed one counts as well, it may have written pages. */
const IS_DUE = "r.tenant_id = $1 AND r.copy_id = $2 AND r.finished_at IS NOT NULL AND NOT r.rematched";
const TOOK = "(s.removed > 0 AND s.resource = ANY ($4) OR r.removed_beside > 0)";

const endedSince = ({ runs }: Rematch, { tenantId, copyId, rows }: CopyScope) =>
  rows(`SELECT 1 FROM sync_run r WHERE ${IS_DUE} AND r.id <> ALL ($3::uuid[]) LIMIT 1`, [tenantId, copyId, runs]);

interface Due extends Pick<Rematch, "runs" | "isWhole" | "isLess" | "again">, Record<"isChanged" | "isOfAll", boolean> {
  /** A copy that was too old to judge by may be so no more, which no deal is told of. */
  isFreshAgain: boolean;
}

/** null: no run is due. A run comes once for each of its steps, the one that took most away first. An end to come is of a clock that was wrong. */
async function whatIsDue({ tenantId, rows }: TenantScope, copy: SyncedCopyRow, now: Date): Promise<Due | null> {
  const [ended] = await rows<{ runs: string[] | null } & Omit<Due, "runs" | "isOfAll" | "again">>(
    `SELECT array_agg(r.id::text ORDER BY ${TOOK} DESC NULLS LAST, coalesce(s.written + s.removed, 0) + r.written_beside DESC) AS runs, coalesce(bool_or(s.written + s.removed > 0 OR r.written_beside + r.removed_beside > 0), false) AS "isChanged",
       coalesce(bool_or(${TOOK}), false) AS "isLess", (
       SELECT count(*) = cardinality($4::text[]) FROM sync_list l WHERE l.tenant_id = $1 AND l.copy_id = $2
         AND l.resource = ANY ($4) AND l.watermark IS NOT NULL) AS "isWhole",
       coalesce(max(r.finished_at) FILTER (WHERE r.state = 'SUCCEEDED') - make_interval(hours => $5) > (
         SELECT max(p.finished_at) FROM sync_run p WHERE p.tenant_id = $1 AND p.copy_id = $2 AND p.state = 'SUCCEEDED'
           AND p.rematched AND p.finished_at <= $6), false) OR EXISTS (SELECT 1 FROM deal_change j WHERE j.tenant_id = $1 AND j.copy_id = $2 AND j.seen_at = '${NOT_SEEN}') AS "isFreshAgain"
     FROM sync_run r LEFT JOIN sync_step s ON s.tenant_id = $1 AND s.run_id = r.id AND s.resource = ANY ($3) WHERE ${IS_DUE}`,
    [tenantId, copy.id, MATTERS, MATCHED_LISTS, MAY_BE_STALE_HOURS, now],
    { runs: "json", isChanged: "flag", isLess: "flag", isWhole: "flag", isFreshAgain: "flag" },
  );
  if (!ended?.runs) return null;
  const isNew = copy.matchedAsWhole === null || (ended.isWhole && !copy.matchedAsWhole);
  const isOfAll = isNew || copy.rematch !== null;
  const again = isOfAll && !isNew ? ("GOES_ON" as const) : undefined;
  return { ...ended, runs: [...new Set(ended.runs)], isOfAll, again, isChanged: isOfAll || ended.isChanged };
}
