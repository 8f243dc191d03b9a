import { type CrmApi, type CrmPage, MAX_IDS } from "../crm/api";
import { CrmError, type CrmFailure, isListFailure } from "../crm/errors";
import { idsOf } from "../crm/parsing/page";
import type { CopyScope } from "../database/database";
import { rowsOf } from "../database/rows";
import { SyncedCopyRow } from "../entities/connection";
import type { MatchedEntity } from "../entities/meeting";
import { HOUR_MS } from "../platform/clock";
import { commitPiece, judged, type RunContext } from "./commit";
import { keepAside, RunLostError } from "./failures";
import { type Absence, forgetMissed, isMuch, missedBefore, noteFailedLooks, noteMissed, seen } from "./gone";
import { LISTS, storable } from "./lists";
import { dealsOfMeeting, readRule } from "./participant-queue";
import { askBatch, commitAnswers, lanesOf } from "./participants";
import { NO_CHANGE, type StepChange } from "./runs";
import { askForActivities, isDeleted, removeRecords } from "./writers";

/**
 * Matched records, and what is planned for matched deals, are asked for by their ids, because the CRM tells of deals alone that
 * they are gone: what is deleted, merged, archived or no longer shown to the user is left out of the answer. One look that leaves
 * it out proves nothing. So is what could not be read once: mended in the CRM, or here, it is no change that a list would tell.
 */
const PROBED = [
  { entity: "DEAL", resource: "DEALS" },
  { entity: "PERSON", resource: "PERSONS" },
  { entity: "ORGANIZATION", resource: "ORGANIZATIONS" },
] as const satisfies { entity: MatchedEntity; resource: keyof typeof LISTS }[];
const PLANNED = { entity: "ACTIVITY", resource: "ACTIVITIES" } as const;
const BY_IDS = [...PROBED, PLANNED] as const;
type Probed = (typeof BY_IDS)[number];

/** A round through the matched records goes on in parts, of more than 10,000 records in several, or where many fail. 1,000 tokens. */
const REQUESTS_A_PART = 100;
/**
 * From one part to the next. What vanishes just after it was looked at is to be gone within a day, and the part's run may
 * come an hour after it is due, and the second look ten minutes after that.
 */
const PARTS_APART_MS = 22 * HOUR_MS;
/** From a part of which something failed to the next one, and twice as long each time that it fails again. */
const RETRY_MS = 4 * HOUR_MS;
const retryMs = (failures: number) => Math.min(PARTS_APART_MS, RETRY_MS * 2 ** failures);
/** A batch that fails may do so for one of its records: in so many requests that one is found among a hundred. */
const REQUESTS_A_BATCH = 18;
/** So many of it are asked for alone, to tell that from a CRM that fails; fewer where an answer may take half a minute. */
const ALONE = { inTime: 3, late: 2 };
/** An answer by ids is one page, or a few where records are large. */
const MAX_PAGES = 10;
/** What of a meeting is asked for who takes part: 40 tokens. */
const DEALS_OF_MEETING = 4;
/** Of a deal so many planned activities are asked for: the next ones, and then the oldest of those that are overdue. */
const PLANNED_OF_DEAL = 10;

/**
 * The next part of the matched records, and those again that the CRM left out ten minutes ago or longer.
 * @param looksAgain not in each turn of a run to its end: where an answer takes as long as a turn, no turn would have another
 */
export async function probeMatched(context: RunContext, looksAgain: boolean): Promise<void> {
  for (const probed of looksAgain ? BY_IDS : []) await lookAgain(context, probed);
  await probePart(context);
}

/** Brings what a meeting is about up to date: its records by their ids, and who takes part in its likeliest deals. Its lists are the run's. */
export async function refreshMeeting(context: RunContext, meetingId: string): Promise<void> {
  const { copy, apis, clock } = context;
  const looks = looksOf(0);
  for (const probed of PROBED) {
    const ids = await matchedOf(copy, probed.entity, meetingId);
    if (ids.length > 0) await lookThrough(context, apis.MEETINGS, probed, ids, looks);
  }
  await lookAtPlanned(context, apis.MEETINGS, await matchedOf(copy, "DEAL", meetingId), looks);
  const walk = { mark: clock(), rule: await readRule(copy) };
  const marks = { mark: walk.mark, ruleOfOne: walk.rule.holds };
  const deals = await dealsOfMeeting(copy, meetingId, marks, DEALS_OF_MEETING);
  const lanes = lanesOf(context);
  const answers = await askBatch(context, apis.MEETINGS, deals, lanes);
  await commitAnswers(context, apis.MEETINGS, walk, answers);
  if (lanes.ending) throw lanes.ending;
}

