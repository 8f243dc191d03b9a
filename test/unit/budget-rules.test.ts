import {
  allowanceOf,
  type BudgetState,
  balanceOf,
  dayEndsAt,
  givenBack,
  isShort,
  leftFor,
  mayGoOn,
  newBudget,
  type Purpose,
  presentDay,
  spend,
  spentOf,
  type Told,
  told,
} from "../../src/connections/budget-rules";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/platform/clock";
import fc from "../support/properties";

// Seen red with each of: a day that begins with any rise; a purchase taken for a day; an answer of yesterday believed; a
// floor of a twentieth; participants that may spend what lists need; looks without an hour between them; a batch over what
// is left; tokens of yesterday given back today.

const BEGAN = new Date("2026-11-22T00:00:00Z");
const since = (ms: number) => new Date(BEGAN.getTime() + ms);
const NOON = since(12 * HOUR_MS);
const SHARE = 0.25;

const state = (change: Partial<BudgetState> = {}): BudgetState => ({
  ...newBudget(BEGAN),
  dailyLimit: 30_000,
  remaining: 30_000,
  toldAt: BEGAN,
  ...change,
});

const PURPOSES: Purpose[] = ["FIRST_LISTS", "LISTS", "PARTICIPANTS", "DEALS_OF_MEETINGS", "MEETINGS", "WRITES"];
const NO_END = Number.POSITIVE_INFINITY;

describe("what is left for a purpose", () => {
  const table: [string, Partial<BudgetState>, number[]][] = [
    [
      "of a fresh day at noon, what looks need is kept, and half a day of lists from participants",
      {},
      [14_952, 7_452, 5_952, 1_500, 3_000, NO_END],
    ],
    [
      "of a company that is told nothing of, the smallest plan is assumed",
      { dailyLimit: null, remaining: null, toldAt: null },
      [14_952, 7_452, 5_952, 1_500, 3_000, NO_END],
    ],
    [
      "first lists take no more than they leave, also where others spend",
      { remaining: 16_000, spentOnSyncs: 8_000 },
      [3_952, 0, 0, 1_500, 3_000, NO_END],
    ],
    [
      "first lists may always take the allowance",
      { remaining: 4_000, spentOnSyncs: 100 },
      [7_352, 7_352, 5_852, 1_500, 3_000, NO_END],
    ],
    [
      "participants leave meetings and writes what these have spent",
      { spentOnMeetings: 500, spentOnWrites: 1_000 },
      [14_952, 7_452, 4_452, 1_000, 2_500, NO_END],
    ],
    [
      "half of the syncs' share at most: writes alone do not keep them away",
      { spentOnWrites: 90_000 },
      [14_952, 7_452, 2_202, 1_500, 3_000, NO_END],
    ],
    ["below a tenth of the limit only meetings go on", { remaining: 2_999 }, [0, 0, 0, 0, 2_999, NO_END]],
    ["a tenth is not below a tenth", { remaining: 3_000 }, [7_452, 7_452, 5_952, 1_500, 3_000, NO_END]],
    ["meetings go on while something is left", { remaining: 12 }, [0, 0, 0, 0, 12, NO_END]],
    ["after a 429 of the day nothing but writes", { remaining: 20_000, limitedAt: NOON }, [0, 0, 0, 0, 0, NO_END]],
    [
      "a larger plan gives larger shares, and participants leave it what the lists of any plan need",
      { dailyLimit: 150_000, remaining: 150_000 },
      [74_952, 37_452, 35_952, 7_500, 15_000, NO_END],
    ],
  ];
  test.each(table)("%s", (_title, change, expected) => {
    expect(PURPOSES.map((purpose) => leftFor(state(change), purpose, SHARE, NOON))).toEqual(expected);
  });

  test("deals of meetings leave half of what meetings have to those that begin", () => {
    const left = (spentOnMeetings: number) =>
      PURPOSES.slice(3, 5).map((purpose) => leftFor(state({ spentOnMeetings }), purpose, SHARE, NOON));
    expect([left(1_000), left(1_500), left(2_000)]).toEqual([
      [500, 2_000],
      [0, 1_500],
      [0, 1_000],
    ]);
  });

  test("what participants leave to lists comes free with the day", () => {
    const at = (hours: number) => leftFor(state(), "PARTICIPANTS", SHARE, since(hours * HOUR_MS));
    expect([at(0), at(6), at(18), at(24)]).toEqual([4_452, 5_202, 6_702, 7_452]);
  });
});

