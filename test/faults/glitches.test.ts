import { copiedIds, visibleIds } from "../support/copy";
import { connect } from "../support/stories";
import { LISTS, type Query, SyncWorld } from "../support/sync-world";
import { useStarted } from "../support/world";

const TIMEOUT_MS = 120_000;
const AS = { tenant: "acme" };

const world = useStarted(() => SyncWorld.start({ deals: 260 }));
beforeAll(async () => {
  await world.connect(AS);
}, TIMEOUT_MS);
beforeEach(async () => {
  world.passMinutes(20);
  await world.sync(AS);
  await world.isExact(AS);
  world.simulator.log.clear();
});
afterEach(() => world.simulator.control.clearFaults());

const held = async () => copiedIds(world.database, AS.tenant);
const walksOf = (list: "PERSONS" | "DEALS") =>
  world.asked(list).filter(({ query }) => query.cursor === undefined && query.updated_since === undefined).length;
/** Persons are more than a hundred, and less than half of them are shown. */
const glitch = (share: number) =>
  world.simulator.control.fail({ match: LISTS.PERSONS.path, with: { kind: "part", share } });

test("a walk that shows less than half of what is held removes nothing, and neither does a second one within ten minutes", async () => {
  const before = await held();
  expect(before.person?.length).toBeGreaterThan(200);
  const end = glitch(0.3);
  const gaps = [{ resource: "PERSONS", code: "NOT_SHOWN" }];
  expect(await world.sync(AS, "RECONCILE")).toMatchObject({ state: "SUCCEEDED", gaps });
  world.passMinutes(5);
  expect(await world.sync(AS)).toMatchObject({ state: "SUCCEEDED", gaps });
  world.passMinutes(4);
  expect(await world.sync(AS, "RECONCILE")).toMatchObject({ state: "SUCCEEDED", gaps });
  expect(walksOf("PERSONS")).toBe(1);
  expect(await held()).toEqual(before);
  end();
  world.passMinutes(2);
  expect(await world.sync(AS)).toMatchObject({ state: "SUCCEEDED", gaps: [] });
  expect(walksOf("PERSONS")).toBe(2);
  expect(await held()).toEqual(before);
});

test("while a list waits for its second walk, what changes in it is read by every run", async () => {
  const end = glitch(0.3);
  await world.sync(AS, "RECONCILE");
  end();
  const [person] = world.simulator.control.visibleTo(world.userId).persons;
  world.passMinutes(2);
  world.simulator.control.change("person", person?.id ?? 0, { name: "Renamed meanwhile" });
  await world.sync(AS);
  await world.isExact(AS);
});

test("a list that waits for its second walk and whose changes cannot be read has both gaps, each until it is mended", async () => {
  const end = glitch(0.3);
  await world.sync(AS, "RECONCILE");
  end();
  world.passMinutes(2);
  const refused = world.simulator.control.fail({ match: LISTS.PERSONS.path, with: { status: 403 } });
  const notShown = { resource: "PERSONS", code: "NOT_SHOWN" };
  const gaps = [{ resource: "PERSONS", code: "CRM_REFUSED" }, notShown];
  expect(await world.sync(AS)).toMatchObject({ state: "FAILED", gaps });
  refused();
  expect(await world.sync(AS)).toMatchObject({ state: "SUCCEEDED", gaps: [notShown] });
  world.passMinutes(11);
  expect(await world.sync(AS)).toMatchObject({ state: "SUCCEEDED", gaps: [] });
});

test("a smaller loss that one walk shows and the next one does not removes nothing", async () => {
  const before = await held();
  const pages = Math.ceil((before.person?.length ?? 0) / 500);
  world.simulator.control.fail({ match: LISTS.PERSONS.path, times: pages, with: { kind: "part", share: 0.8 } });
  expect(await world.sync(AS, "RECONCILE")).toMatchObject({ state: "SUCCEEDED", gaps: [] });
  expect(walksOf("PERSONS")).toBe(2);
  expect(await held()).toEqual(before);
});

test("a smaller loss that two walks show is one", async () => {
  const gone = world.simulator.control.visibleTo(world.userId).persons.slice(-20);
  for (const { id = 0 } of gone) world.simulator.control.hide("person", id);
  expect(await world.sync(AS, "RECONCILE")).toMatchObject({ state: "SUCCEEDED", gaps: [] });
  expect(walksOf("PERSONS")).toBe(2);
  await world.isExact(AS);
});

// Planted and seen red: the walk that was asked for before was made instead, and nothing tells that a deal is hidden.
test("a RECONCILE removes what is gone also where a walk that removes nothing was asked for before", async () => {
  const asked = `INSERT INTO sync_pass (tenant_id, copy_id, resource, kind, removes)
    SELECT tenant_id, copy_id, 'DEALS', 'WHOLE', false FROM connection`;
  await world.database.query(asked);
  const [deal] = world.simulator.control.visibleTo(world.userId).deals.slice(-1);
  world.simulator.control.hide("deal", deal?.id ?? 0);
  expect(await world.sync(AS, "RECONCILE")).toMatchObject({ state: "SUCCEEDED", gaps: [] });
  await world.isExact(AS);
});