/** An answer that fails says nothing of any record. @returns what it failed for; null where it did not */
async function unlessItFails(
  { logger, isStopped }: RunContext,
  { resource }: Probed,
  work: () => Promise<void>,
): Promise<CrmFailure | null> {
  try {
    await work();
    return null;
  } catch (error) {
    if (!isListFailure(error) || isStopped()) throw error;
    logger.warn({ resource, code: error.code, ...error.detail }, "matched records could not be asked for");
    return error.code;
  }
}

/** What was left out long enough ago is asked for again. */
async function lookAgain(context: RunContext, probed: Probed): Promise<void> {
  const { copy, apis, clock, mustPause } = context;
  while (!mustPause()) {
    const ids = await missedBefore(copy, probed.resource, clock(), null);
    if (ids.length === 0) return;
    await lookThrough(context, apis.LISTS, probed, ids, looksOf(0));
    await noteFailedLooks(copy, probed.resource, ids, clock());
  }
}

/** What looks have cost, and what became of them. */
interface Looks {
  requests: number;
  /** So many at most, but that each batch is asked for once. */
  readonly most: number;
  /** Something may be answered later that was not now. */
  hasFailed: boolean;
  /** Of a record for which the CRM fails alone: whether that is to be told. */
  readonly tells: (failure: CrmFailure) => boolean;
  /** With the next number others are asked for alone. */
  readonly round: number;
}

const looksOf = (most: number, round = 0, tells: Looks["tells"] = () => false): Looks => ({
  ...{ requests: 0, most, hasFailed: false },
  ...{ tells, round },
});

/**
 * Looks at a batch, and where that fails at its halves, and at theirs: one record keeps no other from being looked at. But first
 * at some alone: where none of them is answered either, it is the CRM that fails.
 * @returns whether those that follow may be answered
 */
async function lookThrough(
  context: RunContext,
  api: CrmApi,
  probed: Probed,
  batch: readonly number[],
  looks: Looks,
): Promise<boolean> {
  const unanswered = new Map<number, CrmFailure>();
  const isAnswered = async (ids: readonly number[]) => {
    const failure = await unlessItFails(context, probed, () => look(context, api, probed, ids));
    looks.requests += 1;
    if (failure === null) return true;
    looks.hasFailed ||= isPassing(failure);
    const [id = 0, ...more] = ids;
    if (more.length === 0 && looks.tells(failure)) unanswered.set(id, failure);
    return false;
  };
  // Where the turn is over others wait: one among a hundred is found, and of several the rest is left to the next round.
  const late = Math.min(looks.most, looks.requests + REQUESTS_A_BATCH);
  const mayGoOn = () => looks.requests < (context.mustPause() ? late : looks.most) && !context.isStopped();
  const isOneAnswered = async (ids: readonly number[]) => {
    for (const id of ids) if (mayGoOn() && (await isAnswered([id]))) return true;
    return false;
  };
  if (await isAnswered(batch)) return true;
  const alone = someOf(batch, context.mustPause() ? ALONE.late : ALONE.inTime, looks.round);
  if (batch.length > 1 && !(await isOneAnswered(alone))) return false;
  const pieces = halvesOf(batch);
  for (const ids of pieces) {
    if (!mayGoOn()) break;
    if (!(await isAnswered(ids))) pieces.push(...halvesOf(ids));
  }
  for (const [id, failure] of unanswered) await noteUnanswered(context, probed, id, failure);
  return true;
}

const halvesOf = (ids: readonly number[]): (readonly number[])[] => {
  const half = Math.ceil(ids.length / 2);
  return half < ids.length ? [ids.slice(0, half), ids.slice(half)] : [];
};

/** The first, the middle and the last; those that follow them in the next round. */
const someOf = (ids: readonly number[], most: number, round: number): readonly number[] => {
  const places = [0, Math.floor(ids.length / 2), ids.length - 1].map((place) => (place + round) % ids.length);
  return ids.filter((_id, place) => places.slice(0, most).includes(place));
};

