import { SYNC_RESOURCES } from "../../src/entities/sync-run";
import { progressOf, type StepProgress } from "../../src/sync/run-history";

const queued = (): StepProgress[] =>
  SYNC_RESOURCES.map((resource) => ({ resource, state: "QUEUED", fetched: 0, expected: null }));

const RUNNING = { state: "RUNNING" } as const;

// Seen red: whoever takes 1 for the end waited for ever, for most runs read not all lists.
test("a run that ended well is done, whichever lists it read", () => {
  const steps = queued().slice(3, 5);
  for (const step of steps) step.state = "SUCCEEDED";
  expect(progressOf(RUNNING, steps)).toBeLessThan(1);
  expect(progressOf({ state: "SUCCEEDED" }, steps)).toBe(1);
  expect(progressOf({ state: "SUCCEEDED" }, [])).toBe(1);
});

test.each([null, 900, 5_000])("progress goes from 0 to 1 and never falls (expecting %s a step)", (expected) => {
  const steps = queued();
  const seen = [progressOf(RUNNING, steps)];
  for (const step of steps) {
    step.state = "RUNNING";
    step.expected = expected;
    for (let page = 0; page < 4; page += 1) {
      step.fetched += 500;
      seen.push(progressOf(RUNNING, steps));
    }
    step.state = step.resource === "STAGES" ? "FAILED" : "SUCCEEDED";
    seen.push(progressOf(RUNNING, steps));
  }
  expect(seen[0]).toBe(0);
  expect(seen.at(-1)).toBeCloseTo(1);
  expect([...seen].sort((a, b) => a - b)).toEqual(seen);
});

test("a run whose last step still runs is not shown as done", () => {
  const steps = queued().map((step): StepProgress => ({ ...step, state: "SUCCEEDED" }));
  steps[8] = { resource: "NOTES", state: "RUNNING", fetched: 1_000_000, expected: 1 };
  expect(progressOf(RUNNING, steps)).toBeLessThan(1);
});

test("a run that is cancelled keeps the progress that it had", () => {
  const steps = queued();
  Object.assign(steps[0] ?? {}, { state: "SUCCEEDED" });
  Object.assign(steps[4] ?? {}, { state: "RUNNING", fetched: 600, expected: 1_000 });
  const before = progressOf(RUNNING, steps);
  const cancelled = steps.map(
    (step): StepProgress => (step.state === "SUCCEEDED" ? step : { ...step, state: "CANCELLED" }),
  );
  expect(progressOf({ state: "CANCELLED" }, cancelled)).toBe(before);
});
