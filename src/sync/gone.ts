import { Any } from "typeorm";
import { type CrmApi, type CrmPage, MAX_IDS } from "../crm/api";
import { CrmError } from "../crm/errors";
import { idsOf } from "../crm/parsing/page";
import type { CopyScope } from "../database/database";
import { SyncedCopyRow } from "../entities/connection";
import type { MatchedEntity } from "../entities/meeting";
import { AbsentRecordRow, MissedRecordRow } from "../entities/sync-list";
import { HOUR_MS } from "../platform/clock";
import { commitPiece, count, type HeldCopy, type InHand, inRun, judged, type RunContext } from "./commit";
import { isListFailure, RunLostError } from "./failures";
import { LISTS, type ListResource, storable } from "./lists";
import { dealsOfMeeting, readRule } from "./participant-queue";
import { askBatch, commitAnswers, lanesOf } from "./participants";
import { endPass, type ListState, leavePass, movePass, type Pass } from "./passes";
import { WALKS_APART_MS } from "./plan";
import { NO_CHANGE, type StepChange } from "./runs";
import { isDeleted, removeRecords } from "./writers";

// What the CRM no longer shows: of whole lists by two walks, of matched records by two looks at their ids.

/** Rows removed, and noted, in one transaction. */
const [REMOVED_AT_ONCE, NOTED_AT_ONCE] = [1_000, 5_000];
/** A walk that shows so many fewer records, and less than half, may be a glitch (decision 0013). */
const MANY = 100;

export interface Absence {
  /** What the walks have not seen. */
  absent: number;
  /** What the copy holds. */
  held: number;
}

/** So much less than is held is more likely a glitch, or another user's view, than a day's deletions: it has to be proven. */
export function isMuch({ absent, held }: Absence): boolean {
  return absent >= held || (absent > MANY && absent > held / 2);
}

/**
 * The first walk begins: every record of the copy counts as not seen, and what an earlier run left is forgotten. In parts, of
 * which a list may have hundreds: until the first page is committed the pass has not begun, and whoever goes on does all again,
 * so that a turn's end does not cut it off. @returns false where the process is to stop: then nothing may be walked
 */
export async function beginAbsence(context: Beginning, resource: ListResource): Promise<boolean> {
  while (!context.isStopped() && (await inRun(context, (copy) => takeAbsent(copy, resource))).length > 0);
  for (let last: number | null = 0; last !== null && !context.isStopped(); ) {
    const after: number = last;
    last = await inRun(context, (copy) => noteAbsent(copy, resource, after));
  }
  return !context.isStopped();
}
type Beginning = InHand & Pick<RunContext, "isStopped">;

/** @returns the last that was noted; null at the end */
async function noteAbsent(copy: CopyScope, resource: ListResource, after: number): Promise<number | null> {
  const { tenantId, copyId, rows } = copy;
  const part = `FROM ${tableOf(copy, resource)} t WHERE t.tenant_id = $1 AND t.copy_id = $2`;
  const [end] = await rows<{ id: number }>(
    `SELECT t.crm_id AS id ${part} AND t.crm_id > $3 ORDER BY t.crm_id OFFSET ${NOTED_AT_ONCE - 1} LIMIT 1`,
    [tenantId, copyId, after],
    { id: "number" },
  );
  await rows(
    `INSERT INTO absent_record (tenant_id, copy_id, resource, crm_id)
     SELECT t.tenant_id, t.copy_id, $3, t.crm_id ${part} AND t.crm_id > $4 AND t.crm_id <= $5 ON CONFLICT DO NOTHING`,
    [tenantId, copyId, resource, after, end?.id ?? Number.MAX_SAFE_INTEGER],
  );
  return end?.id ?? null;
}

/** A page shows these, whether or not they could be read. */
export async function seen(
  { tenantId, copyId, typed }: CopyScope,
  resource: ListResource,
  ids: readonly number[],
): Promise<void> {
  await typed((orm) => orm.delete(AbsentRecordRow, { tenantId, copyId, resource, crmId: Any(ids) }));
}

