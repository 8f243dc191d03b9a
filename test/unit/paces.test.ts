import { SYNC_RESOURCES, type SyncResource } from "../../src/entities/sync-run";
import type { ListResource } from "../../src/sync/lists";
import { dueKind, dueLists, type Lists, nextRunAt, type Pace, type PaceFacts } from "../../src/sync/plan";
import { dealsApartMs } from "../../src/sync/schedule";

// Seen red with: no stretch; twice the interval at most near a meeting (5,224 tokens); each of the three lists by itself;
// nothing read along; the oldest whole read counted for a RECONCILE; a run at once where a list is never read to its end.

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const INTERVAL = 15 * MINUTE;
const now = new Date("2026-11-20T12:00:00Z");
const ago = (minutes: number) => new Date(now.getTime() - minutes * MINUTE);
const inMinutes = (minutes: number) => ago(-minutes);

const LISTS = SYNC_RESOURCES.filter((resource): resource is ListResource => resource !== "DEAL_PARTICIPANTS");
const READ = { quietReads: 0, muchGone: false, lateAt: null, isOpen: false, restsUntil: null, isUnread: false };
const NEW: PaceFacts = { readAt: now, wholeAt: now, ...READ };
const listsOf = (facts: Partial<PaceFacts>, others: Partial<Record<SyncResource, Partial<PaceFacts>>> = {}): Lists =>
  new Map(LISTS.map((list) => [list, { ...NEW, ...facts, ...others[list] }]));
const paceOf = (pace: Partial<Pace> = {}): Pace => ({ intervalMs: INTERVAL, nextMeetingAt: null, ...pace });
const dueOf = (lists: Lists, pace = paceOf()) => dueLists(lists, now, pace);

const MAIN = ["ORGANIZATIONS", "PERSONS", "DEALS", "ACTIVITIES", "NOTES"];
const SLOW = ["USERS", "PIPELINES", "STAGES"];

test("a list that changes is due at the interval, and what comes due soon is read along", () => {
  expect(dueOf(listsOf({ readAt: ago(11) }))).toEqual([]);
  expect(dueOf(listsOf({ readAt: ago(12) }))).toEqual(MAIN);
});

test("a list that a pass is under way through is due, and its next run comes at the interval", () => {
  const open = listsOf({ quietReads: 12 }, { NOTES: { isOpen: true, quietReads: 12 } });
  expect(dueOf(open)).toEqual(["NOTES"]);
  expect(minutesTo(open)).toBe(15);
});

test("users, pipelines and stages are due every four hours", () => {
  expect(dueOf(listsOf({}, { USERS: { readAt: ago(4 * 60 - 5) } }))).toEqual([]);
  expect(dueOf(listsOf({}, { USERS: { readAt: ago(4 * 60) } }))).toEqual(["USERS"]);
  expect(dueOf(listsOf({ readAt: ago(4 * 60) }))).toEqual([...SLOW, ...MAIN]);
});

test("what was never read to its end is due", () => {
  expect(dueOf(new Map())).toEqual([...SLOW, ...MAIN]);
  expect(dueOf(listsOf({}, { NOTES: { readAt: null } }))).toEqual(["NOTES"]);
});

test("what a clock far ahead has noted holds up no read", () => {
  const [century, soon] = [inMinutes(75 * 365 * 24 * 60), inMinutes(0.5)];
  expect(dueOf(listsOf({}, { NOTES: { readAt: century } }))).toEqual(["NOTES"]);
  expect(dueOf(listsOf({}, { NOTES: { readAt: soon } }))).toEqual([]);
  expect(minutesTo(listsOf({ readAt: century }))).toBe(15);
  expect(dueKind(listsOf({ wholeAt: century }), now, 30 * DAY)).toBe("RECONCILE");
  expect(dueKind(listsOf({}, { NOTES: { wholeAt: century } }), now, 30 * DAY)).toBe("INCREMENTAL");
});

test.each([
  [0, 15],
  [1, 15],
  [2, 30],
  [4, 45],
  [6, 60],
  [400, 60],
])("after %i reads without a change a list is due %i minutes after the last", (quietReads, minutes) => {
  const lists = listsOf({}, { NOTES: { readAt: ago(minutes), quietReads } });
  expect(dueOf(lists)).toEqual(["NOTES"]);
  expect(dueOf(listsOf({}, { NOTES: { readAt: ago(minutes - 4), quietReads } }))).toEqual([]);
});

// Seen red: without the limit a list was read once a day by six hours, and with one of 16 hours by twelve, since no run came then.
test.each([4, 5, 6, 7, 8, 11, 12, 13, 18])("by an interval of %i hours a quiet list is read within 20", (hours) => {
  const pace = paceOf({ intervalMs: hours * HOUR });
  const lists = new Map(listsOf({}));
  let [at, longest] = [now, 0];
  for (let run = 0; run < 200; run += 1) {
    at = nextRunAt(at, lists, pace, { missedAt: null, shortUntil: null }, (run * 0.618) % 1) ?? at;
    for (const list of dueLists(lists, at, pace)) {
      const { readAt, quietReads } = lists.get(list) ?? NEW;
      longest = Math.max(longest, at.getTime() - (readAt ?? now).getTime());
      lists.set(list, { ...NEW, readAt: at, quietReads: quietReads + 1 });
    }
  }
  expect(longest / HOUR).toBeLessThan(20);
});

