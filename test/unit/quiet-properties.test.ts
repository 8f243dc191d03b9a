import type { ConnectionFacts, DealFacts, QuietSignal } from "../../src/briefing/quiet/facts";
import { judge } from "../../src/briefing/quiet/judge";
import { scheduleOf } from "../../src/briefing/quiet/verdict";
import { DAY_MS, SECOND_MS } from "../../src/platform/clock";
import fc from "../support/properties";
import { copyFacts, dealFacts, NOW } from "../support/quiet-facts";

const DEEP = Boolean(process.env.DEEP);
const now = new Date(NOW);
const check = <T>(property: fc.IProperty<T>) => fc.assert(property, { numRuns: DEEP ? 100_000 : 500 });

/** UNKNOWN is no step of it. */
const LOUD_TO_QUIET = ["ACTIVE", "COOLING", "QUIET", "GHOSTED"];

test("the same facts at the same instant give the same answer, and nothing of them is changed", () => {
  check(
    fc.property(dealFacts, copyFacts, (facts, copy) => {
      const before = structuredClone({ facts, copy });
      expect(judge(facts, copy, now)).toEqual(judge(structuredClone(facts), structuredClone(copy), now));
      expect({ facts, copy }).toEqual(before);
    }),
  );
});

const shuffled = <T>(list: readonly T[]) => fc.shuffledSubarray([...list], { minLength: list.length });

test("the order in which facts come does not matter", () => {
  const twoOrders = dealFacts.chain((facts) =>
    fc
      .tuple(shuffled(facts.contacts), shuffled(facts.meetings), shuffled(facts.planned), shuffled(facts.pushes))
      .map(
        ([contacts, meetings, planned, pushes]) => [facts, { ...facts, contacts, meetings, planned, pushes }] as const,
      ),
  );
  check(
    fc.property(twoOrders, copyFacts, ([facts, otherwise], copy) => {
      expect(judge(otherwise, copy, now)).toEqual(judge(facts, copy, now));
    }),
  );
});

test("a new word of the buyer never makes a deal quieter", () => {
  const answered = fc.record({
    facts: dealFacts,
    share: fc.double({ min: 0, max: 1, noNaN: true }),
    met: fc.boolean(),
  });
  check(
    fc.property(answered, copyFacts, ({ facts, share, met }, copy) => {
      const held = facts.meetings
        .filter(({ endsAt, withBuyer }) => withBuyer && endsAt <= NOW)
        .map(({ endsAt }) => endsAt);
      const known = [
        ...(facts.addedAt === null ? [] : [facts.addedAt]),
        ...facts.contacts.map(({ at }) => at),
        ...held,
      ];
      const last = known.length === 0 ? NOW : Math.max(...known);
      const at = last + Math.ceil((NOW - last) * share);
      const more: Partial<DealFacts> = met
        ? { meetings: [...facts.meetings, { meetingId: "new", startsAt: at, endsAt: at, withBuyer: true }] }
        : {
            hasMail: true,
            contacts: [
              ...facts.contacts,
              { kind: "INCOMING_MAIL", at, crmId: 7, activityType: null, withPerson: true },
            ],
          };
      const before = judge(facts, copy, now);
      const after = judge({ ...facts, ...more }, copy, now);
      expect(LOUD_TO_QUIET.indexOf(after.verdict)).toBeLessThanOrEqual(LOUD_TO_QUIET.indexOf(before.verdict));
    }),
  );
});

test("nextChangeAt is the first instant at which time alone changes the verdict", () => {
  const shares = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 5, maxLength: 5 });
  check(
    fc.property(dealFacts, copyFacts, shares, (facts, copy, spread) => {
      const verdictAt = (at: number) => judge(facts, readingOn(copy, at), new Date(at)).verdict;
      const { verdict, nextChangeAt } = judge(facts, copy, now);
      if (verdict === "UNKNOWN") return expect(nextChangeAt).toBeNull();
      const change = nextChangeAt?.getTime() ?? NOW + 1e11;
      for (const share of spread) {
        const between = Math.min(NOW + Math.floor((change - NOW) * share), change - 1);
        expect(verdictAt(between)).toBe(verdict);
      }
      if (nextChangeAt === null) return;
      expect(verdictAt(change - 1)).toBe(verdict);
      expect(verdictAt(change)).not.toBe(verdict);
      expect(verdictAt(Math.max(NOW, change - SECOND_MS))).toBe(verdict);
      expect(nextOf(judge(facts, readingOn(copy, change - 1), new Date(change - 1)))).toBe(change);
    }),
  );
});