export async function countAbsence(copy: CopyScope, resource: ListResource): Promise<Absence> {
  const { tenantId, copyId, rows } = copy;
  const [count] = await rows<Absence>(
    `SELECT (SELECT count(*)::int FROM absent_record a
             WHERE a.tenant_id = $1 AND a.copy_id = $2 AND a.resource = $3) AS absent,
            (SELECT count(*)::int FROM ${tableOf(copy, resource)} t WHERE t.tenant_id = $1 AND t.copy_id = $2) AS held`,
    [tenantId, copyId, resource],
    { absent: "number", held: "number" },
  );
  return count ?? { absent: 0, held: 0 };
}

/**
 * A batch of what two walks have not seen, for the caller to remove. Up to the last of them: of a table that was empty a moment
 * ago PostgreSQL expects one, and a list of them was looked up anew for each row. @returns none at the end
 */
export async function takeAbsent({ tenantId, copyId, rows }: CopyScope, resource: ListResource): Promise<number[]> {
  const batch = await rows<{ crm_id: number }>(
    `DELETE FROM absent_record a WHERE a.tenant_id = $1 AND a.copy_id = $2 AND a.resource = $3 AND a.crm_id <= (
       SELECT max(b.crm_id) FROM (SELECT c.crm_id FROM absent_record c
       WHERE c.tenant_id = $1 AND c.copy_id = $2 AND c.resource = $3 ORDER BY c.crm_id LIMIT ${REMOVED_AT_ONCE}) b)
     RETURNING a.crm_id`,
    [tenantId, copyId, resource],
    { crm_id: "number" },
  );
  return batch.map(({ crm_id }) => crm_id);
}

const tableOf = ({ metadata }: CopyScope, resource: ListResource) => metadata(LISTS[resource].entity).tableName;

/** The end of a removing pass: what neither walk has shown goes. */
export async function removeUnseen(
  context: RunContext,
  resource: ListResource,
  state: ListState,
  pass: Pass,
): Promise<"ENDED" | "PAUSED"> {
  const { run, clock, verify, logger } = context;
  const absence = await countAbsence(context.copy, resource);
  // As the second walk has noted it: what is left to a later turn may be little.
  const isMuchGone = pass.firstWalkEndedAt !== null;
  if (isMuchGone) {
    logger.warn({ resource, ...absence }, "two walks did not show much of what is held");
    // Who sees so much less may be deactivated, or somebody else, by now.
    await verify();
  }
  for (;;) {
    const { gone, list } = await inRun(context, async (copy) => {
      const removed = await removeBatch(context, copy, resource);
      const gone = { ...NO_CHANGE, removed };
      if (removed === 0) return { gone, list: await endPass(copy, run, state, pass, gone, clock(), isMuchGone) };
      await movePass(copy, run, pass, gone);
      return { gone, list: null };
    });
    count(context, resource, gone);
    if (gone.removed === 0) {
      leavePass(state, pass, list);
      return "ENDED";
    }
    if (context.mustPause()) return "PAUSED";
  }
}

/** @returns how many were removed; 0 at the end */
async function removeBatch(context: RunContext, copy: HeldCopy, resource: ListResource): Promise<number> {
  const gone = await takeAbsent(copy, resource);
  await judged(context, copy, resource, gone, async () => {
    await removeRecords(copy, LISTS[resource].entity, gone, context.clock());
    return { touched: [], left: [], gone };
  });
  return gone.length;
}

/**
 * Matched records are asked for by their ids, because the CRM tells of deals alone that they are gone: what is deleted,
 * merged, archived or no longer shown to the user is left out of the answer. One look that leaves it out proves nothing.
 */
