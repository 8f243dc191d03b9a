import { liveCopyId } from "../connections/connection";
import type { RematchProgress } from "../connections/copies";
import { CONNECTION_CHANGED, notify } from "../database/between-processes";
import type { Database, TenantScope } from "../database/database";
import { SyncedCopyRow } from "../entities/connection";
import type { MeetingAttendeeRow, MeetingRow } from "../entities/meeting";
import type { SyncResource } from "../entities/sync-run";
import { type Clock, DAY_MS } from "../platform/clock";
import type { Logger } from "../platform/logger";
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
import { readAttendees } from "./meeting-rows";
import { STALE_HOURS } from "./quiet/facts";

/** Older meetings are matched again only where a record of theirs is gone, and against a copy that is new, or whole at last. */
const REMATCH_FOR_MS = 30 * DAY_MS;
/** Meetings that are looked at with one set of statements; a town hall has 500 attendees. */
const BATCH = 50;
/** Meetings matched again in one transaction, which judges the deals that they are the first to match. */
const TOGETHER = 10;
/** So long after a success deals may have been UNKNOWN: a list is as old as the beginning of its read. */
const MAY_BE_STALE_HOURS = STALE_HOURS - 1;
/** The lists that a match is made of: no change of pipelines, stages or notes changes one. */
const MATTERS: readonly SyncResource[] = [
  "USERS",
  "ORGANIZATIONS",
  "PERSONS",
  "DEALS",
  "DEAL_PARTICIPANTS",
  "ACTIVITIES",
];

/**
 * Matching again after a sync: the tenant's meetings of the last 30 days and of the future, and of those only the ones
 * about which the copy now says something else. Against a new copy nothing was matched yet, so it gets them all, and all once
 * more when the lists that a match is made of were each read to their end. The copy remembers up to which run this is done, so
 * what one job left undone is done by the next.
 */
