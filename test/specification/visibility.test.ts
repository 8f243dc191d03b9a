import type { Simulator } from "../../simulator";
import { connect, dataOf, syncEnds } from "../support/stories";
import { copyOf } from "../support/tokens";
import { useService } from "../support/world";

// Planted and seen red: users of whom only a person is seen named as unseen.

/** Set-ups of groups, owners and sharing, each with a tenant of its own. `DEEP=1` tries as many as the promise names. */
const SETUPS = process.env.DEEP === "1" ? 50 : 6;
jest.setTimeout(600_000);

const { simulator, service, database } = useService({ deals: 30, dailyTokens: 10_000_000 });

const REPORT = `{ connection { visibility { asOf deals persons organizations
  byOwner { owner { crmId } deals openDeals } byPipeline { pipeline { crmId } deals openDeals } unseenUsers { crmId } } } }`;
interface Row {
  deals: number;
  openDeals: number;
}
interface Report {
  asOf: string | null;
  deals: number;
  persons: number;
  organizations: number;
  byOwner: (Row & { owner: { crmId: string } | null })[];
  byPipeline: (Row & { pipeline: { crmId: string } | null })[];
  unseenUsers: { crmId: string }[];
}
const reportOf = async (as: object) =>
  dataOf(await service.ask<{ connection: { visibility: Report | null } }>(REPORT, {}, as)).connection.visibility;

/** The same of the simulator's own rules. */
function truthOf(seen: ReturnType<Simulator["control"]["visibleTo"]>): Omit<Report, "asOf"> {
  const count = (by: "owner_id" | "pipeline_id") => {
    const counted = new Map<number, Row>();
    for (const deal of seen.deals) {
      const { deals, openDeals } = counted.get(deal[by]) ?? { deals: 0, openDeals: 0 };
      counted.set(deal[by], { deals: deals + 1, openDeals: openDeals + (deal.status === "open" ? 1 : 0) });
    }
    return [...counted].sort(([a, x], [b, y]) => y.deals - x.deals || a - b);
  };
  const owners = new Set([...seen.deals, ...seen.persons, ...seen.organizations].map(({ owner_id }) => owner_id));
  return {
    deals: seen.deals.length,
    persons: seen.persons.length,
    organizations: seen.organizations.length,
    byOwner: count("owner_id").map(([id, row]) => ({ owner: { crmId: String(id) }, ...row })),
    byPipeline: count("pipeline_id").map(([id, row]) => ({ pipeline: { crmId: String(id) }, ...row })),
    unseenUsers: seen.users
      .filter(({ id, active_flag }) => active_flag && !owners.has(id))
      .map(({ id }) => ({ crmId: String(id) }))
      .sort((a, b) => Number(a.crmId) - Number(b.crmId)),
  };
}

/** The same numbers each time. */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * below);
  };
}

/** Deals the company's users out to groups anew, and its records to users and degrees of sharing. @returns who connects */
function shuffle(setup: number): number {
  const { company, control } = simulator;
  const random = randomOf(setup + 1);
  const users = [...company.users.values()];
  const groups = 2 + random(4);
  for (const { id } of users) company.groups.set(id, 1 + random(groups));
  const owners = users.filter(() => random(3) > 0);
  const ownerId = () => (owners[random(owners.length)] ?? users[0])?.id ?? 0;
  const visible_to = () => [1, 3, 3, 3, 7][random(5)] ?? 3;
  for (const { id } of company.deals.values())
    control.change("deal", id, { owner_id: ownerId(), visible_to: visible_to() });
  for (const { id } of company.persons.values())
    control.change("person", id, { owner_id: ownerId(), visible_to: visible_to() });
  for (const { id } of company.organizations.values())
    control.change("organization", id, { owner_id: ownerId(), visible_to: visible_to() });
  const active = users.filter(({ active_flag }) => active_flag);
  return active[random(active.length)]?.id ?? 0;
}

test("in any set-up of groups the report is what the authorizing user is shown, counted without a call to the CRM", async () => {
  for (let setup = 0; setup < SETUPS; setup += 1) {
    const as = { tenant: `setup-${setup}` };
    const userId = shuffle(setup);
    simulator.control.signIn(userId);
    await connect(service, simulator, as);
    expect((await syncEnds(service, as)).state).toBe("SUCCEEDED");
    simulator.log.clear();
    const { asOf, ...report } = (await reportOf(as)) ?? { asOf: null };
    expect({ setup, ...report }).toEqual({ setup, ...truthOf(simulator.control.visibleTo(userId)) });
    const watermark = `SELECT min(watermark) AS at FROM sync_list WHERE copy_id = $1
      AND resource IN ('USERS', 'ORGANIZATIONS', 'PERSONS', 'DEALS', 'PIPELINES')`;
    const [oldest] = await database.query<{ at: Date }>(watermark, [await copyOf(database, as.tenant)]);
    expect(asOf).toBe(oldest?.at.toISOString());
    expect(simulator.log.all()).toEqual([]);
    expect(await reportOf({ ...as, role: "owner", plan: "free" })).toMatchObject(report);
    expect(await reportOf({ ...as, role: "member" })).toBeNull();
  }
});

test("it follows the syncs, and says of nobody that he owns what the CRM names no known owner of", async () => {
  const as = { tenant: "setup-0" };
  const before = await reportOf(as);
  const copyId = await copyOf(database, as.tenant);
  const [user] = before?.byOwner ?? [];
  await database.query("DELETE FROM crm_user WHERE copy_id = $1 AND crm_id = $2", [copyId, user?.owner?.crmId]);
  await database.query("UPDATE deal SET pipeline_id = NULL WHERE copy_id = $1", [copyId]);
  await database.query("UPDATE sync_list SET watermark = NULL WHERE copy_id = $1 AND resource = 'PERSONS'", [copyId]);
  const after = await reportOf(as);
  expect(after?.byOwner).toContainEqual({ ...user, owner: null });
  expect(after?.byPipeline.map(({ pipeline, deals }) => [pipeline, deals])).toEqual([[null, before?.deals]]);
  expect([after?.deals, after?.asOf]).toEqual([before?.deals, null]);
});

test("of very many pipelines and owners the first are shown, and the numbers tell that they are not all", async () => {
  const as = { tenant: "setup-1" };
  const copyId = await copyOf(database, as.tenant);
  const more = (table: string, ids: string) =>
    database.query(
      `INSERT INTO ${table} SELECT (jsonb_populate_record(NULL::${table}, to_jsonb(t) || jsonb_build_object(${ids}))).*
       FROM (SELECT * FROM ${table} WHERE copy_id = $1 ORDER BY crm_id LIMIT 1) t, generate_series(900001, 900501) n`,
      [copyId],
    );
  await more("pipeline", "'crm_id', n");
  await more("crm_user", "'crm_id', n");
  await more("deal", "'crm_id', n, 'pipeline_id', n, 'owner_id', n");
  const { deals = 0, byOwner = [], byPipeline = [] } = (await reportOf(as)) ?? {};
  for (const rows of [byOwner, byPipeline]) {
    expect(rows).toHaveLength(500);
    expect(rows.reduce((sum, row) => sum + row.deals, 0)).toBeLessThan(deals);
  }
});

test("without a connection there is none", async () => {
  expect(await reportOf({ tenant: "never-connected" })).toBeNull();
});