test("organizations, persons and deals are read together, as often as the one that changes most", () => {
  const quiet = { readAt: ago(15), quietReads: 12 };
  expect(dueOf(listsOf(quiet))).toEqual([]);
  expect(dueOf(listsOf(quiet, { DEALS: { quietReads: 0 } }))).toEqual(["ORGANIZATIONS", "PERSONS", "DEALS"]);
});

test("while a meeting begins within two hours no list waits longer than two intervals and a half", () => {
  const quiet = listsOf({}, { NOTES: { readAt: ago(36), quietReads: 12 } });
  expect(dueOf(quiet, paceOf({ nextMeetingAt: inMinutes(120) }))).toEqual(["NOTES"]);
  expect(dueOf(quiet, paceOf({ nextMeetingAt: inMinutes(130) }))).toEqual([]);
});

const NOTHING = { missedAt: null, shortUntil: null };
const minutesTo = (
  lists: Lists,
  pace = paceOf(),
  waiting: Partial<typeof NOTHING | Record<string, Date>> = {},
  chance = 0.5,
) => {
  const at = nextRunAt(now, lists, pace, { ...NOTHING, ...waiting }, chance);
  return at && (at.getTime() - now.getTime()) / MINUTE;
};

test("runs come by the interval, a tenth sooner or later, and 0 means by request only", () => {
  const changing = listsOf({});
  expect([0, 0.5, 1].map((chance) => minutesTo(changing, paceOf(), {}, chance))).toEqual([13.5, 15, 16.5]);
  expect(minutesTo(changing, paceOf({ intervalMs: 0 }))).toBeNull();
});

test("the next run comes when the first list is due", () => {
  expect(minutesTo(listsOf({ quietReads: 12 }))).toBe(60);
  expect(minutesTo(listsOf({ quietReads: 12 }, { ACTIVITIES: { quietReads: 2 } }))).toBe(30);
});

// Seen red: what could not be read was due at each interval for ever.
test("what has failed is due when it has rested, by itself, and the others at their own pace, as what changed is beside a whole pass", () => {
  const fails = { readAt: ago(3_000), isOpen: true, isUnread: true, restsUntil: inMinutes(50) };
  const quiet = { quietReads: 12 };
  expect(dueOf(listsOf({ readAt: ago(60), ...quiet }, { PERSONS: fails }))).toEqual(
    MAIN.filter((list) => list !== "PERSONS"),
  );
  expect(dueOf(listsOf(quiet, { PERSONS: { ...fails, restsUntil: inMinutes(3) } }))).toEqual(["PERSONS"]);
  expect(minutesTo(listsOf(quiet, { PERSONS: fails }))).toBe(50);
  expect(minutesTo(listsOf(quiet, { PERSONS: { ...fails, restsUntil: now } }))).toBe(15);
  expect(minutesTo(listsOf({ ...fails, restsUntil: inMinutes(240) }))).toBe(240);
  expect(dueOf(listsOf({}, { NOTES: { ...fails, restsUntil: inMinutes(25 * 60) } }))).toEqual(["NOTES"]);
  const rests = { isOpen: true, restsUntil: inMinutes(50) };
  expect(dueOf(listsOf({}, { NOTES: { ...rests, readAt: ago(11) } }))).toEqual([]);
  expect(dueOf(listsOf({}, { NOTES: { ...rests, readAt: ago(12) } }))).toEqual(["NOTES"]);
  expect(minutesTo(listsOf({ quietReads: 12 }, { NOTES: { ...rests, quietReads: 12 } }))).toBe(50);
});

test("a meeting brings the next run forward: its last two hours, and five minutes before it begins", () => {
  const quiet = listsOf({ quietReads: 12 });
  expect(minutesTo(quiet, paceOf({ nextMeetingAt: inMinutes(165) }))).toBe(45);
  expect(minutesTo(quiet, paceOf({ nextMeetingAt: inMinutes(20) }))).toBe(15);
  expect(minutesTo(quiet, paceOf({ nextMeetingAt: inMinutes(3) }))).toBe(1);
});

test("a record that was missed gets its second look ten minutes later", () => {
  expect(minutesTo(listsOf({ quietReads: 12 }), paceOf(), { missedAt: now })).toBe(10);
  expect(minutesTo(listsOf({ quietReads: 12 }), paceOf(), { missedAt: ago(60) })).toBe(60);
});

test("while the company's tokens are needed for others the next run waits, whatever is due", () => {
  expect(minutesTo(listsOf({}), paceOf(), { missedAt: now, shortUntil: inMinutes(300) })).toBe(300);
  expect(minutesTo(listsOf({}), paceOf(), { shortUntil: inMinutes(5) })).toBe(15);
});

