import { type BegunPhase, flipsOf } from "../../src/briefing/quiet/verdict";
import fc from "../support/properties";

const NOW = 1_000_000;
const VERDICTS = ["ACTIVE", "COOLING", "QUIET", "GHOSTED"] as const;
const verdict = fc.constantFrom(...VERDICTS);

/** What was stored and has begun: the first since ever, those that were told before those that were not. */
const begun = fc.tuple(fc.array(verdict, { minLength: 1, maxLength: 6 }), fc.nat(6)).map(([verdicts, told]) =>
  verdicts.map(
    (one, phase): BegunPhase => ({
      verdict: one,
      from: phase === 0 ? null : NOW - 100 + phase,
      isTold: phase <= told || verdicts[phase - 1] === one,
    }),
  ),
);

test("flips lead from the verdict that was told last to the present one, each from where the one before ended", () => {
  fc.assert(
    fc.property(begun, verdict, (phases, judged) => {
      const flips = flipsOf(7, phases, judged, NOW);
      const lastTold = phases.findLastIndex(
        ({ isTold }, phase) => isTold && phases.slice(0, phase + 1).every((p) => p.isTold),
      );
      let present = phases[lastTold]?.verdict;
      for (const { dealId, from, to, at } of flips) {
        expect([dealId, from]).toEqual([7, present]);
        expect(to).not.toBe(from);
        expect(at).toBeLessThanOrEqual(NOW);
        present = to;
      }
      expect(present).toBe(judged);
      expect(flips.map(({ at }) => at)).toEqual(flips.map(({ at }) => at).sort((a, b) => a - b));
    }),
  );
});

test("of other rules only that is told which time had changed before; of a first judgement nothing", () => {
  const phases: BegunPhase[] = [
    { verdict: "ACTIVE", from: null, isTold: true },
    { verdict: "COOLING", from: 5, isTold: false },
    { verdict: "COOLING", from: 6, isTold: true },
    { verdict: "QUIET", from: 9, isTold: false },
  ];
  const passed = [
    { dealId: 7, from: "ACTIVE", to: "COOLING", at: 5 },
    { dealId: 7, from: "COOLING", to: "QUIET", at: 9 },
  ];
  expect(flipsOf(7, phases, null, NOW)).toEqual(passed);
  expect(flipsOf(7, phases, "QUIET", NOW)).toEqual(passed);
  expect(flipsOf(7, phases, "ACTIVE", NOW)).toEqual([...passed, { dealId: 7, from: "QUIET", to: "ACTIVE", at: NOW }]);
  expect(flipsOf(7, [], "GHOSTED", NOW)).toEqual([]);
});
