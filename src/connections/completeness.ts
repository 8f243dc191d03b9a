import { type CopyScope } from "../database/database";
import { listOf, ms } from "../database/rows";
import { MAIN_LISTS, SYNC_LISTS } from "../entities/sync-list";
import { type GapCode, type GapSummary, SYNC_RESOURCES, type SyncResource } from "../entities/sync-run";
import { DAY_MS } from "../platform/clock";

/** Of a list of the CRM up to when the copy has all of it, and when it was last read to its end. */
export type ListMarks = [resource: SyncResource, watermark: number | null, readAt: number | null];
/** SQL: of each list of the copy $2. */
export const MARKS = listOf(
  ...["l.resource", ms("l.watermark"), ms("l.read_at")],
  "sync_list l WHERE l.tenant_id = $1 AND l.copy_id = $2",
);

/** The oldest watermark of lists; null where one of them was never read to its end. */
export function oldestOf(states: readonly ListMarks[], lists: readonly SyncResource[]): number | null {
  const marks = states.flatMap(([resource, mark]) => (mark !== null && lists.includes(resource) ? [mark] : []));
  return marks.length === lists.length ? Math.min(...marks) : null;
}

/** What is missing of a resource for one reason: how often, and since when. */
type Missing = [resource: SyncResource, count: number, since: number];

/** How whole a copy is. */
export interface CopyState {
  createdAt: number;
  lists: ListMarks[];
  /** Of whole resources. */
  gaps: [resource: SyncResource, code: GapCode, since: number, message: string][];
  unreadable: Missing[];
  notShown: Missing[];
}

/** Of whose participants nothing is known: they were asked for in vain, or nobody asked yet. */
export interface UnreadParticipants {
  failed: (readonly [code: GapCode, count: number, since: number, message: string])[];
  unasked: readonly [count: number, since: number | null];
}

/** SQL: rows of a resource as one, with the oldest of their instants. */
const byResource = (since: string, from: string) =>
  listOf(
    ...["x.resource", "x.count", ms("x.since")],
    `(SELECT r.resource, count(*) AS count, min(${since}) AS since FROM ${from} GROUP BY r.resource) x`,
  );
/** Of all resources by its key: single deals' gaps may be many. */
const WHOLE = `data_gap g WHERE g.tenant_id = $1 AND g.copy_id = $2 AND g.resource = ANY ('{${SYNC_RESOURCES}}') AND g.crm_id = 0`;

export async function readCopyState({ tenantId, copyId, rows }: CopyScope): Promise<CopyState> {
  const [found] = await rows<CopyState>(
    `SELECT ${ms("c.created_at")} AS "createdAt", ${MARKS} AS lists,
       ${listOf("g.resource", "g.code", ms("g.since"), "g.message", WHOLE)} AS gaps,
       ${byResource("r.since", `rejected_record r WHERE r.tenant_id = $1 AND r.copy_id = $2`)} AS unreadable,
       ${byResource("r.first_walk_ended_at", `sync_pass r WHERE r.tenant_id = $1 AND r.copy_id = $2 AND r.first_walk_ended_at IS NOT NULL`)} AS "notShown"
     FROM synced_copy c WHERE c.tenant_id = $1 AND c.id = $2`,
    [tenantId, copyId],
    { createdAt: "number", lists: "json", gaps: "json", unreadable: "json", notShown: "json" },
  );
  return found ?? GONE;
}

const GONE: CopyState = { createdAt: 0, lists: [], gaps: [], unreadable: [], notShown: [] };

/** Those that were asked for in vain have a gap of their own. Not by NOT EXISTS: without statistics all gaps were gone through for each deal. */
const UNASKED = `deal d WHERE d.tenant_id = $1 AND d.copy_id = $2 AND d.participants_due AND NOT d.participants_known
  AND (SELECT 1 FROM data_gap g
    WHERE g.tenant_id = $1 AND g.copy_id = $2 AND g.resource = 'DEAL_PARTICIPANTS' AND g.crm_id = d.crm_id) IS NULL`;