/** To its end, also where the turn is over: its deals' place is behind it. @returns as `lookThrough` */
async function lookAtPlanned(
  context: RunContext,
  api: CrmApi,
  dealIds: readonly number[],
  looks: Looks,
): Promise<boolean> {
  const { copy, clock, isStopped } = context;
  const ids = dealIds.length > 0 ? await plannedOf(copy, dealIds, clock()) : [];
  for (let from = 0; from < ids.length && !isStopped(); from += MAX_IDS)
    if (!(await lookThrough(context, api, PLANNED, ids.slice(from, from + MAX_IDS), looks))) return false;
  return true;
}

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
  const gone = await missedBefore(context.copy, resource, clock(), leftOut);
  if (gone.length > 0) await requireSight(context, probed);
  await commitPiece(context, resource, async (copy): Promise<StepChange> => {
    // Who is kept out leaves as well, and is not shown as deleted before this.
    const stored = await storable(context.keepOut, copy, resource, answer);
    const deleted = stored.records.filter(isDeleted).map(({ id }) => id);
    const written = await judged(context, copy, resource, [...deleted, ...gone], async () => {
      const page = await stored.write(copy, clock());
      const unchanged = records.length - page.ids.length - page.removed;
      const removed = page.removed + (await removeRecords(copy, list.entity, gone, clock()));
      await askForActivities(copy, list.entity, gone);
      return { ...page, gone: [...page.gone, ...gone], unchanged, removed };
    });
    await seen(copy, resource, [...shown]);
    const known = { ...stored, records: [...stored.records, ...gone.map((id) => ({ id }))] };
    await keepAside(copy, resource, known, clock());
    await forgetMissed(copy, resource, [...shown, ...gone]);
    const missed = leftOut.filter((id) => !gone.includes(id));
    await noteMissed(copy, resource, missed, clock());
    const { ids: changed, unchanged, removed } = written;
    const counts = { fetched: shown.size, written: changed.length, unchanged, removed, rejected: rejected.length };
    return { requests: pages.length, ...counts };
  });
}

/**
 * A record that was asked for alone and was not answered is one that could not be read: a gap in answers, and for the operator, until it is
 * shown. What was kept of it before says more.
 */
function noteUnanswered(context: RunContext, { resource }: Probed, id: number, failure: CrmFailure) {
  return commitPiece(context, resource, async ({ tenantId, copyId, rows }) => {
    await rows(
      `INSERT INTO rejected_record (tenant_id, copy_id, resource, record_key, reason, payload, since, seen_at)
       VALUES ($1, $2, $3, $4, $5, 'null', $6, $6)
       ON CONFLICT (tenant_id, copy_id, resource, record_key) DO UPDATE SET seen_at = EXCLUDED.seen_at`,
      [tenantId, copyId, resource, String(id), `asked for by its id: ${failure}`, context.clock()],
    );
    return { ...NO_CHANGE, requests: 1, fetched: 1, rejected: 1 };
  });
}