// Seen red: what could not be read counted as not shown, and went by two walks.
test("a record that can be read no more is shown all the same, and stays as it was read", async () => {
  const { control } = world.simulator;
  const [odd, gone] = control.visibleTo(world.userId).persons.slice(-2);
  control.change("person", odd?.id ?? 0, JSON.parse('{ "name": 7 }'));
  control.hide("person", gone?.id ?? 0);
  const gaps = [{ resource: "PERSONS", code: "RECORDS_UNREADABLE", count: 1 }];
  expect(await world.sync(AS, "RECONCILE")).toMatchObject({ state: "SUCCEEDED", gaps });
  const { person } = await held();
  expect([person?.includes(odd?.id ?? 0), person?.includes(gone?.id ?? 0)]).toEqual([true, false]);
  control.change("person", odd?.id ?? 0, { name: odd?.name });
});

test("a list that shows nothing removes nothing, however small it is", async () => {
  const before = await held();
  const empty = { success: true, data: [], additional_data: { next_cursor: null } };
  const lists = ["ORGANIZATIONS", "PERSONS", "DEALS", "ACTIVITIES", "NOTES", "PIPELINES", "STAGES"] as const;
  for (const list of lists) {
    simulatorShows(list, list === "NOTES" ? { success: true, data: null } : empty);
  }
  const run = await world.sync(AS, "RECONCILE");
  expect(run.state).toBe("SUCCEEDED");
  expect(run.gaps.map(({ resource, code }) => [resource, code]).sort()).toEqual(
    lists.map((list) => [list, "NOT_SHOWN"]).sort(),
  );
  expect(await held()).toEqual(before);
  world.simulator.control.clearFaults();
  world.passMinutes(11);
  expect(await world.sync(AS)).toMatchObject({ state: "SUCCEEDED", gaps: [] });
  expect(await held()).toEqual(before);
});

function simulatorShows(list: keyof typeof LISTS, body: object): void {
  world.simulator.control.fail({ match: LISTS[list].path, with: { status: 200, body } });
}

test.each(["own", "nothing"] as const)(
  "a user who sees %s any more keeps nothing else, once the reconciling passes are over",
  async (sight) => {
    const { simulator } = world;
    simulator.control.narrow(world.userId, sight);
    const before = await held();
    expect((await world.sync(AS, "RECONCILE")).state).toBe("SUCCEEDED");
    // Much is gone: it takes a second look ten minutes later.
    expect((await held()).person).toEqual(before.person);
    world.passMinutes(11);
    expect(await world.sync(AS)).toMatchObject({ state: "SUCCEEDED", gaps: [] });
    expect(await held()).toEqual(visibleIds(simulator, world.userId));
    await world.isExact(AS);
    const muchGone = () => world.database.query("SELECT 1 FROM sync_list WHERE much_gone");
    // Planted and seen red: the next read of what changed forgot it, and what is back was looked for weeks later.
    await world.sync(AS);
    expect(await muchGone()).not.toEqual([]);
    simulator.control.narrow(world.userId, "everything");
    expect((await world.sync(AS, "RECONCILE")).state).toBe("SUCCEEDED");
    expect(await held()).toEqual(before);
    expect(await muchGone()).toEqual([]);
  },
);

// Seen red: each turn judged by what was left to remove.
test("that much was gone is known where its removal takes several turns", async () => {
  const { simulator } = world;
  simulator.control.narrow(world.userId, "own");
  await world.sync(AS, "RECONCILE");
  world.passMinutes(11);
  const turnEnds = { kind: "meanwhile" as const, act: () => world.passMinutes(0.3) };
  const where = (query: Query) => !query.updated_since && !query.ids;
  simulator.control.fail({ match: LISTS.PERSONS.path, where, with: turnEnds });
  expect(await world.sync(AS)).toMatchObject({ state: "SUCCEEDED", gaps: [] });
  expect(await held()).toEqual(visibleIds(simulator, world.userId));
  const muchGone = "SELECT 1 FROM sync_list WHERE much_gone AND resource = 'PERSONS'";
  expect(await world.database.query(muchGone)).not.toEqual([]);
  simulator.control.narrow(world.userId, "everything");
  await world.sync(AS, "RECONCILE");
});

test("where so much is gone and the user is deactivated by then, nothing is removed", async () => {
  const before = await held();
  glitch(0.3);
  await world.sync(AS, "RECONCILE");
  world.passMinutes(11);
  world.simulator.control.fail({
    match: LISTS.ORGANIZATIONS.path,
    times: 1,
    with: {
      kind: "meanwhile",
      act: () => world.simulator.control.change("user", world.userId, { active_flag: false }),
    },
  });
  const run = await world.sync(AS);
  expect(run).toMatchObject({ state: "FAILED", error: { code: "NEEDS_REAUTHORIZATION" } });
  expect(await held()).toEqual(before);
  world.simulator.control.reactivate(world.userId);
  expect((await connect(world.api, world.simulator, AS)).connection?.state).toBe("CONNECTED");
  world.simulator.control.clearFaults();
  await world.runEnds(AS);
});
