import { useProbedWorld } from "../support/probed-world";
import { recordMeeting } from "../support/stories";

const { simulator, database, service, clock, passMinutes, sync, metAs } = useProbedWorld();

const WHO = "/api/v1/users/me";
type Query = Readonly<Record<string, string>>;

/** From now on each of these requests takes longer than a turn, and less than a lease. */
const isSlow = (match: RegExp, where?: (query: Query) => boolean) =>
  simulator.control.fail({ match, where, with: { kind: "meanwhile", act: () => passMinutes(0.3) } });

/** What each turn of a run has asked for of what is meant: it begins with who the user is. */
function turns(isMeant: (entry: { path: string; query: Query }) => boolean): string[][] {
  const all: string[][] = [];
  for (const entry of simulator.log.all()) {
    if (entry.path === WHO) all.push([]);
    else if (isMeant(entry)) all.at(-1)?.push(entry.path);
  }
  return all;
}

const LISTS = /^\/api\/v[12]\/(users|pipelines|stages|organizations|persons|deals|activities|notes)$/;

// Seen red: a turn's end was heard within a list alone. Eight lists of 25 s each kept a place of the worker for 200 s, and where
// none came at all for six minutes.
test("a run whose CRM takes as long as a turn for each list gives its place to others after each", async () => {
  const as = { tenant: "slow lists" };
  await metAs(as);
  passMinutes(5 * 60);
  isSlow(LISTS);
  expect(await sync(as)).toMatchObject({ state: "SUCCEEDED" });
  const asked = turns(({ path }) => LISTS.test(path)).filter((turn) => turn.length > 0);
  expect(asked.flat()).toHaveLength(asked.length);
  expect(asked.length).toBeGreaterThanOrEqual(8);
});

// Seen red: such a run never came to its end, and none could be asked for: each turn was over before it asked who takes part in deals.
test("a run ends where who the user is takes as long as a turn too", async () => {
  const as = { tenant: "slow user" };
  await metAs(as);
  passMinutes(5 * 60);
  isSlow(/^\/api\/v1\/users\/me$/);
  expect(await sync(as)).toMatchObject({ state: "SUCCEEDED" });
});

// Seen red: twenty meetings that begin together were looked through one after the other, up to four answers of half a minute for each.
test("so it does after each of several meetings that begin together, and each is brought up to date", async () => {
  const as = { tenant: "slow meetings" };
  await metAs(as);
  for (let more = 0; more < 3; more += 1)
    await recordMeeting(service, ["slowmeetings@met.example"], { startsAt: clock().toISOString() }, as);
  const where = (query: Query) => query.ids !== undefined;
  isSlow(/^\/api\/v2\/deals$/, where);
  expect(await sync(as)).toMatchObject({ state: "SUCCEEDED" });
  const asked = turns((entry) => entry.path === "/api/v2/deals" && where(entry.query));
  expect(asked.filter((turn) => turn.length > 0).map((turn) => turn.length)).toEqual([1, 1, 1, 1]);
  const waiting = "SELECT 1 FROM meeting WHERE tenant_id = $1 AND refreshed_at IS NULL";
  expect(await database.query(waiting, [await database.tenantId(as.tenant)])).toEqual([]);
});