const FAILED = `(SELECT g.code, count(*) AS count, min(g.since) AS since, min(g.message) AS message FROM data_gap g
  WHERE g.tenant_id = $1 AND g.copy_id = $2 AND g.resource = 'DEAL_PARTICIPANTS' AND g.crm_id > 0 AND ($3 OR EXISTS (
    SELECT 1 FROM deal d WHERE d.tenant_id = $1 AND d.copy_id = $2 AND d.crm_id = g.crm_id AND NOT d.participants_known))
  GROUP BY g.code) x`;
const UNREAD = `SELECT ${listOf("x.code", "x.count", ms("x.since"), "x.message", FAILED)} AS failed,
  (SELECT json_build_array(count(*), ${ms("min(coalesce(d.add_time, 'epoch'))")}) FROM ${UNASKED}) AS unasked`;

/** Of all deals of the copy, or of those alone of which nobody is known to take part. */
export async function readUnread({ tenantId, copyId, rows }: CopyScope, of: "ALL" | "NOT_KNOWN") {
  const shape = { failed: "json", unasked: "json" } as const;
  const [unread] = await rows<UnreadParticipants>(UNREAD, [tenantId, copyId, of === "ALL"], shape);
  return unread ?? { failed: [], unasked: [0, null] as const };
}

/** A deal of which it may not be known who takes part. @property gap why, where it was asked for in vain */
export interface UnreadDeal {
  crmId: number;
  isDue: boolean;
  addedAt: number | null;
  gap: [code: GapCode, since: number, message: string] | null;
}

/** Deals of which it is not known who takes part, for one reason. @property code null: nobody asked yet */
export interface UnreadDeals {
  code: GapCode | null;
  count: number;
  since: number;
  message: string | null;
}

/** Records of a resource that others name and that are not held. */
export type NotHeld = Readonly<Partial<Record<SyncResource, number>>>;

/** What an answer lacks: of it, of the deals that it is about, and of what its records name. */
export interface Lacking {
  state: CopyState;
  unread: UnreadParticipants;
  notHeld: NotHeld;
  /** How many deals were asked for their participants in the last day; null: none. */
  asked: number | null;
}

type Lack = Pick<GapSummary, "resource" | "code" | "count" | "message"> & { since: number };
const PARTICIPANTS = "DEAL_PARTICIPANTS";

const MESSAGES = {
  // Nobody knows to what a record that cannot be read belongs: it touches all.
  RECORDS_UNREADABLE: (records: string) =>
    `Some ${records} of the CRM could not be read; they are missing here, or as they were read before. Tell the operator of this service.`,
  // A walk that is to remove what it did not show waits for a second one to show the same.
  NOT_SHOWN: (records: string) =>
    `The CRM did not show many of the ${records} that are held here; they are kept until a second look shows the same.`,
  NOT_READ_YET: (records: string) =>
    `The ${records} of the CRM are still being read for the first time; some are missing here.`,
  RECORD_NOT_FOUND: (records: string) =>
    `Some ${records} that are named here are not shown to the user who authorized this service, or are gone from the CRM.`,
} satisfies Partial<Record<GapCode, (records: string) => string>>;
const NOT_ASKED_YET =
  "Who takes part in some deals was not read yet. Each deal takes a request of the company's budget for the day; those of meetings and open ones come first.";

const lackOf =
  (code: keyof typeof MESSAGES) =>
  ([resource, count, since]: Missing): Lack => ({
    ...{ resource, code, count, since },
    message: MESSAGES[code](resource.toLowerCase().replaceAll("_", " ")),
  });