/** The syncs go on: what was fresh stays fresh. */
const readingOn = (copy: ConnectionFacts, at: number): ConnectionFacts => ({ ...copy, readAt: at });

test("the schedule says at each instant from its first on what the judge says then", () => {
  const instants = fc.array(fc.integer({ min: 0, max: 120 * DAY_MS }), { minLength: 8, maxLength: 8 });
  const met = new Set<string>();
  check(
    fc.property(dealFacts, copyFacts, instants, (facts, copy, later) => {
      const schedule = scheduleOf(facts, copy.rules, NOW);
      expect(schedule[0]?.from).toBe(NOW);
      const edges = schedule.flatMap(({ from }) => [from, from + 1, Math.max(NOW, from - 1)]);
      for (const at of [...edges, ...later.map((passed) => NOW + passed)]) {
        const phase = schedule.findLast(({ from }) => from <= at);
        const { verdict, quietSince } = judge(facts, readingOn(copy, at), new Date(at));
        expect([phase?.verdict, phase?.since ?? null]).toEqual([verdict, quietSince?.getTime() ?? null]);
        met.add(verdict);
      }
      for (const [index, phase] of schedule.entries()) {
        const before = schedule[index - 1];
        if (before) expect(phase.from > before.from).toBe(true);
      }
    }),
  );
  expect([...met].sort()).toEqual(["ACTIVE", "COOLING", "GHOSTED", "QUIET"]);
});

test("a close date that was moved later is a reason by the journal's count alone, and changes no verdict", () => {
  const met = new Set<boolean>();
  const pushed = fc.record({ facts: dealFacts, times: fc.integer({ min: 1, max: 4 }), later: fc.nat(500 * DAY_MS) });
  check(
    fc.property(pushed, copyFacts, ({ facts, times, later }, copy) => {
      const at = NOW + later;
      const of = (deal: DealFacts) => judge(deal, readingOn(copy, at), new Date(at));
      const own = { ...facts, ownDays: { CLOSE_DATE_PUSHED: times } };
      const counted = facts.pushes.filter((seen) => at - seen <= 400 * DAY_MS);
      const { reasons, ...signal } = of(own);
      const shown = reasons.find(({ code }) => code === "CLOSE_DATE_PUSHED");
      const isShown = facts.isOpen && counted.length >= times;
      expect(shown !== undefined).toBe(isShown);
      met.add(isShown);
      if (shown) expect(shown.since).toEqual(new Date(Math.min(...counted)));
      const without = of({ ...own, pushes: [] });
      expect({ ...signal, reasons: reasons.filter((reason) => reason !== shown) }).toEqual(without);
      expect(scheduleOf(own, copy.rules, NOW)).toEqual(scheduleOf({ ...own, pushes: [] }, copy.rules, NOW));
    }),
  );
  expect(met.size).toBe(2);
});

const nextOf = ({ nextChangeAt }: QuietSignal) => nextChangeAt?.getTime();

test("an open deal has a reason for every verdict but ACTIVE and the first part of COOLING", () => {
  check(
    fc.property(dealFacts, copyFacts, (facts, copy) => {
      const { verdict, reasons, quietSince, quietDays } = judge(facts, copy, now);
      const codes = reasons.map(({ code }) => code as string);
      if (verdict === "UNKNOWN") expect(codes).toContain("DATA_STALE");
      if (verdict === "GHOSTED")
        expect(codes.some((code) => code === "GHOSTED" || code === "NEVER_REPLIED")).toBe(true);
      if (verdict === "QUIET") expect(codes).toContain("NO_RECENT_ACTIVITY");
      expect(new Set(codes).size).toBe(codes.length);
      expect(quietSince === null).toBe(quietDays === null);
      expect(reasons.every(({ message }) => message.length > 0)).toBe(true);
    }),
  );
});
