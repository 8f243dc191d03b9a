import type { SyncKind, SyncResource } from "../../src/entities/sync-run";
import { dueKind, nextRunAt, planRun, type RunFacts } from "../../src/sync/plan";
import { judgeRemoval } from "../../src/sync/reconcile";

const now = new Date("2026-11-20T12:00:00Z");
const ago = (minutes: number) => new Date(now.getTime() - minutes * 60_000);
const step = (resource: SyncResource, state: RunFacts["steps"][number]["state"], cursor: string | null = null) => ({
  resource,
  state,
  cursor,
  walk: 1,
  requests: 0,
});
const run = (fields: Partial<RunFacts>): RunFacts => ({
  kind: "INCREMENTAL",
  state: "SUCCEEDED",
  finishedAt: ago(10),
  updatedSince: null,
  crmTimeAtStart: new Date("2026-11-20T11:45:30.700Z"),
  errorCode: null,
  steps: [],
  ...fields,
});

test.each<SyncKind>(["INCREMENTAL", "RECONCILE", "FULL"])("the first run is full, also where %s was asked", (asked) => {
  expect(planRun(asked, null, null, now)).toEqual({
    kind: "FULL",
    updatedSince: null,
    crmTimeAtStart: null,
    steps: new Map(),
  });
});

test("an incremental run asks for what changed since a minute before the last success began, in whole seconds", () => {
  const last = run({});
  expect(planRun("INCREMENTAL", last, last, now)).toMatchObject({
    kind: "INCREMENTAL",
    updatedSince: new Date("2026-11-20T11:44:30.000Z"),
    crmTimeAtStart: null,
  });
});

test("a failed run does not move the watermark", () => {
  const success = run({ crmTimeAtStart: ago(60) });
  const failed = run({ state: "FAILED", kind: "RECONCILE", crmTimeAtStart: ago(5) });
  expect(planRun("INCREMENTAL", failed, success, now).updatedSince).toEqual(ago(61));
});

test("a run goes on from the checkpoints of one of its kind that failed, and keeps its start", () => {
  const success = run({ crmTimeAtStart: ago(60) });
  const failed = run({
    state: "FAILED",
    updatedSince: ago(61),
    crmTimeAtStart: ago(5),
    steps: [
      step("USERS", "SUCCEEDED"),
      step("ORGANIZATIONS", "SUCCEEDED"),
      step("PERSONS", "FAILED", "here"),
      step("DEALS", "CANCELLED"),
    ],
  });
  const plan = planRun("INCREMENTAL", failed, success, now);
  expect(plan).toMatchObject({ updatedSince: ago(61), crmTimeAtStart: ago(5) });
  expect([...plan.steps]).toEqual([
    ["ORGANIZATIONS", { state: "SUCCEEDED", cursor: null, walk: 1 }],
    ["PERSONS", { state: "QUEUED", cursor: "here", walk: 1 }],
  ]);
});

test.each([
  ["a run of another kind", run({ state: "FAILED", kind: "RECONCILE" })],
  ["one that failed more than a day ago", run({ state: "FAILED", finishedAt: ago(24 * 60 + 1) })],
  ["one that never had an answer", run({ state: "FAILED", crmTimeAtStart: null })],
  ["one that succeeded", run({})],
])("nothing is gone on from %s", (_case, last) => {
  const plan = planRun("INCREMENTAL", { ...last, steps: [step("DEALS", "FAILED", "here")] }, run({}), now);
  expect(plan.steps.size).toBe(0);
});

test.each([
  ["stood still at a checkpoint, a day after it all began", 24 * 60, { requests: 0 }, "CRM_UNAVAILABLE", false],
  ["stood still at it, a minute sooner", 24 * 60 - 1, { requests: 0 }, "CRM_UNAVAILABLE", true],
  ["got on from it", 24 * 60, { requests: 1 }, "CRM_UNAVAILABLE", true],
  ["stood still for want of budget", 24 * 60, { requests: 0 }, "RATE_LIMITED", true],
  ["did not get as far as to it", 24 * 60, { requests: 0, state: "CANCELLED" as const }, "CRM_UNAVAILABLE", true],
] as const)(
  "a run of several that go on from each other %s: it is gone on from or not",
  (_case, age, fields, errorCode, goesOn) => {
    const failed = { ...run({ state: "FAILED", crmTimeAtStart: ago(age) }), errorCode };
    const steps = [{ ...step("PERSONS", "FAILED", "here"), ...fields }];
    expect(planRun("INCREMENTAL", { ...failed, steps }, run({}), now).steps.size).toBe(goesOn ? 1 : 0);
  },
);

test("runs come by the interval, a tenth sooner or later, and 0 means by request only", () => {
  const minutesTo = (chance: number) => ((nextRunAt(now, 900_000, chance)?.getTime() ?? 0) - now.getTime()) / 60_000;
  expect([minutesTo(0), minutesTo(0.5), minutesTo(1)]).toEqual([13.5, 15, 16.5]);
  expect(nextRunAt(now, 0, 0.5)).toBeNull();
});

test.each([
  [7 * 24 * 60, "RECONCILE"],
  [7 * 24 * 60 - 1, "INCREMENTAL"],
])("%i minutes after everything was read the schedule makes a run %s", (minutes, kind) => {
  expect(dueKind(ago(minutes), now, 7 * 86_400_000)).toBe(kind);
  expect(dueKind(ago(minutes), now, 0)).toBe("INCREMENTAL");
});

test.each([
  [0, 500, "KEEP"],
  [500, 500, "KEEP"],
  [501, 500, "KEEP"],
  [3, 3, "KEEP"],
  [3, 500, "REMOVE"],
  [100, 150, "REMOVE"],
  [101, 150, "PROVE_FIRST"],
  [101, 300, "REMOVE"],
])("of %i not seen among %i held: %s", (absent, held, verdict) => {
  expect(judgeRemoval({ absent, held })).toBe(verdict);
});