const PROBED = [
  { entity: "DEAL", resource: "DEALS" },
  { entity: "PERSON", resource: "PERSONS" },
  { entity: "ORGANIZATION", resource: "ORGANIZATIONS" },
] as const satisfies { entity: MatchedEntity; resource: keyof typeof LISTS }[];
type Probed = (typeof PROBED)[number];

/** A round through the matched records goes on in parts, of more than 10,000 records in several. 1,000 tokens. */
const REQUESTS_A_PART = 100;
/**
 * From one part to the next. What vanishes just after it was looked at is to be gone within a day, and the part's run may
 * come an hour after it is due, and the second look ten minutes after that.
 */
const PARTS_APART_MS = 22 * HOUR_MS;
/** A part that could not be read whole is made again after this. */
const RETRY_MS = 4 * HOUR_MS;
/** An answer by ids is one page, or a few where records are large. */
const MAX_PAGES = 10;
/** What of a meeting is asked for who takes part: 40 tokens. */
const DEALS_OF_MEETING = 4;

/** The next part of the matched records, and those again that the CRM left out ten minutes ago or longer. */
export async function probeMatched(context: RunContext): Promise<void> {
  for (const probed of PROBED) await unlessItFails(context, probed, () => lookAgain(context, probed));
  await probePart(context);
}

/** Brings what a meeting is about up to date: its records by their ids, and who takes part in its likeliest deals. Its lists are the run's. */
export async function refreshMeeting(context: RunContext, meetingId: string): Promise<void> {
  const { copy, apis, clock } = context;
  for (const probed of PROBED) {
    const ids = await matchedOf(copy, probed.entity, meetingId);
    if (ids.length > 0) await unlessItFails(context, probed, () => look(context, apis.MEETINGS, probed, ids));
  }
  const walk = { mark: clock(), rule: await readRule(copy) };
  const marks = { mark: walk.mark, ruleOfOne: walk.rule.holds };
  const deals = await dealsOfMeeting(copy, meetingId, marks, DEALS_OF_MEETING);
  const lanes = lanesOf(context);
  const answers = await askBatch(context, apis.MEETINGS, deals, lanes);
  await commitAnswers(context, apis.MEETINGS, walk, answers);
  if (lanes.ending) throw lanes.ending;
}

/** An answer that fails says nothing of any record. @returns whether it did not fail */
async function unlessItFails(
  { logger, isStopped }: RunContext,
  { resource }: Probed,
  work: () => Promise<void>,
): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    if (!isListFailure(error) || isStopped()) throw error;
    logger.warn({ resource, code: error.code, ...error.detail }, "matched records could not be asked for");
    return false;
  }
}

/** What was left out long enough ago is asked for again. */
async function lookAgain(context: RunContext, probed: Probed): Promise<void> {
  const { apis, clock, mustPause } = context;
  while (!mustPause()) {
    const ids = await missedBefore(context.copy, probed.resource, longAgo(clock()));
    if (ids.length === 0) return;
    await look(context, apis.LISTS, probed, ids);
  }
}

const longAgo = (now: Date) => new Date(now.getTime() - WALKS_APART_MS);