describe("setting aside", () => {
  const granted = (change: Partial<BudgetState>, purpose: Purpose, price: number, now = NOON) => {
    const spending = spend(state(change), purpose, price, SHARE, now);
    return "granted" in spending ? spending.granted : spending.retryAt;
  };

  test("a batch at a time, never more than is left, and writes by the piece", () => {
    expect(granted({}, "LISTS", 10)).toBe(100);
    expect(granted({ spentOnSyncs: 7_410 }, "LISTS", 10)).toBe(42);
    expect(granted({ remaining: 0, limitedAt: NOON, spentOnWrites: 90_000 }, "WRITES", 10)).toBe(10);
  });

  test("where the allowance is used up, the day's end is told; where that is only assumed, a look is due in an hour", () => {
    expect(granted({ spentOnSyncs: 7_450, resetSeen: true }, "LISTS", 10)).toEqual(since(DAY_MS));
    expect(granted({ spentOnSyncs: 7_450 }, "LISTS", 10)).toEqual(since(13 * HOUR_MS));
    expect(granted({ spentOnMeetings: 3_000 }, "MEETINGS", 10)).toEqual(since(DAY_MS));
  });

  test("participants are told when a batch of what lists did not need comes free", () => {
    expect(granted({ spentOnSyncs: 5_952 }, "PARTICIPANTS", 10)).toEqual(since(12.8 * HOUR_MS));
  });

  test("below the floor one look an hour is taken, by the cheapest call and by nothing else", () => {
    const low = { remaining: 500 };
    expect(granted(low, "LISTS", 20)).toEqual(since(13 * HOUR_MS));
    expect(granted(low, "LISTS", 2)).toBe(2);
    const looked = { ...low, lookedAt: NOON };
    expect(granted(looked, "LISTS", 2, since(12.9 * HOUR_MS))).toEqual(since(13 * HOUR_MS));
    expect(granted(looked, "FIRST_LISTS", 2, since(13 * HOUR_MS))).toBe(2);
    expect(granted({ ...looked, lookedAt: new Date("2099-01-01") }, "LISTS", 2)).toBe(2);
    expect(granted({ limitedAt: NOON }, "LISTS", 2, since(12.5 * HOUR_MS))).toEqual(since(13 * HOUR_MS));
  });

  test("a day that is used up is over at its reset where that is known; where it is not, it is looked for", () => {
    const usedUp = { limitedAt: NOON, remaining: 0, toldAt: NOON };
    expect(granted({ ...usedUp, resetSeen: true }, "LISTS", 2, since(14 * HOUR_MS))).toEqual(since(DAY_MS));
    expect(granted(usedUp, "LISTS", 2, since(14 * HOUR_MS))).toBe(2);
    // Seen red: a page of a proxy's, under 429, stopped syncs until tomorrow.
    const refused = told(state({ resetSeen: true, remaining: 25_000, toldAt: NOON }), answered(NOTHING_SAID));
    expect(granted(refused, "LISTS", 2, since(12.5 * HOUR_MS))).toEqual(since(13.1 * HOUR_MS));
    expect(granted(refused, "LISTS", 2, since(14 * HOUR_MS))).toBe(2);
    const untold = { ...usedUp, remaining: null, toldAt: null, resetSeen: true };
    expect(granted(untold, "LISTS", 2, since(14 * HOUR_MS))).toBe(2);
    // The reset moved by an hour: what was used up is the day before, and syncs need not stand still until tomorrow.
    const atOnce = { ...usedUp, limitedAt: since(MINUTE_MS), toldAt: since(MINUTE_MS), resetSeen: true };
    expect(granted(atOnce, "LISTS", 2, since(2 * HOUR_MS))).toBe(2);
  });

  test("where the company is short each purpose asks again after the next look, and not the next day", () => {
    for (const short of [{ limitedAt: NOON }, { limitedAt: NOON, resetSeen: true, remaining: null }])
      for (const purpose of ["LISTS", "PARTICIPANTS", "DEALS_OF_MEETINGS", "MEETINGS"] as const)
        expect([purpose, granted(short, purpose, 20)]).toEqual([purpose, since(13 * HOUR_MS)]);
  });

  test("what was set aside may not be spent once others have taken the rest", () => {
    const low = state({ remaining: 10 });
    expect([mayGoOn(low, "LISTS"), mayGoOn(low, "MEETINGS"), mayGoOn(low, "WRITES")]).toEqual([false, true, true]);
    // Seen red: what a meeting needs was asked for on and on, and each time refused.
    for (const over of [state({ remaining: 0 }), state({ limitedAt: NOON })])
      expect([mayGoOn(over, "MEETINGS"), mayGoOn(over, "WRITES")]).toEqual([false, true]);
  });

  test("what is given back was set aside today", () => {
    const spent = state({ spentOnSyncs: 300 });
    expect(givenBack(spent, "LISTS", 60, BEGAN).spentOnSyncs).toBe(240);
    expect(givenBack(spent, "LISTS", 60, since(-DAY_MS)).spentOnSyncs).toBe(300);
    expect(givenBack(spent, "LISTS", 900, BEGAN).spentOnSyncs).toBe(0);
  });
});

