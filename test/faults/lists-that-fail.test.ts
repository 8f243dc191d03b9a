import type { Fault } from "../../simulator";
import { dataOf } from "../support/stories";
import {
  CHANGING,
  type Changing,
  isFirstPage,
  LISTS,
  type ListName,
  type Query,
  SyncWorld,
} from "../support/sync-world";
import { makeStale } from "../support/tokens";
import { useStarted } from "../support/world";

const DEEP = Boolean(process.env.DEEP);
/** The timeout's case waits for it. */
const TIMEOUT_MS = 180_000;

const WAYS: Record<string, { fault: Fault; code: string }> = {
  "403": { fault: { kind: "forbidden" }, code: "CRM_REFUSED" },
  "404": { fault: { status: 404, body: { success: false, error: "Not found" } }, code: "CRM_REFUSED" },
  "500": { fault: { status: 500, body: "" }, code: "CRM_UNAVAILABLE" },
  cut: { fault: { kind: "cut" }, code: "CRM_UNAVAILABLE" },
  garbage: { fault: { kind: "garbage" }, code: "CRM_ANSWER_UNREADABLE" },
  timeout: { fault: { kind: "hang" }, code: "CRM_UNAVAILABLE" },
};
type Way = keyof typeof WAYS;
type Page = "first" | "later";
type Run = "first" | "later";
type Case = [list: "USERS" | Changing, way: Way, page: Page, run: Run];

const world = useStarted(() => SyncWorld.start());
beforeAll(() => {
  for (const list of CHANGING) world.fill(list, 520);
});
beforeEach(() => world.beginAnew());

/** Whole, each list with each way at each page in each run; else each list twice or more, each way at each page. */
function cases(): Case[] {
  const all = Object.keys(WAYS).flatMap((way) =>
    (["first", "later"] as const).flatMap((page) =>
      (["first", "later"] as const).flatMap((run) =>
        (["USERS", ...CHANGING] as const)
          .filter((list) => list !== "USERS" || page === "first")
          .map((list): Case => [list, way, page, run]),
      ),
    ),
  );
  if (DEEP) return all;
  const some: Case[] = [
    ["USERS", "403", "first", "first"],
    ["USERS", "garbage", "first", "later"],
    ["ORGANIZATIONS", "500", "first", "first"],
    ["ORGANIZATIONS", "cut", "later", "later"],
    ["PERSONS", "404", "later", "first"],
    ["PERSONS", "garbage", "later", "later"],
    ["DEALS", "403", "later", "later"],
    ["DEALS", "cut", "first", "later"],
    ["DEALS", "garbage", "later", "first"],
    ["ACTIVITIES", "403", "later", "first"],
    ["ACTIVITIES", "404", "first", "later"],
    ["NOTES", "500", "later", "later"],
    ["NOTES", "timeout", "later", "first"],
    ["NOTES", "403", "first", "later"],
  ];
  return some;
}

/** A walk from the beginning of time; not what is asked for by its ids. */
const isWhole = ({ query }: { query: Query }) => query.updated_since === undefined && query.ids === undefined;
let changes = 0;

/** Somebody renames the first of each kind, which are on the first pages, and makes a person. */
function change(): void {
  const { control } = world.simulator;
  const { deals, persons, organizations, activities } = control.visibleTo(world.userId);
  changes += 1;
  const name = `Renamed ${changes}`;
  control.change("deal", deals[0]?.id ?? 0, { title: name });
  control.change("person", persons[0]?.id ?? 0, { name });
  control.change("organization", organizations[0]?.id ?? 0, { name });
  control.change("activity", activities[0]?.id ?? 0, { subject: name });
  control.add("person", { name: `New ${changes}` });
}

const askedWhole = (lists: readonly ListName[]) => lists.filter((list) => world.asked(list).some(isWhole));

test.each(cases())(
  "%s that fail with %s at their %s page, in a %s run, hold up no other list, and one run mends them",
  async (list, way, page, run) => {
    const { simulator } = world;
    const as = { tenant: `${list} ${way} ${page} ${run}` };
    if (run === "later") {
      expect((await world.connect(as)).state).toBe("SUCCEEDED");
      world.passMinutes(10);
      // A later run reads pages of what changed.
      if (page === "later" && list !== "USERS") world.touch(list);
      change();
    }
    const { fault, code } = WAYS[way] ?? { fault: { kind: "reset" }, code: "" };
    const isHit = (query: Query) => isFirstPage(query) === (page === "first");
    simulator.control.fail({ match: LISTS[list].path, where: isHit, with: fault });
    simulator.log.clear();
    const failed = run === "first" ? await world.connect(as) : await world.sync(as);
    expect(failed).toMatchObject({ state: "FAILED", error: { code }, gaps: [{ resource: list }] });
    await world.isExact(as, list);
    if (run === "later") expect(askedWhole(CHANGING)).toEqual([]);

    if (DEEP || way !== "timeout") {
      simulator.log.clear();
      const stays = await world.sync(as);
      expect(stays).toMatchObject({ state: "FAILED", error: { code }, gaps: [{ resource: list }] });
      // It goes on where it stood. What says that there is no such page (404) may be said of its cursor.
      const begunAnew = world.asked(list).filter(({ query }) => isFirstPage(query));
      if (page === "later" && way !== "404") expect(begunAnew).toEqual([]);
    }
    simulator.control.clearFaults();
    world.passMinutes(10);
    change();
    simulator.log.clear();
    expect(await world.sync(as)).toMatchObject({ state: "SUCCEEDED", gaps: [] });
    await world.isExact(as);
    const others = CHANGING.filter((other) => other !== list);
    expect(askedWhole(others)).toEqual([]);
    const isReadAnew = run === "first" && page === "first" && list !== "USERS";
    const fromTheStart =
      list === "USERS" ? [] : world.asked(list).filter((asked) => isWhole(asked) && isFirstPage(asked.query));
    expect(fromTheStart).toHaveLength(isReadAnew ? 1 : 0);
  },
  TIMEOUT_MS,
);