export class Rematching {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly logger: Logger,
  ) {}

  async run(tenantId: number, stop: AbortSignal): Promise<void> {
    const scope = this.database.tenant(tenantId);
    const due = await whatIsDue(scope);
    if (!due) return;
    if (due.isChanged && !(await this.#rematchAll(scope, due, stop))) return;
    if (due.isFreshAgain) await notify(scope, CONNECTION_CHANGED);
    await scope.rows(
      `UPDATE synced_copy SET rematched_at = $3, matched_as_whole = matched_as_whole OR $4
       WHERE tenant_id = $1 AND id = $2 AND (rematched_at IS NULL OR rematched_at < $3)`,
      [tenantId, due.copyId, due.until, due.isWhole],
    );
  }

  /** @returns false where meetings are left to the next time */
  async #rematchAll(scope: TenantScope, { copyId, isOfAll, isLess }: Due, stop: AbortSignal): Promise<boolean> {
    const since = isOfAll ? null : new Date(this.clock().getTime() - REMATCH_FOR_MS);
    const total = await countMeetingsSince(scope, since);
    let failed = 0;
    const rematch = async (ids: readonly string[]) => {
      for (let from = 0; from < ids.length && !stop.aborted; from += TOGETHER)
        failed += await this.#rematch(scope, ids.slice(from, from + TOGETHER), isOfAll ? "FIRST" : "SYNCED");
    };
    let done = 0;
    for (let last: PagePosition | null | undefined = null; last !== undefined; ) {
      const page = await readMeetingsSince(scope, since, last, BATCH);
      if (total > 0) await tellProgress(scope, copyId, { done, total });
      for (const some of fewAtOnce(page)) await rematch((await findOutdated(scope, some)).map(({ row }) => row.id));
      if (stop.aborted) return false;
      done = Math.min(done + page.length, total);
      last = page.length < BATCH ? undefined : page.at(-1)?.row;
    }
    if (since && isLess) for await (const ids of findBereft({ ...scope, copyId }, since)) await rematch(ids);
    if (total > 0) await tellProgress(scope, copyId, null);
    if (isOfAll) await notify(scope, CONNECTION_CHANGED);
    return failed === 0 && !stop.aborted;
  }

  /** Together, and alone those for which that fails: one meeting's failure is its own. @returns how many have failed */
  async #rematch(tenant: TenantScope, meetingIds: readonly string[], occasion: Occasion): Promise<number> {
    const done = await tenant
      .transaction(async (scope) => {
        const meetings = await lockMeetings(scope, meetingIds);
        if (meetings.length > 0) await matchMeetings(scope, meetings, this.clock(), occasion);
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
        if (meeting) await matchMeetings(scope, [meeting], this.clock(), occasion);
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

/** How many meetings begin after `since` (null: all). */
async function countMeetingsSince({ tenantId, rows }: TenantScope, since: Date | null): Promise<number> {
  const [found] = await rows<{ total: number }>(
    "SELECT count(*) AS total FROM meeting WHERE tenant_id = $1 AND starts_at > coalesce($2, '-infinity'::timestamptz)",
    [tenantId, since],
    { total: "number" },
  );
  return found?.total ?? 0;
}

type PagePosition = Pick<MeetingRow, "startsAt" | "id">;

/** A page of the meetings that begin after `since` (null: of all), the last to begin first. */
async function readMeetingsSince(
  scope: TenantScope,
  since: Date | null,
  before: PagePosition | null,
  limit: number,
): Promise<MatchableMeeting[]> {
  const found = await scope.rows<MatchableMeeting["row"]>(
    `SELECT id, starts_at AS "startsAt", owner_email AS "ownerEmail", cancelled_at AS "cancelledAt" FROM meeting
     WHERE tenant_id = $1 AND starts_at > coalesce($2, '-infinity'::timestamptz) AND ($3::timestamptz IS NULL OR (starts_at, id) < ($3, $4::uuid))
     ORDER BY starts_at DESC, id DESC LIMIT $5`,
    [scope.tenantId, since, before?.startsAt ?? null, before?.id ?? null, limit],
    { id: "text", startsAt: "instant", ownerEmail: "text", cancelledAt: "instant" },
  );
  const attendees = await readAttendees(
    scope,
    found.map(({ id }) => id),
  );
  const byMeeting = new Map(found.map(({ id }): [string, MeetingAttendeeRow[]] => [id, []]));
  for (const attendee of attendees) byMeeting.get(attendee.meetingId)?.push(attendee);
  return found.map((row) => ({ row, attendees: byMeeting.get(row.id) ?? [] }));
}

/** @param progress null: it is over */
async function tellProgress(
  { tenantId, rows }: TenantScope,
  copyId: number,
  progress: RematchProgress | null,
): Promise<void> {
  await rows("UPDATE synced_copy SET rematch_done = $3, rematch_total = $4 WHERE tenant_id = $1 AND id = $2", [
    tenantId,
    copyId,
    progress?.done ?? null,
    progress?.total ?? null,
  ]);
}

interface Due {
  copyId: number;
  /** The end of the last run that this covers. */
  until: Date;
  isChanged: boolean;
  /** Meetings of any age: none was matched to the copy yet, or to a part of it only that is whole by now. */
  isOfAll: boolean;
  /** Every list that a match is made of was read to its end. */
  isWhole: boolean;
  /** Records are gone that meetings may be matched to. */
  isLess: boolean;
  /** A copy that was too old to judge by is so no more, which no deal is told of. */
  isFreshAgain: boolean;
}

/** null: no run has ended since the last time. A failed run counts as well, it may have written pages. */
async function whatIsDue(scope: TenantScope): Promise<Due | null> {
  const { tenantId, rows, typed } = scope;
  const copyId = await liveCopyId(scope);
  const copy = copyId && (await typed((orm) => orm.findOneBy(SyncedCopyRow, { tenantId, id: copyId })));
  if (!copy) return null;
  const [ended] = await rows<{ until: Date | null } & Pick<Due, "isChanged" | "isLess" | "isWhole" | "isFreshAgain">>(
    `SELECT max(r.finished_at) AS until, coalesce(bool_or(s.written + s.removed > 0 OR r.written_beside + r.removed_beside > 0), false) AS "isChanged",
       coalesce(bool_or(s.removed > 0 AND s.resource = ANY ($5) OR r.removed_beside > 0), false) AS "isLess", (
       SELECT count(*) = cardinality($5::text[]) FROM sync_list l WHERE l.tenant_id = $1 AND l.copy_id = $2
         AND l.resource = ANY ($5) AND l.watermark IS NOT NULL) AS "isWhole",
       coalesce(max(r.finished_at) FILTER (WHERE r.state = 'SUCCEEDED') - make_interval(hours => $6) > (
         SELECT max(p.finished_at) FROM sync_run p WHERE p.tenant_id = $1 AND p.copy_id = $2 AND p.state = 'SUCCEEDED'
           AND p.finished_at <= coalesce($3, '-infinity'::timestamptz)), false) AS "isFreshAgain"
     FROM sync_run r LEFT JOIN sync_step s ON s.tenant_id = $1 AND s.run_id = r.id AND s.resource = ANY ($4)
     WHERE r.tenant_id = $1 AND r.copy_id = $2 AND r.finished_at > coalesce($3, '-infinity'::timestamptz)`,
    [tenantId, copy.id, copy.rematchedAt, MATTERS, MATCHED_LISTS, MAY_BE_STALE_HOURS],
    { until: "instant", isChanged: "flag", isLess: "flag", isWhole: "flag", isFreshAgain: "flag" },
  );
  if (!ended?.until) return null;
  const isOfAll = copy.rematchedAt === null || (ended.isWhole && !copy.matchedAsWhole);
  return { ...ended, until: ended.until, copyId: copy.id, isOfAll, isChanged: isOfAll || ended.isChanged };
}
