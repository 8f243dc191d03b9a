import { hasFailedLately, keepLiveList, readFieldList } from "../../src/connections/field-lists";
import { CrmError } from "../../src/crm/errors";
import { fieldOf, fieldsIn, listPath, mappingsOf, setMapping, showFields } from "../support/fields";
import { connect, noJobIsDue } from "../support/stories";
import { SyncWorld } from "../support/sync-world";
import { copyOf, loseAuthorization } from "../support/tokens";
import { useStarted } from "../support/world";

const world = useStarted(() => SyncWorld.start({ deals: 20 }));
beforeEach(() => world.beginAnew());

const asked = () => world.simulator.log.of("GET", /Fields$/).map(({ path }) => path);
const BOTH = [listPath("DEAL"), listPath("PERSON")];

/** Somebody who has nominated a field of deals and one of persons, an hour ago. */
async function nominated(tenant: string) {
  const as = { tenant };
  const { api, simulator } = world;
  await world.connect(as);
  await noJobIsDue(world.database);
  for (const entity of ["DEAL", "PERSON"] as const)
    await setMapping(api, entity, fieldOf(simulator, entity, "varchar").field_code, as);
  world.passMinutes(60);
  simulator.log.clear();
  return as;
}

/** What the schedule has to read it reads, and what follows a run is done. */
async function comesBy(as: { tenant: string }, minutes: number): Promise<void> {
  world.passMinutes(minutes);
  await world.due(as, 2);
  await noJobIsDue(world.database);
}

// Seen red with: the refused list alone, after each sync.
test("a nominated field whose list is refused is looked for hourly, and keeps no other from being looked at", async () => {
  const { api, simulator } = world;
  const as = await nominated("refused");
  const field = fieldOf(simulator, "PERSON", "varchar");
  const others = fieldsIn(simulator, "PERSON").filter((one) => one !== field);
  showFields(simulator, "PERSON", others);
  simulator.control.fail({ match: listPath("DEAL"), with: { status: 403 } });
  for (let syncs = 0; syncs < 3; syncs += 1) await comesBy(as, 10);
  expect(asked()).toEqual(BOTH);
  expect(await mappingsOf(api, as)).toMatchObject([{ health: "UNKNOWN" }, { health: "MISSING_IN_CRM" }]);
  simulator.control.clearFaults();
  await comesBy(as, 60);
  expect(asked()).toEqual([...BOTH, ...BOTH]);
  expect(await mappingsOf(api, as)).toMatchObject([{ health: "OK" }, { health: "OK" }]);
});

test("where all calls would meet it, no other list is asked for, and all are after the next sync", async () => {
  const as = await nominated("throttled");
  world.simulator.control.fail({ match: listPath("DEAL"), times: 1, with: { kind: "throttle" } });
  await comesBy(as, 10);
  expect(asked()).toEqual([listPath("DEAL")]);
  await comesBy(as, 10);
  expect(asked()).toEqual([listPath("DEAL"), ...BOTH]);
});

// Seen red with: each hour, 240 tokens a day for one list, for as long as it was refused; four hours also where the CRM was out of order.
test.each([
  ["is refused is asked for ever more rarely, each four hours in the end", 403, [110, 230, 230], [30, 10, 10]],
  ["fails for a fault is asked for hourly, for as long as that lasts", 503, [50, 50, 50], [10, 10, 10]],
])("a list of fields that %s", async (what, status, tooSoon, inTime) => {
  const as = { tenant: what.slice(0, 8) };
  const { simulator } = world;
  await world.connect(as);
  simulator.control.fail({ match: listPath("ORGANIZATION"), with: { status } });
  const isAsked = async (minutes: number) => {
    simulator.log.clear();
    await comesBy(as, minutes);
    return asked().includes(listPath("ORGANIZATION"));
  };
  for (const minutes of [24 * 60, 60, 70]) expect([minutes, await isAsked(minutes)]).toEqual([minutes, true]);
  for (const [step, minutes] of tooSoon.entries())
    expect([await isAsked(minutes), await isAsked(inTime[step] ?? 0)]).toEqual([false, true]);
});

/** A list that was refused just now, and is not any more. */
async function refused(tenant: string) {
  const as = { tenant };
  const { simulator } = world;
  await world.connect(as);
  simulator.control.fail({ match: listPath("DEAL"), with: { status: 403 } });
  await comesBy(as, 24 * 60);
  simulator.control.clearFaults();
  simulator.log.clear();
  await comesBy(as, 10);
  expect(asked()).toEqual([]);
  return as;
}

// Seen red, both: it was waited for until an hour, or four, had passed.
test("a list of fields that was refused is asked for at once by a sync that somebody asks for", async () => {
  await world.sync(await refused("asked for"));
  expect(asked()).toEqual([listPath("DEAL")]);
});

test("and by that of who has authorized anew, and may see more", async () => {
  const as = await refused("anew");
  const { api, database, simulator } = world;
  await loseAuthorization(database, as.tenant);
  await connect(api, simulator, as);
  await world.runEnds(as);
  expect(asked()).toEqual([listPath("DEAL")]);
});

// Seen red: the list was asked for again an hour later, and its nominated field not looked at until then.
test("a look that began before another was answered, and then failed, says nothing of the list", async () => {
  const as = { tenant: "late" };
  await world.connect(as);
  const { database } = world;
  const scope = database.scope(await database.tenantId(as.tenant));
  const copy = { ...scope, copyId: await copyOf(database, as.tenant) };
  world.passMinutes(24 * 60);
  const now = world.time.ours();
  const before = (seconds: number) => new Date(now.getTime() - seconds * 1_000);
  const hasFailed = async () => hasFailedLately(await readFieldList(copy, "DEAL"), now);
  const fails = (at: Date) => keepLiveList(copy, "DEAL", Promise.reject(new CrmError("UNAVAILABLE", "")), at);
  await keepLiveList(copy, "DEAL", Promise.resolve([]), before(5));
  await fails(before(10));
  expect(await hasFailed()).toBe(false);
  await fails(before(1));
  expect(await hasFailed()).toBe(true);
});
