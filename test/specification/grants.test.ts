import { Grants } from "../../src/connections/grants";
import { useRenewals, WORKS } from "../support/renewals";
import { startService } from "../support/service";
import { dataOf } from "../support/stories";

// Seen red with: no periodic task; one that tries again at each look; one that renews what is in use.

const DAY = 86_400_000;

let grants: Grants;
const on = useRenewals();
beforeAll(() => {
  grants = new Grants({ ...on.access, clock: on.clock });
});

const endsAt = async (tenant: string) => {
  const query = "{ connection { grantEndsAt } }";
  return dataOf(await on.service.ask<{ connection: { grantEndsAt: string | null } }>(query, {}, { tenant })).connection
    .grantEndsAt;
};
const daysOn = (days: number) => new Date(on.clock().getTime() + days * DAY).toISOString();

/** Every look of a day does what the first one does, so two stand for all. */
async function passDays(days: number): Promise<void> {
  for (let day = 0; day < days; day += 1) {
    on.later(DAY);
    await grants.sweep();
    await grants.sweep();
  }
}

test("in 90 days in which nobody uses a connection it is renewed twice or three times, and stays connected", async () => {
  const acme = await on.connected();
  expect(await endsAt(acme.tenant)).toBe(daysOn(60));
  await passDays(90);
  expect(on.asked()).toBeGreaterThanOrEqual(2);
  expect(on.asked()).toBeLessThanOrEqual(3);
  expect(await on.shown(acme)).toEqual(WORKS);
  await acme.source.current();
  expect(await on.shown(acme)).toEqual(WORKS);
  expect(await endsAt(acme.tenant)).toBe(daysOn(60));
});

test("one that is used is left alone", async () => {
  const acme = await on.connected();
  on.later(20 * DAY);
  await acme.source.current();
  const { version } = await on.stored(acme);
  await passDays(29);
  expect((await on.stored(acme)).version).toBe(version);
  await passDays(2);
  expect((await on.stored(acme)).version).toBe(version + 1);
});

test("while the CRM does not answer it is tried once a day, by all workers together", async () => {
  const acme = await on.connected();
  on.later(31 * DAY);
  const end = on.fail({ status: 503, body: "" });
  const another = new Grants({ ...on.access, clock: on.clock });
  on.simulator.log.clear();
  await Promise.all([grants.sweep(), another.sweep()]);
  const idle = await on.database.query("SELECT 1 FROM credential WHERE kept_alive_at = $1", [on.clock()]);
  expect(on.asked()).toBe(idle.length);
  on.later(DAY / 2);
  await grants.sweep();
  expect(on.asked()).toBe(idle.length);
  end();
  on.later(DAY);
  await grants.sweep();
  expect(await on.shown(acme)).toEqual(WORKS);
  expect(await endsAt(acme.tenant)).toBe(daysOn(60));
});

// Seen red with a look that the start waits for: 30 s for each.
test("a service starts while the CRM is silent about grants that nobody has used", async () => {
  await on.connected();
  on.later(31 * DAY);
  const end = on.fail({ kind: "hang" });
  const service = await startService(on.simulator, on.database, { clock: on.clock });
  await on.isSent();
  end();
  await service.stop();
}, 25_000);

// Seen red without an end of the look: all twenty, half a minute each, are what a stop waits for.
test("a look ends with the grant in hand where the CRM is slow, and the next one goes on at once", async () => {
  const [one, other] = [await on.connected(), await on.connected()];
  on.later(31 * DAY);
  const end = on.fail({ kind: "hang" });
  const looking = grants.sweep();
  await on.isSent();
  on.later(10_000);
  end();
  await looking;
  expect(on.asked()).toBe(1);
  await grants.sweep();
  for (const { tenant } of [one, other]) expect(await endsAt(tenant)).toBe(daysOn(60));
});

test("what a clock far ahead has noted does not keep a grant from being renewed", async () => {
  const acme = await on.connected();
  const { version } = await on.stored(acme);
  await on.database.query("UPDATE credential SET kept_alive_at = '2100-01-01', access_token_asked_at = '2100-01-01'");
  await passDays(1);
  expect((await on.stored(acme)).version).toBe(version + 1);
  expect(await endsAt(acme.tenant)).toBe(daysOn(60));
});

test("a clock that was far ahead at one look keeps no later one from being made", async () => {
  const looking = new Grants({ ...on.access, clock: on.clock });
  on.later(400 * DAY);
  await looking.sweep();
  on.later(-400 * DAY);
  const acme = await on.connected();
  const { version } = await on.stored(acme);
  on.later(31 * DAY);
  await looking.sweep();
  expect((await on.stored(acme)).version).toBe(version + 1);
});

test("one whose authorization has ended is not tried, and says no end", async () => {
  const acme = await on.connected();
  on.later(31 * DAY);
  on.simulator.control.revoke(on.userId);
  await grants.sweep();
  expect(await on.shown(acme)).toMatchObject({ state: "NEEDS_REAUTHORIZATION" });
  expect(await endsAt(acme.tenant)).toBeNull();
  on.simulator.log.clear();
  await passDays(2);
  expect(on.asked()).toBe(0);
});

// Planted and seen red: each look found those again that it had just tried.
test("however many were tried today and could not be renewed, another has its turn", async () => {
  for (let others = 0; others < 20; others += 1) await on.connected();
  const acme = await on.connected();
  on.later(31 * DAY);
  const tried = "UPDATE credential SET kept_alive_at = CASE WHEN tenant_id <> $1 THEN $2::timestamptz END";
  await on.database.query(tried, [acme.tenantId, on.clock()]);
  await grants.sweep();
  expect(on.asked()).toBe(1);
  expect(await endsAt(acme.tenant)).toBe(daysOn(60));
});