describe("days", () => {
  const yesterday = state({ spentOnSyncs: 7_000, spentOnWrites: 40, limitedAt: NOON, lookedAt: NOON });

  test("a day that nobody saw begin is assumed 24 hours after the last, and nothing is known of its balance", () => {
    expect(presentDay(yesterday, since(DAY_MS - 1))).toEqual(yesterday);
    const next = presentDay(yesterday, since(3 * DAY_MS + HOUR_MS));
    expect([next.dayBeganAt, spentOf(next), next.limitedAt, balanceOf(next)]).toEqual([
      since(3 * DAY_MS),
      0,
      null,
      null,
    ]);
  });

  test("a day that was used up may go on beyond an assumed beginning, and for 24 hours is only looked at", () => {
    const beyond = presentDay(yesterday, since(DAY_MS + HOUR_MS));
    expect(beyond).toMatchObject({ spentOnSyncs: 0, limitedAt: NOON, lookedAt: NOON, dayBeganAt: since(DAY_MS) });
    expect(leftFor(beyond, "LISTS", SHARE, since(DAY_MS + HOUR_MS))).toBe(0);
    expect(presentDay({ ...yesterday, resetSeen: true }, since(DAY_MS)).limitedAt).toBeNull();
  });

  test("a clock that was in 2099 once does not keep the day from ending", () => {
    const ahead = state({ dayBeganAt: new Date("2099-01-01"), spentOnSyncs: 10 });
    expect(presentDay(ahead, NOON)).toMatchObject({ dayBeganAt: NOON, spentOnSyncs: 10 });
    expect(presentDay(state(), since(-MINUTE_MS)).dayBeganAt).toEqual(BEGAN);
  });

  test("nor a refusal from being over", () => {
    const refused = state({ limitedAt: new Date("2099-01-01") });
    expect(presentDay(refused, NOON).limitedAt).toBeNull();
    expect(presentDay({ ...refused, limitedAt: since(13 * HOUR_MS) }, NOON).limitedAt).not.toBeNull();
  });
});