/** One request. What it shows is written and no longer missed; what it leaves out twice, long enough apart, is gone. */
async function look(context: RunContext, api: CrmApi, probed: Probed, ids: readonly number[]): Promise<void> {
  const { clock } = context;
  const { resource } = probed;
  const list = LISTS[resource];
  const pages = await readByIds(api, resource, ids);
  const records = pages.flatMap((page) => page.records);
  const rejected = pages.flatMap((page) => page.rejected);
  const shown = new Set(pages.flatMap(idsOf));
  const leftOut = ids.filter((id) => !shown.has(id));
  const answer = { records, rejected, write: list.ready(records, rejected.length) };
  const gone = await missedBefore(context.copy, resource, longAgo(clock()), leftOut);
  if (gone.length > 0) await requireSight(context, probed);
  await commitPiece(context, resource, async (copy): Promise<StepChange> => {
    // Who is kept out leaves as well, and is not shown as deleted before this.
    const stored = await storable(context.keepOut, copy, resource, answer);
    const deleted = stored.records.filter(isDeleted).map(({ id }) => id);
    const written = await judged(context, copy, resource, [...deleted, ...gone], async () => {
      const page = await stored.write(copy, clock());
      const unchanged = records.length - page.ids.length - page.removed;
      const removed = page.removed + (await removeRecords(copy, list.entity, gone, clock()));
      return { ...page, gone: [...page.gone, ...gone], unchanged, removed };
    });
    await seen(copy, resource, [...shown]);
    await forgetMissed(copy, resource, [...shown, ...gone]);
    const missed = leftOut.filter((id) => !gone.includes(id));
    await noteMissed(copy, resource, missed, clock());
    const { ids: changed, unchanged, removed } = written;
    const counts = { fetched: shown.size, written: changed.length, unchanged, removed, rejected: rejected.length };
    return { requests: pages.length, ...counts };
  });
}

/** Who is shown much less than before may be deactivated, or somebody else, by now. @throws where it is so */
async function requireSight(context: RunContext, probed: Probed): Promise<void> {
  const { verify, logger } = context;
  const absence = await countMissed(context.copy, probed);
  if (!isMuch(absence)) return;
  logger.warn({ ...probed, ...absence }, "many matched records were left out of an answer twice");
  await verify();
}

async function readByIds(
  api: CrmApi,
  resource: Probed["resource"],
  ids: readonly number[],
): Promise<CrmPage<{ id: number }>[]> {
  const pages: CrmPage<{ id: number }>[] = [];
  for (let cursor: string | null = null; pages.length < MAX_PAGES; ) {
    const page: CrmPage<{ id: number }> = await LISTS[resource].read(api, { cursor, ids });
    pages.push(page);
    if (page.next === null) return pages;
    cursor = page.next;
  }
  throw new CrmError("UNREADABLE", `The CRM's answer to ids of ${resource} does not end.`);
}

async function noteMissed(
  { tenantId, copyId, rows }: CopyScope,
  resource: string,
  ids: readonly number[],
  now: Date,
): Promise<void> {
  if (ids.length === 0) return;
  await rows(
    `INSERT INTO missed_record AS x (tenant_id, copy_id, resource, crm_id, missed_at)
     SELECT $1, $2, $3, unnest($4::bigint[]), $5::timestamptz
     ON CONFLICT (tenant_id, copy_id, resource, crm_id) DO UPDATE SET missed_at = EXCLUDED.missed_at
     WHERE x.missed_at > EXCLUDED.missed_at`,
    [tenantId, copyId, resource, ids, now],
  );
}

async function forgetMissed(
  { tenantId, copyId, typed }: CopyScope,
  resource: Probed["resource"],
  ids: readonly number[],
): Promise<void> {
  if (ids.length === 0) return;
  await typed((orm) => orm.delete(MissedRecordRow, { tenantId, copyId, resource, crmId: Any(ids) }));
}

/** @param among of these only; all where nothing is said */
async function missedBefore(
  { tenantId, copyId, rows }: CopyScope,
  resource: string,
  before: Date,
  among: readonly number[] | null = null,
): Promise<number[]> {
  const found = await rows<{ id: number }>(
    `SELECT crm_id AS id FROM missed_record
     WHERE tenant_id = $1 AND copy_id = $2 AND resource = $3 AND missed_at <= $4 AND ($5::bigint[] IS NULL OR crm_id = ANY ($5))
     ORDER BY crm_id LIMIT ${MAX_IDS}`,
    [tenantId, copyId, resource, before, among],
    { id: "number" },
  );
  return found.map(({ id }) => id);
}

