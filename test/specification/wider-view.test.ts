import { copiedIds, visibleIds } from "../support/copy";
import { SyncWorld } from "../support/sync-world";
import { useStarted } from "../support/world";

const AS = { tenant: "acme" };
const world = useStarted(() => SyncWorld.start({ deals: 60, dailyTokens: 30_000 }));
const held = (as = AS) => copiedIds(world.database, as.tenant);

/** A day of the schedule: what runs it makes, a look every six hours. */
async function passDay(as = AS, reconcileIntervalMs?: number): Promise<string[]> {
  const { database, simulator } = world;
  const kinds: string[] = [];
  for (let hours = 0; hours < 24; hours += 6) {
    world.passMinutes(6 * 60 + 1);
    simulator.control.endDay();
    await world.due(as, 60, reconcileIntervalMs);
    const last = `SELECT kind FROM sync_run WHERE tenant_id = $1 ORDER BY queued_at DESC LIMIT 1`;
    const id = await database.tenantId(as.tenant);
    kinds.push(...(await database.query<{ kind: string }>(last, [id])).map(({ kind }) => kind));
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

// Seen red: they were missing, and nobody was said to have their addresses, for as long as a month.
test("where people alone come into sight, and one of them changes, all of them are there within days", async () => {
  const { simulator, userId } = world;
  const as = { tenant: "people" };
  const hidden = simulator.control.visibleTo(userId).persons.flatMap(({ id }) => (id && id % 4 === 0 ? [id] : []));
  for (const id of hidden) simulator.control.hide("person", id);
  await world.connect(as);
  expect(await held(as)).toEqual(visibleIds(simulator, userId));
  for (const id of hidden) simulator.control.show("person", id);
  simulator.control.add("person", { name: "New" });
  expect(await passDay(as)).not.toContain("RECONCILE");
  simulator.control.change("person", hidden[0] ?? 0, { name: "Changed" });
  const kinds = [...(await passDay(as)), ...(await passDay(as)), ...(await passDay(as))];
  expect(kinds.filter((kind) => kind === "RECONCILE")).toHaveLength(1);
  expect(await held(as)).toEqual(visibleIds(simulator, userId));
});

const setLists = (change: string) =>
  world.database.query(`UPDATE sync_list SET ${change}`, [new Date(Date.now() + world.time.aheadMs)]);

// Seen red: what had gone out of sight was held, shown and counted for as long as a month.
test("what a user sees no more who was given a narrower view is gone within days", async () => {
  const { simulator, userId } = world;
  const as = { tenant: "narrower" };
  const other = simulator.control.visibleTo(userId).deals.find(({ owner_id }) => owner_id !== userId);
  for (let count = 0; count < 300; count += 1) simulator.control.add("deal", { owner_id: other?.owner_id });
  await world.connect(as);
  const wide = await held(as);
  expect(wide).toEqual(visibleIds(simulator, userId));
  simulator.control.narrow(userId, "own");
  expect(visibleIds(simulator, userId)).not.toEqual(wide);
  const kinds = [...(await passDay(as)), ...(await passDay(as))];
  expect(kinds.filter((kind) => kind === "RECONCILE")).toHaveLength(1);
  expect(await held(as)).toEqual(visibleIds(simulator, userId));
  simulator.control.narrow(userId, "everything");
});

// Planted and seen red: that walk asked for, which finds no more and would leave persons and all else for as long as a month.
test("where much is gone, no walk through the deals alone keeps the RECONCILE from coming", async () => {
  await setLists(`late_at = NULL, much_gone = resource = 'DEALS',
    whole_at = $1::timestamptz - CASE WHEN resource = 'DEALS' THEN interval '30 hours' ELSE interval '10 hours' END`);
  const kinds = await passDay();
  expect(kinds.filter((kind) => kind === "RECONCILE")).toHaveLength(1);
});

// Planted and seen red: its activities not asked for; a walk that removes nothing.
test("a deal that nobody said was gone is, with what was done on it, within days, and no RECONCILE is made for it", async () => {
  const { simulator } = world;
  const as = { tenant: "hidden" };
  const deal = simulator.control.add("deal", { title: "To be hidden" });
  const call = simulator.control.add("activity", { type: "call", deal_id: deal, done: true, due_date: "2026-01-05" });
  await world.connect(as);
  simulator.control.hide("deal", deal);
  simulator.control.hide("activity", call);
  expect([...(await passDay(as)), ...(await passDay(as))]).not.toContain("RECONCILE");
  const copy = await held(as);
  expect([copy.deal?.includes(deal), copy.activity?.includes(call)]).toEqual([false, false]);
});

// Planted and seen red: removed all the same.
test("where a RECONCILE is made by request only, no walk through the deals removes any", async () => {
  const { simulator } = world;
  const as = { tenant: "by request" };
  const deal = simulator.control.add("deal", { title: "To be hidden" });
  await world.connect(as);
  simulator.control.hide("deal", deal);
  simulator.log.clear();
  await passDay(as, 0);
  await passDay(as, 0);
  const walked = world.asked("DEALS").filter(({ query }) => !query.updated_since && !query.ids);
  expect(walked.length).toBeGreaterThan(0);
  expect((await held(as)).deal).toContain(deal);
});

test("a deal that is new in the CRM, or changed by it, is no sign of a wider view", async () => {
  const { simulator, userId } = world;
  simulator.control.add("deal", { title: "New", status: "open" });
  const [deal] = simulator.control.visibleTo(userId).deals;
  simulator.control.change("deal", deal?.id ?? 0, { title: "Renamed" });
  expect([...(await passDay()), ...(await passDay())]).not.toContain("RECONCILE");
});

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
  // Twice, for the CRM shows none of these.
  expect([await walked(), await walked(), await walked()]).toEqual([0, 0, 2]);
});

// Planted and seen red: a day after the last time.
test("for a deal that comes late everything is walked as soon as a fifth of the company's share pays for it twice", async () => {
  // 1,260 tokens, twice, of 1,500 a day: 40 hours, of which 17 have passed.
  await holdDeals(20_001, 80_000);
  await setLists("whole_at = $1::timestamptz - interval '17 hours', late_at = $1, much_gone = false");
  const kinds = await passDay();
  expect([kinds.slice(0, 3).includes("RECONCILE"), kinds.at(-1)]).toEqual([false, "RECONCILE"]);
});