const answered = (change: Partial<Told["answer"]>, rest: Partial<Told> = {}): Told => ({
  answer: { status: 200, limit: { remaining: 70, reset: 2 }, day: { limit: 30_000, remaining: null }, ...change },
  purpose: "LISTS",
  price: 10,
  sentAt: NOON,
  day: BEGAN,
  before: 20_000,
  at: since(12.1 * HOUR_MS),
  ...rest,
});
const NOTHING_SAID = { status: 429, limit: { remaining: null, reset: null }, day: { limit: null, remaining: null } };
const balance = (remaining: number, limit: number | null = 30_000) => ({ day: { limit, remaining } });

describe("what an answer tells", () => {
  const known = state({ remaining: 20_000, toldAt: NOON, spentOnSyncs: 5_000, spentOnWrites: 20 });

  test("the balance is told before the call's own price is taken, and in any order the lowest counts", () => {
    const first = told(known, answered(balance(20_000)));
    expect(first.remaining).toBe(19_990);
    expect(told(told(first, answered(balance(19_980))), answered(balance(19_990))).remaining).toBe(19_970);
    expect(told(known, answered(balance(5))).remaining).toBe(0);
  });

  test("a balance that jumps up is a new day, of which this call is the first", () => {
    const next = told(known, answered(balance(29_990)));
    expect(next).toMatchObject({ spentOnSyncs: 10, spentOnWrites: 0, remaining: 29_980, resetSeen: true });
    expect(next.dayBeganAt).toEqual(since(12.1 * HOUR_MS));
    expect(dayEndsAt(next)).toEqual(since(36.1 * HOUR_MS));
  });

  test("also of a day of which others have spent some, where none was seen to begin in the last twelve hours", () => {
    const late = (resetSeen: boolean) => told({ ...known, resetSeen }, answered(balance(26_000)));
    expect(late(true)).toMatchObject({ spentOnSyncs: 10, dayBeganAt: since(12.1 * HOUR_MS) });
    const early = answered(balance(26_000), { at: since(11 * HOUR_MS) });
    expect(told(known, early)).toMatchObject({ spentOnSyncs: 10, dayBeganAt: since(11 * HOUR_MS) });
    expect(told({ ...known, resetSeen: true }, early)).toMatchObject({ spentOnSyncs: 5_000, dayBeganAt: BEGAN });
  });

  test("a rise with the limit is a purchase: what was spent stays spent", () => {
    const bought = told(known, answered(balance(80_000, 90_000)));
    expect(bought).toMatchObject({ spentOnSyncs: 5_000, remaining: 79_990, dailyLimit: 90_000, resetSeen: false });
    expect(allowanceOf(bought, SHARE)).toBe(22_500);
  });

  test("a small rise is believed and is no new day", () => {
    expect(told(known, answered(balance(21_000)))).toMatchObject({ spentOnSyncs: 5_000, remaining: 20_990 });
  });

  test("a balance that jumps to and fro begins one day, not one each time: a day that was seen lasts half a day", () => {
    const jumps = (row: BudgetState, remaining: number, at: number) =>
      told(
        row,
        answered(balance(remaining), { before: row.remaining, day: row.dayBeganAt, sentAt: since(at), at: since(at) }),
      );
    const today = jumps(known, 29_990, 13 * HOUR_MS);
    const low = jumps({ ...today, spentOnSyncs: 7_000 }, 22_000, 14 * HOUR_MS);
    expect(jumps(low, 28_000, 15 * HOUR_MS)).toMatchObject({
      spentOnSyncs: 7_000,
      remaining: 27_990,
      dayBeganAt: since(13 * HOUR_MS),
    });
    // One jump does not move the days for good: a balance that is whole again tells of the CRM's own midnight.
    expect(jumps(low, 29_900, 24 * HOUR_MS)).toMatchObject({ spentOnSyncs: 10, dayBeganAt: since(DAY_MS) });
    // Seen late, the next one may come sooner than 24 hours after it.
    expect(jumps(low, 29_990, 26 * HOUR_MS)).toMatchObject({ spentOnSyncs: 10, dayBeganAt: since(26 * HOUR_MS) });
  });

  test("what was asked before the day began, or by who knew another day, begins none and is not believed again", () => {
    const today = told(known, answered(balance(29_990)));
    expect(told(today, answered(balance(19_970)))).toEqual(today);
    const late = answered(balance(29_000), { sentAt: since(12.2 * HOUR_MS), at: since(12.3 * HOUR_MS) });
    expect(told(today, late)).toMatchObject({ spentOnSyncs: 10, dayBeganAt: today.dayBeganAt, remaining: 28_990 });
  });

  test("headers may vanish: what was known stays, and the day with it", () => {
    expect(told(known, answered({ day: { limit: null, remaining: null } }))).toEqual(known);
    expect(told(known, answered({ day: { limit: 0, remaining: null } })).dailyLimit).toBe(30_000);
  });

  test("the first balance of a day that was assumed is no second day", () => {
    const assumed = { ...presentDay(known, since(25 * HOUR_MS)), spentOnSyncs: 400 };
    const first = answered(balance(29_600), {
      sentAt: since(25 * HOUR_MS),
      day: assumed.dayBeganAt,
      at: since(25 * HOUR_MS),
    });
    expect(told(assumed, first)).toMatchObject({ spentOnSyncs: 400, remaining: 29_590, dayBeganAt: since(DAY_MS) });
  });

  test("a 429 of the day stops it, one of the burst window does not, and a later answer ends the stop", () => {
    const spent = answered({ status: 429, day: { limit: 30_000, remaining: 3 } });
    const stopped = told(known, spent);
    expect(stopped).toMatchObject({ limitedAt: since(12.1 * HOUR_MS), remaining: 3 });
    expect(
      told(known, answered({ status: 429, limit: { remaining: 0, reset: 2 }, day: { limit: null, remaining: null } }))
        .limitedAt,
    ).toBeNull();
    expect(told(known, answered({ status: 429, limit: { remaining: null, reset: null } })).limitedAt).not.toBeNull();
    expect(told(known, answered({ status: 429, ...balance(20_000) })).limitedAt).toBeNull();
    const looked = answered(balance(20_000), { sentAt: since(13.2 * HOUR_MS), at: since(13.2 * HOUR_MS) });
    expect(told(stopped, answered(balance(20_000))).limitedAt).not.toBeNull();
    // Seen red: a 503 ended it, and all that waits asked again on the same day.
    const failing = answered({ status: 503, day: { limit: null, remaining: null } }, { sentAt: since(13.2 * HOUR_MS) });
    expect(told(stopped, failing).limitedAt).not.toBeNull();
    expect(told(stopped, looked).limitedAt).toBeNull();
  });
});