// Seen red: the day was counted from the beginning of the walk, and one page that failed cost all that were read before it.
test(
  "a walk of more than a day goes on where a page fails, and begins anew where that has failed for a day",
  async () => {
    const as = { tenant: "long" };
    const { control } = world.simulator;
    const fail = (fault: Fault) =>
      control.fail({ match: LISTS.PERSONS.path, where: (query) => !isFirstPage(query), with: fault });
    const pass25Hours = () => world.passMinutes(25 * 60);
    const firstPages = () => world.asked("PERSONS").filter((asked) => isWhole(asked) && isFirstPage(asked.query));
    const throttled = fail({ kind: "throttle" });
    expect(await world.connect(as)).toMatchObject({ error: { code: "RATE_LIMITED" } });
    throttled();
    pass25Hours();
    world.simulator.log.clear();
    const broken = fail({ status: 500, body: "" });
    for (let run = 0; run < 2; run += 1) {
      expect(await world.sync(as)).toMatchObject({ error: { code: "CRM_UNAVAILABLE" } });
      expect(firstPages()).toEqual([]);
    }
    pass25Hours();
    for (let run = 0; run < 2; run += 1) await world.sync(as);
    expect(firstPages()).toHaveLength(1);
    broken();
    expect(await world.sync(as)).toMatchObject({ state: "SUCCEEDED", gaps: [] });
    expect(firstPages()).toHaveLength(1);
    await world.isExact(as);
  },
  TIMEOUT_MS,
);

// Seen red, both: what changed ended the gap in each run, and the whole pass behind it began another; later, so did a pass begun anew.
test.each(["first", "later"])(
  "a list of which only the whole pass fails, at its %s page, lacks something since the first time, for days",
  async (page) => {
    const as = { tenant: `whole pass ${page}` };
    const { control } = world.simulator;
    await world.connect(as);
    const where = (query: Query) => isWhole({ query }) && isFirstPage(query) === (page === "first");
    control.fail({ match: LISTS.PERSONS.path, where, with: { status: 500, body: "" } });
    await world.sync(as, "RECONCILE");
    const since = () =>
      world.database.query(
        "SELECT g.resource, g.since FROM data_gap g JOIN tenant t ON t.id = g.tenant_id WHERE t.external_id = $1",
        [as.tenant],
      );
    const begun = await since();
    expect(begun).toEqual([{ resource: "PERSONS", since: expect.anything() }]);
    for (let run = 0; run < 3; run += 1) {
      world.passMinutes(25 * 60);
      expect(await world.sync(as)).toMatchObject({ state: "FAILED", gaps: [{ resource: "PERSONS" }] });
      expect(await since()).toEqual(begun);
    }
    control.clearFaults();
    expect(await world.sync(as)).toMatchObject({ state: "SUCCEEDED", gaps: [] });
  },
  TIMEOUT_MS,
);

// Seen red: the run that came a minute before its rest was over left it to the next one, a quarter of an hour later.
test("a whole pass that rests goes on with the run that comes for it, be that a little early", async () => {
  const as = { tenant: "early" };
  await world.connect(as);
  world.simulator.control.fail({
    match: LISTS.PERSONS.path,
    where: (query) => isWhole({ query }),
    with: { status: 500 },
  });
  await world.sync(as, "RECONCILE");
  world.passMinutes(25);
  await world.due(as, 15);
  world.simulator.control.clearFaults();
  for (const [minutes, asked] of [
    [20, 0],
    [4, 1],
  ] as const) {
    world.passMinutes(minutes);
    world.simulator.log.clear();
    await world.due(as, 15);
    expect(world.asked("PERSONS").filter((one) => isWhole(one) && isFirstPage(one.query))).toHaveLength(asked);
  }
});

// Seen red: each renewal, so each hour, told watchers that it was over, and the next run that it had just begun.
test("trouble that a list has is ended by a run, and not by a renewed token", async () => {
  const { control, log } = world.simulator;
  const as = { tenant: "troubled" };
  const asked = (query: string) => world.api.ask<{ connection: { trouble: object | null } }>(query, {}, as);
  const trouble = async () => dataOf(await asked("{ connection { trouble { code since } } }")).connection.trouble;
  control.fail({ match: LISTS.ACTIVITIES.path, with: { status: 500, body: "" } });
  await world.connect(as);
  const begun = await trouble();
  expect(begun).toMatchObject({ code: "CRM_UNAVAILABLE" });
  await makeStale(world.database, as.tenant);
  log.clear();
  dataOf(await asked("{ connection { fields(entity: DEAL) { key } } }"));
  expect(log.of("POST", "/oauth/token")).toHaveLength(1);
  expect(await trouble()).toEqual(begun);
  control.clearFaults();
  await world.sync(as);
  expect(await trouble()).toBeNull();
});