/** In words, by resource and reason. */
export function gapsOf({ state, unread, notHeld, asked }: Lacking, now: Date): GapSummary[] {
  const { createdAt, lists, gaps, unreadable, notShown } = state;
  const read = new Map(
    lists.flatMap(([list, mark, readAt]) => (mark === null ? [] : [[list, readAt ?? mark] as const])),
  );
  const isSaid = new Set(gaps.map(([resource]) => resource));
  const neverRead = SYNC_LISTS.filter((list) => !read.has(list) && !isSaid.has(list));
  const [unasked, oldest] = unread.unasked;
  const lacks: Lack[] = [
    ...gaps.map(([resource, code, since, message]) => ({ resource, code, count: 1, since, message })),
    ...unread.failed.map(
      ([code, count, since, message]) => ({ resource: PARTICIPANTS, code, count, since, message }) as const,
    ),
    ...unreadable.map(lackOf("RECORDS_UNREADABLE")),
    ...notShown.map(lackOf("NOT_SHOWN")),
    ...neverRead.map((list) => lackOf("NOT_READ_YET")([list, 1, createdAt])),
    {
      ...{ resource: PARTICIPANTS, code: "NOT_READ_YET", count: unasked, message: NOT_ASKED_YET },
      since: Math.max(createdAt, oldest ?? createdAt),
    },
    // Of a list that was never read to its end nobody can say that a record of it is missing; that gap says more.
    ...[...read].map(([list, since]) => lackOf("RECORD_NOT_FOUND")([list, notHeld[list] ?? 0, since])),
  ];
  return summed(lacks.filter(({ count }) => count > 0)).map(({ since, ...lack }) => ({
    ...lack,
    since: new Date(since).toISOString(),
    expectedBy:
      lack.resource === PARTICIPANTS && lack.code === "NOT_READ_YET" ? expectedBy(lack.count, asked, now) : null,
  }));
}

/** Those of one resource and reason as one, in the order of their names. */
function summed(lacks: readonly Lack[]): Lack[] {
  const sums = new Map<string, Lack>();
  for (const lack of lacks) {
    const key = `${lack.resource} ${lack.code}`;
    const other = sums.get(key) ?? { ...lack, count: 0 };
    const message = lack.message < other.message ? lack.message : other.message;
    sums.set(key, { ...lack, message, count: other.count + lack.count, since: Math.min(other.since, lack.since) });
  }
  return [...sums].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, sum]) => sum);
}

export const areAwaited = ({ failed, unasked }: UnreadParticipants): boolean =>
  unasked[0] > 0 || failed.some(([code]) => code === "NOT_READ_YET");

/** How many deals were asked for their participants in the last day. */
export async function readAsked(copy: CopyScope, now: Date): Promise<number | null> {
  const [found] = await copy.rows<{ asked: number | null }>(
    `SELECT sum(s.requests)::int AS asked FROM sync_run r JOIN sync_step s ON s.tenant_id = $1 AND s.run_id = r.id AND s.resource = 'DEAL_PARTICIPANTS'
     WHERE r.tenant_id = $1 AND r.copy_id = $2 AND r.queued_at > $3`,
    [copy.tenantId, copy.copyId, new Date(now.getTime() - DAY_MS)],
    { asked: "number" },
  );
  return found?.asked ?? null;
}

/** All that the copy lacks. */
export async function readGaps(copy: CopyScope, now: Date): Promise<GapSummary[]> {
  const [state, unread] = await Promise.all([readCopyState(copy), readUnread(copy, "ALL")]);
  return gapsOf({ state, unread, notHeld: {}, asked: areAwaited(unread) ? await readAsked(copy, now) : null }, now);
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
export function asOf(
  states: readonly ListMarks[],
  main: readonly SyncResource[] = MAIN_LISTS,
  named: readonly SyncResource[] = SYNC_LISTS,
): Date | null {
  const known = named.filter((list) => states.some(([resource, mark]) => resource === list && mark !== null));
  const oldest = main.every((list) => known.includes(list)) ? oldestOf(states, known) : null;
  return oldest === null ? null : new Date(oldest);
}