test("in any order of answers to any calls of us and of others within a day, no new day is seen, and the balance known is never above the CRM's", () => {
  const call = fc.record({
    others: fc.nat(400),
    price: fc.constantFrom(1, 2, 5, 10, 20),
    // How many answers later it arrives.
    delay: fc.nat(12),
  });
  fc.assert(
    fc.property(fc.array(call, { maxLength: 60 }), (calls) => {
      let crm = 30_000;
      let row = state({ remaining: null, toldAt: null });
      const onTheWay: { due: number; answer: Told }[] = [];
      for (const [turn, { others, price, delay }] of calls.entries()) {
        const sentAt = since(turn * MINUTE_MS);
        crm = Math.max(0, crm - others);
        const answer = answered(balance(crm), { price, sentAt, before: row.remaining, at: sentAt });
        crm = Math.max(0, crm - price);
        onTheWay.push({ due: turn + delay, answer });
        for (const one of onTheWay.filter(({ due }) => due <= turn)) {
          row = told(row, { ...one.answer, at: sentAt });
          onTheWay.splice(onTheWay.indexOf(one), 1);
        }
        expect(row.dayBeganAt).toEqual(BEGAN);
        expect(row.resetSeen).toBe(false);
      }
      for (const { answer } of onTheWay) row = told(row, answer);
      if (calls.length > 0) expect(isShort(row)).toBe(crm < 3_000);
    }),
  );
});
