import { CrmError } from "../../src/crm/errors";
import { DAY_MS } from "../../src/platform/clock";
import { restOf } from "../../src/sync/failures";
import { isMuch } from "../../src/sync/gone";
import { type ListState, passOf } from "../../src/sync/passes";
import {
  clockOf,
  dueKind,
  type ListFacts,
  type Lists,
  type PassKind,
  passesOf,
  rests,
  sinceOf,
} from "../../src/sync/plan";
import { lateApartMs } from "../../src/sync/schedule";

// Seen red with: a watermark without overlap.

const now = new Date("2026-11-20T12:00:00Z");
const ago = (minutes: number) => new Date(now.getTime() - minutes * 60_000);
const STALE_MS = 15 * 60_000;

test("a list is asked for what changed since five minutes before its watermark, in whole seconds, and not before 1970", () => {
  expect(sinceOf(new Date("2026-11-20T11:45:30.700Z"))).toEqual(new Date("2026-11-20T11:40:30.000Z"));
  expect(sinceOf(new Date(5_000))).toEqual(new Date(0));
});

test("a pass is complete from the lesser of the CRM's clock and ours on", () => {
  expect(clockOf(new Date("2099-01-01T00:00:00Z"), now)).toEqual(now);
  expect(clockOf(new Date("1970-01-02T00:00:00Z"), now)).toEqual(new Date("1970-01-02T00:00:00Z"));
  expect(clockOf(null, now)).toEqual(now);
});

test.each([
  ["that never had to begin anew does not rest", null, null, false],
  ["that had to for the first time goes on with the next run", 5, 5, false],
  ["that had to again after twenty minutes rests as long", 30, 10, true],
  ["is begun anew when it has rested", 30, 16, false],
  ["rests a day at most", 30 * 24 * 60, 25 * 60, false],
  ["that a clock far ahead has noted does not rest", 30, -10_000, false],
])("a pass %s", (_title, inVain, anew, expected) => {
  const at = (minutes: number | null) => (minutes === null ? null : ago(minutes));
  expect(rests({ inVainSince: at(inVain), begunAnewAt: at(anew) }, now)).toBe(expected);
});

test.each([
  ["UNAVAILABLE", 0, 0],
  ["UNAVAILABLE", 20, 20],
  ["UNAVAILABLE", 300, 60],
  ["UNREADABLE", 300, 60],
  ["REFUSED", 60, 60],
  ["REFUSED", 30 * 24 * 60, 240],
  ["NOT_FOUND", 30 * 24 * 60, 240],
  ["REFUSED", -100_000, 0],
] as const)("a list that fails with %s for %i minutes rests for %i more", (code, failed, minutes) => {
  expect(restOf(new CrmError(code, ""), ago(failed), now)).toEqual(ago(-minutes));
});

test("a list that has no end rests for a day at most", () => {
  const restFor = (days: number) => restOf(new CrmError("UNREADABLE", "", { endless: true }), ago(days * 24 * 60), now);
  expect([restFor(1 / 2), restFor(9)]).toEqual([ago(-12 * 60), ago(-24 * 60)]);
});

const read = (minutes: number) => ({ watermark: ago(minutes), readAt: ago(minutes) });
test.each<[string, Partial<ListFacts>, PassKind[]]>([
  ["never read", { list: null }, ["WHOLE"]],
  ["never read to its end", { list: { watermark: null, readAt: null }, wholeIsOpen: true }, ["WHOLE"]],
  ["read a minute ago", { list: read(1) }, ["CHANGES"]],
  ["read a minute ago, and done with in this run", { list: read(1), isDone: true }, []],
  ["done with in this run, which has taken long since", { list: read(20), isDone: true }, ["CHANGES"]],
  ["read a minute ago, and to be read whole", { list: read(1), wholeIsOpen: true }, ["WHOLE"]],
  ["read long ago, and to be read whole", { list: read(20), wholeIsOpen: true }, ["CHANGES", "WHOLE"]],
  [
    "read a minute ago in part, by an earlier run",
    { list: read(1), begunBefore: new Set(["CHANGES"]) },
    ["CHANGES", "CHANGES"],
  ],
  [
    "read whole in part, by an earlier run",
    { list: read(1), wholeIsOpen: true, begunBefore: new Set(["WHOLE"]) },
    ["CHANGES", "WHOLE"],
  ],
  [
    "never read to its end, by an earlier run",
    { list: null, wholeIsOpen: true, begunBefore: new Set(["WHOLE"]) },
    ["WHOLE", "CHANGES"],
  ],
  [
    "read by a clock that was ahead, and to be read whole",
    { list: read(-100_000), wholeIsOpen: true },
    ["CHANGES", "WHOLE"],
  ],
  ["small, read long ago", { list: read(20), tellsChanges: false }, ["WHOLE"]],
  ["small, and done with in this run", { list: read(20), tellsChanges: false, isDone: true }, []],
])("the passes through a list that was %s", (_case, facts, passes) => {
  const usual = { tellsChanges: true, list: null, wholeIsOpen: false, begunBefore: new Set<PassKind>(), isDone: false };
  expect(passesOf({ ...usual, ...facts }, now, STALE_MS)).toEqual(passes);
});