test.each([
  [30 * DAY, "RECONCILE"],
  [30 * DAY - 1, "INCREMENTAL"],
])("%i ms after everything was read the schedule makes a run %s", (ms, kind) => {
  const wholeAt = new Date(now.getTime() - ms);
  expect(dueKind(listsOf({ wholeAt }, { DEALS: { wholeAt: now } }), now, 30 * DAY)).toBe(kind);
  expect(dueKind(listsOf({ wholeAt }), now, 0)).toBe("INCREMENTAL");
});

// Seen red: what a user saw again came back after a month.
test.each([
  [DAY, "RECONCILE"],
  [DAY - 1, "INCREMENTAL"],
])("%i ms after much was gone the schedule makes a run %s", (ms, kind) => {
  const lists = listsOf({ wholeAt: new Date(now.getTime() - ms) }, { DEALS: { muchGone: true } });
  expect(dueKind(lists, now, 30 * DAY)).toBe(kind);
  expect(dueKind(lists, now, 0)).toBe("INCREMENTAL");
  expect(dueKind(listsOf({ wholeAt: now }, { DEALS: { wholeAt: new Date(0), muchGone: true } }), now, DAY)).toBe(
    "INCREMENTAL",
  );
});

// Seen red: all lists were walked whole each day, for as long as that one could not be read.
test("a list of which much was gone, and that its next walk cannot read, has the others walked no more for it", () => {
  const unread = (days: number) => ({ PERSONS: { wholeAt: ago(days * 24 * 60), muchGone: true, isOpen: true } });
  expect(dueKind(listsOf({ wholeAt: ago(25 * 60) }, unread(2)), now, 30 * DAY)).toBe("INCREMENTAL");
  expect(dueKind(listsOf({ wholeAt: ago(30 * 24 * 60) }, unread(31)), now, 30 * DAY)).toBe("RECONCILE");
});

test("a list that cannot be read does not make every run a reconciling one, nor does a first sync under way", () => {
  const unread = { PERSONS: { wholeAt: ago(40 * 24 * 60) } };
  expect(dueKind(listsOf({}, unread), now, 30 * DAY)).toBe("INCREMENTAL");
  expect(dueKind(listsOf({ wholeAt: ago(31 * 24 * 60) }, unread), now, 30 * DAY)).toBe("RECONCILE");
  expect(dueKind(new Map(), now, 30 * DAY)).toBe("INCREMENTAL");
});

test.each([
  [5_000, 1],
  [7_500, 1],
  [100_000, 40 / 3],
])("%i deals are walked whole every %f days, at 7,500 tokens a day", (deals, days) => {
  expect(dealsApartMs([["DEALS", deals]], 7_500) / DAY).toBeCloseTo(days, 1);
});

const PRICES: Record<ListResource, number> = {
  USERS: 20,
  PIPELINES: 5,
  STAGES: 5,
  ORGANIZATIONS: 10,
  PERSONS: 10,
  DEALS: 10,
  ACTIVITIES: 10,
  NOTES: 20,
};
const WHO = 2;
/** Of a meeting: records by their ids, and participants of four deals. */
const REFRESH = 30 + 40;
const REFRESHED: readonly ListResource[] = ["ACTIVITIES", "NOTES"];
/** A day's probes of 1,000 matched records of each kind, and a whole walk through as many deals. */
const DAILY = 300 + 20;

/** What a day costs in which nothing changes, by what the schedule decides; as the engine does it, in no time. */
function tokensOfDay(meetings: readonly Date[]): number {
  const begin = now.getTime();
  const lists = new Map(LISTS.map((list) => [list, NEW]));
  const waiting = [...meetings].sort((a, b) => a.getTime() - b.getTime());
  let tokens = DAILY;
  for (let at = now; at.getTime() < begin + DAY; ) {
    const pace = paceOf({ nextMeetingAt: waiting[0] ?? null });
    const isRefreshed = pace.nextMeetingAt !== null && at.getTime() >= pace.nextMeetingAt.getTime() - 5 * MINUTE;
    if (isRefreshed) waiting.shift();
    const read = new Set([...dueLists(lists, at, pace), ...(isRefreshed ? REFRESHED : [])]);
    for (const list of read) {
      lists.set(list, { ...NEW, readAt: at, quietReads: (lists.get(list)?.quietReads ?? 0) + 1 });
      tokens += PRICES[list];
    }
    tokens += WHO + (isRefreshed ? REFRESH : 0);
    const after = paceOf({ nextMeetingAt: waiting[0] ?? null });
    const next = nextRunAt(at, lists, after, NOTHING, ((tokens * 7) % 11) / 10);
    if (!next) throw new Error("nothing is planned");
    at = next;
  }
  return tokens;
}

test("a day in which nothing changes costs at most 3,000 tokens, with 20 meetings 5,000, however they lie", () => {
  expect(tokensOfDay([])).toBeLessThanOrEqual(3_000);
  for (const everyMinutes of [5, 24, 30, 60, 72]) {
    const meetings = Array.from({ length: 20 }, (_, n) => inMinutes(60 + n * everyMinutes));
    expect(tokensOfDay(meetings)).toBeLessThanOrEqual(5_000);
  }
});
