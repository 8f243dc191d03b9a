import { copiedIds, visibleIds } from "../support/copy";
import { SyncWorld } from "../support/sync-world";
import { useStarted } from "../support/world";

const AS = { tenant: "acme" };
const world = useStarted(() => SyncWorld.start({ deals: 60, dailyTokens: 30_000 }));
const held = () => copiedIds(world.database, AS.tenant);

/** A day of the schedule: what runs it makes, a look every six hours. */
async function passDay(): Promise<string[]> {
  const { database, simulator } = world;
  const kinds: string[] = [];
  for (let hours = 0; hours < 24; hours += 6) {
    world.passMinutes(6 * 60 + 1);
    simulator.control.endDay();
    await world.due(AS, 60);
    const last = "SELECT kind FROM sync_run ORDER BY queued_at DESC LIMIT 1";
    kinds.push(...(await database.query<{ kind: string }>(last)).map(({ kind }) => kind));
  }
  return kinds;
}

// Seen red with: deals that come late not noted; noted in a first sync too; what notes them never ended.
test("what a user sees who was given a wider view in the CRM is all there within days, though the CRM tells no change of it", async () => {
  const { simulator, userId } = world;
  simulator.control.narrow(userId, "own");
  await world.connect(AS);
  const narrow = await held();
  expect(narrow).toEqual(visibleIds(simulator, userId));
  expect(await passDay()).not.toContain("RECONCILE");
  simulator.control.narrow(userId, "everything");
  expect(visibleIds(simulator, userId)).not.toEqual(narrow);
  const kinds = [...(await passDay()), ...(await passDay()), ...(await passDay())];
  expect(kinds.filter((kind) => kind === "RECONCILE")).toHaveLength(1);
  expect(await held()).toEqual(visibleIds(simulator, userId));
});

test("a deal that is new in the CRM, or changed by it, is no sign of a wider view", async () => {
  const { simulator, userId } = world;
  simulator.control.add("deal", { title: "New", status: "open" });
  const [deal] = simulator.control.visibleTo(userId).deals;
  simulator.control.change("deal", deal?.id ?? 0, { title: "Renamed" });
  expect([...(await passDay()), ...(await passDay())]).not.toContain("RECONCILE");
});

const setLists = (change: string) =>
  world.database.query(`UPDATE sync_list SET ${change}`, [new Date(Date.now() + world.time.aheadMs)]);
/** Closed ones, of which nothing is read: the copy is so much larger, and what walks through it cost. */
const holdDeals = (from: number, until: number) =>
  world.database.query(
    `INSERT INTO deal (tenant_id, copy_id, crm_id, title, status, participants_due, participants_known, custom_fields)
     SELECT tenant_id, copy_id, 1000000 + g, '', 'lost', false, true, '{}' FROM connection, generate_series($1::int, $2::int) g`,
    [from, until],
  );

// Planted and seen red: each day.
test("all deals are walked, for who takes part in them, as often as a fiftieth of the company's share pays for it", async () => {
  // 41 pages at 10 tokens, of 150 a day.
  await holdDeals(1, 20_000);
  await setLists("whole_at = $1");
  const walked = async () => {
    world.simulator.log.clear();
    await passDay();
    return world.asked("DEALS").filter(({ query }) => !query.updated_since && !query.ids).length;
  };
  expect([await walked(), await walked(), await walked()]).toEqual([0, 0, 1]);
});

// Planted and seen red: a day after the last time.
test("for a deal that comes late everything is walked as soon as a fifth of the company's share pays for it twice", async () => {
  // 1,260 tokens, twice, of 1,500 a day: 40 hours, of which 17 have passed.
  await holdDeals(20_001, 60_000);
  await setLists("whole_at = $1::timestamptz - interval '17 hours', late_at = $1");
  const kinds = await passDay();
  expect([kinds.slice(0, 3).includes("RECONCILE"), kinds.at(-1)]).toEqual([false, "RECONCILE"]);
});