test.each([
  [500, 500, true],
  [3, 3, true],
  [3, 500, false],
  [100, 150, false],
  [101, 150, true],
  [101, 300, false],
])("%i not seen among %i held has to be proven: %s", (absent, held, much) => {
  expect(isMuch({ absent, held })).toBe(much);
});

// Planted and seen red: what the CRM shows a little late was never read; a whole pass was shown what changed alone, and removed
// all others; so did one for what changed; a list walked twice before it was ever read; one asked for anew that was read ahead.
test("a pass that begins asks for what changed since before the watermark, or for all, and only a small list's removes", () => {
  const watermark = new Date("2026-11-20T11:45:30.700Z");
  const state: ListState = {
    ...{ list: { watermark, readAt: now }, payers: { WHOLE: "LISTS", CHANGES: "LISTS" }, passes: new Map() },
    ...{ hasRejected: false, unknown: [], ahead: null, whenRead: null },
  };
  const begun = (...of: Parameters<typeof passOf>) => {
    const { updatedSince, removes } = passOf(...of);
    return { updatedSince, removes };
  };
  const all = { updatedSince: null, removes: false };
  expect(begun(state, "DEALS", "CHANGES")).toEqual({ ...all, updatedSince: sinceOf(watermark) });
  expect(begun(state, "DEALS", "WHOLE")).toEqual(all);
  expect(begun(state, "STAGES", "WHOLE")).toEqual({ ...all, removes: true });
  expect(begun({ ...state, list: null }, "STAGES", "WHOLE")).toEqual(all);
  const pass = passOf(state, "DEALS", "CHANGES");
  expect(passOf({ ...state, ahead: { pass, pages: (async function* () {})() } }, "DEALS", "CHANGES")).toBe(pass);
});

// Seen red with: one day for every size; a walk that leaves nothing to what changed; a deal that came before the last walk.
test("where a deal came late, all lists are walked as soon as a fifth of the days pays for it twice, and half of one does", () => {
  const wholeAt = ago(3 * 24 * 60);
  const kindFor = (records: number, lateAt: Date | null = ago(60)) => {
    const fact = {
      ...{ readAt: wholeAt, wholeAt, quietReads: 0, muchGone: false, lateAt },
      ...{ isOpen: false, restsUntil: null, isUnread: false },
    };
    const lists: Lists = new Map([
      ["PERSONS", fact],
      ["DEALS", fact],
    ]);
    const counts: Parameters<typeof lateApartMs>[0] = [
      ["PERSONS", records],
      ["NOTES", records],
    ];
    return dueKind(lists, now, 30 * DAY_MS, lateApartMs(counts, 7_500));
  };
  expect([kindFor(1), kindFor(31_000), kindFor(32_000)]).toEqual(["RECONCILE", "RECONCILE", "INCREMENTAL"]);
  expect([kindFor(1, null), kindFor(1, ago(4 * 24 * 60))]).toEqual(["INCREMENTAL", "INCREMENTAL"]);
  expect(lateApartMs([["PERSONS", 50_000]], 7_500) / DAY_MS).toBeCloseTo(4 / 3, 5);
});

// Seen red: a month after the last list could be read whole, each run walked all deals.
test("where a RECONCILE is asked for of each list and none can be read, no run is one", () => {
  const fact = {
    ...{ readAt: ago(0), wholeAt: ago(40 * 24 * 60), quietReads: 0, muchGone: false, lateAt: null },
    ...{ isOpen: true, restsUntil: null, isUnread: false },
  };
  const listsWith = (isOpen: boolean): Lists =>
    new Map(
      (["ORGANIZATIONS", "PERSONS", "ACTIVITIES", "NOTES"] as const).map((list) => [
        list,
        { ...fact, isOpen: isOpen || list !== "NOTES" },
      ]),
    );
  expect(dueKind(listsWith(true), now, 30 * DAY_MS)).toBe("INCREMENTAL");
  expect(dueKind(listsWith(false), now, 30 * DAY_MS)).toBe("RECONCILE");
});