/** Who is shown much less than before may be deactivated, or somebody else, by now. @throws where it is so */
async function requireSight(context: RunContext, probed: Probed): Promise<void> {
  const { verify, logger, clock } = context;
  const absence = await countMissed(context.copy, probed, clock());
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

async function countMissed(copy: CopyScope, { resource, entity }: Probed, now: Date): Promise<Absence> {
  const { tenantId, copyId, rows } = copy;
  const matched = (of: string) =>
    `SELECT DISTINCT m.crm_id AS id FROM matched_record m WHERE m.tenant_id = $1 AND m.copy_id = $2 AND m.entity = ${of}`;
  const held = entity === "ACTIVITY" ? plannedFor(`(${matched("'DEAL'")}) one`) : matched("$4");
  const [count] = await rows<Absence>(
    `SELECT count(x.crm_id)::int AS absent, count(*)::int AS held FROM (${held}) held LEFT JOIN missed_record x
       ON x.tenant_id = $1 AND x.copy_id = $2 AND x.resource = $3 AND x.crm_id = held.id AND x.missed_at IS NOT NULL`,
    [tenantId, copyId, resource, ...(entity === "ACTIVITY" ? [now] : [entity])],
    { absent: "number", held: "number" },
  );
  return count ?? { absent: 0, held: 0 };
}

/** What is refused would be so again in hours, and each time the whole part for it. What may pass is told where it did not by the next part. */
const isPassing = (failure: CrmFailure) => failure === "UNAVAILABLE" || failure === "UNREADABLE";

/** A part of a round through the matched records, from where it stands. */
async function probePart(context: RunContext): Promise<void> {
  const { copy, apis, clock, mustPause, isStopped } = context;
  const where = { tenantId: copy.tenantId, id: copy.copyId };
  const present = await copy.typed((orm) => orm.findOneBy(SyncedCopyRow, where));
  if (!present) throw new RunLostError("the copy is purged");
  const { probedAt, probeFailures } = present;
  const waitedMs = probedAt ? clock().getTime() - probedAt.getTime() : PARTS_APART_MS;
  if (waitedMs >= 0 && waitedMs < PARTS_APART_MS) return;
  // A statement of its own, as in the rule of one: it must not wait within a transaction that shares the copy's row.
  const save = (change: Partial<SyncedCopyRow>) => copy.typed((orm) => orm.update(SyncedCopyRow, where, change));
  let { probeCursor, probeFailed } = present;
  let asksPlanned = true;
  const beganAt = clock();
  const tells = (failure: CrmFailure) => probeFailures > 0 || !isPassing(failure);
  const looks = looksOf(REQUESTS_A_PART + REQUESTS_A_BATCH, probeFailures, tells);
  while (looks.requests < REQUESTS_A_PART) {
    if (mustPause()) return;
    const next = await nextMatched(copy, probeCursor);
    probeCursor = next?.cursor ?? null;
    if (!next) break;
    const { probed, ids } = next;
    if (!(await lookThrough(context, apis.LISTS, probed, ids, looks))) probeCursor = endOf(probed);
    else if (probed.entity === "DEAL" && asksPlanned)
      asksPlanned = await lookAtPlanned(context, apis.LISTS, ids, looks);
    probeFailed ||= looks.hasFailed;
    // What it was called off from has its place before it.
    if (isStopped()) return;
    await save({ probeCursor, probeFailed });
  }
  const earlyMs = probeFailed ? PARTS_APART_MS - retryMs(probeFailures) : 0;
  const failures = { probeFailed: false, probeFailures: probeFailed ? probeFailures + 1 : 0 };
  await save({ probedAt: new Date(clock().getTime() - earlyMs), probeCursor, ...failures });
  // Behind that: what is slow, or fails each time, is asked for once a part, and holds up nothing.
  for (const probed of BY_IDS) {
    const ids = isStopped() ? [] : await rejectedOf(copy, probed.resource, beganAt, clock());
    const day = Math.floor(beganAt.getTime() / PARTS_APART_MS);
    if (ids.length > 0) await lookThrough(context, apis.LISTS, probed, ids, looksOf(REQUESTS_A_BATCH, day));
  }
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

/** SQL: what is planned for those of some deals that are open. @param deals SQL: `one`, with an `id`; $4: now */
const plannedFor = (deals: string) => `
  SELECT a.crm_id AS id FROM ${deals} CROSS JOIN LATERAL (
    SELECT t.crm_id FROM activity t
    WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.deal_id = one.id AND t.happened_at IS NULL AND NOT t.done
    ORDER BY t.due_at < $4::timestamptz, t.due_at, t.crm_id LIMIT ${PLANNED_OF_DEAL}) a
  WHERE EXISTS (SELECT 1 FROM ${rowsOf("deal", "crm_id", "one.id")} d WHERE d.status = 'open')`;

async function plannedOf(
  { tenantId, copyId, rows }: CopyScope,
  dealIds: readonly number[],
  now: Date,
): Promise<number[]> {
  const sql = `${plannedFor("unnest($3::bigint[]) AS one (id)")} ORDER BY id`;
  return (await rows<{ id: number }>(sql, [tenantId, copyId, dealIds, now], { id: "number" })).map(({ id }) => id);
}

/** What could not be read, by ids, what was not shown for longest first; not what has just been seen so. */
async function rejectedOf(
  { tenantId, copyId, rows }: CopyScope,
  resource: string,
  beganAt: Date,
  now: Date,
): Promise<number[]> {
  const found = await rows<{ id: number }>(
    `SELECT x.record_key::bigint AS id FROM rejected_record x
     WHERE x.tenant_id = $1 AND x.copy_id = $2 AND x.resource = $3 AND x.record_key ~ '^[1-9][0-9]{0,14}$'
       AND x.seen_at NOT BETWEEN $4 AND $5
     ORDER BY x.seen_at, x.record_key LIMIT ${MAX_IDS}`,
    [tenantId, copyId, resource, beganAt, now],
    { id: "number" },
  );
  return found.map(({ id }) => id);
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