async function countMissed({ tenantId, copyId, rows }: CopyScope, { resource, entity }: Probed): Promise<Absence> {
  const [count] = await rows<Absence>(
    `SELECT (SELECT count(*)::int FROM missed_record WHERE tenant_id = $1 AND copy_id = $2 AND resource = $3) AS absent,
       (SELECT count(DISTINCT crm_id)::int FROM matched_record WHERE tenant_id = $1 AND copy_id = $2 AND entity = $4) AS held`,
    [tenantId, copyId, resource, entity],
    { absent: "number", held: "number" },
  );
  return count ?? { absent: 0, held: 0 };
}

/** A part of a round through the matched records, from where it stands. */
async function probePart(context: RunContext): Promise<void> {
  const { copy, apis, clock, mustPause } = context;
  const where = { tenantId: copy.tenantId, id: copy.copyId };
  const present = await copy.typed((orm) => orm.findOneBy(SyncedCopyRow, where));
  if (!present) throw new RunLostError("the copy is purged");
  const { probedAt, probeCursor } = present;
  const waitedMs = probedAt ? clock().getTime() - probedAt.getTime() : PARTS_APART_MS;
  if (waitedMs >= 0 && waitedMs < PARTS_APART_MS) return;
  // A statement of its own, as in the rule of one: it must not wait within a transaction that shares the copy's row.
  const save = (change: Partial<SyncedCopyRow>) => copy.typed((orm) => orm.update(SyncedCopyRow, where, change));
  let [cursor, hasFailed] = [probeCursor, false];
  for (let requests = 0; requests < REQUESTS_A_PART; requests += 1) {
    if (mustPause()) return;
    const next = await nextMatched(copy, cursor);
    cursor = next?.cursor ?? null;
    if (!next) break;
    const { probed, ids } = next;
    if (!(await unlessItFails(context, probed, () => look(context, apis.LISTS, probed, ids)))) {
      hasFailed = true;
      cursor = endOf(probed);
    }
    await save({ probeCursor: cursor });
  }
  const doneAt = new Date(clock().getTime() - (hasFailed ? PARTS_APART_MS - RETRY_MS : 0));
  await save({ probedAt: doneAt, probeCursor: cursor });
}

/** A place in the order of the matched records, as text. */
const cursorOf = ({ entity }: Pick<Probed, "entity">, id: number) => `${entity}:${id}`;
const endOf = (probed: Probed) => cursorOf(probed, Number.MAX_SAFE_INTEGER);

/** The records of one kind that come next; null at the end of the round. */
async function nextMatched(
  { tenantId, copyId, rows }: CopyScope,
  cursor: string | null,
): Promise<{ probed: Probed; ids: number[]; cursor: string } | null> {
  const [entity = "", after = "0"] = (cursor ?? "").split(":");
  const found = await rows<{ entity: MatchedEntity; id: number }>(
    `SELECT DISTINCT entity, crm_id AS id FROM matched_record
     WHERE tenant_id = $1 AND copy_id = $2 AND (entity, crm_id) > ($3::text, $4::bigint) ORDER BY entity, crm_id LIMIT ${MAX_IDS}`,
    [tenantId, copyId, entity, after],
    { entity: "text", id: "number" },
  );
  const probed = PROBED.find((kind) => kind.entity === found[0]?.entity);
  if (!probed) return null;
  const ids = found.filter((record) => record.entity === probed.entity).map(({ id }) => id);
  return { probed, ids, cursor: cursorOf(probed, ids.at(-1) ?? 0) };
}

async function matchedOf(
  { tenantId, copyId, rows }: CopyScope,
  entity: MatchedEntity,
  meetingId: string,
): Promise<number[]> {
  const found = await rows<{ id: number }>(
    `SELECT crm_id AS id FROM matched_record
     WHERE tenant_id = $1 AND copy_id = $2 AND meeting_id = $3 AND entity = $4 ORDER BY crm_id LIMIT ${MAX_IDS}`,
    [tenantId, copyId, meetingId, entity],
    { id: "number" },
  );
  return found.map(({ id }) => id);
}
