import { setTimeout as sleep } from "node:timers/promises";
import { type Simulator, startSimulator } from "../../simulator";
import * as times from "../../simulator/model/times";
import { Snoozing } from "../../src/briefing/snoozing";
import { holdLiveCopy } from "../../src/connections/copies";
import { DealRow } from "../../src/entities/deal";
import { DAY_MS, dayOf, HOUR_MS, MINUTE_MS } from "../../src/platform/clock";
import { createLogger } from "../../src/platform/logger";
import { removeRecords } from "../../src/sync/writers";
import type { ActorClaims } from "../support/actors";
import { createTestDatabase, type TestDatabase } from "../support/database";
import { dumpState } from "../support/dump";
import { seller } from "../support/notes";
import { setQuiet } from "../support/quiet-settings";
import { type Service, startService } from "../support/service";
import { connect, dataOf, noJobIsDue, recordMeeting, syncAgain, syncEnds, until } from "../support/stories";

/** Of the simulator's users. */
const ZONE = "Europe/Tallinn";
let aheadMs = 0;
const clock = () => new Date(Date.now() + aheadMs);
const now = () => clock().getTime();
const later = (ms: number) => new Date(now() + ms).toISOString();
let simulator: Simulator;
let database: TestDatabase;
let service: Service;

beforeAll(async () => {
  [simulator, database] = await Promise.all([startSimulator({ deals: 20, now: clock }), createTestDatabase()]);
  service = await startService(simulator, database, { clock });
  await connect(service, simulator);
  await syncEnds(service);
  const { singleDeal, noParticipants, ghosted } = simulator.company.stories;
  for (const { email } of [singleDeal, noParticipants, ghosted])
    await recordMeeting(service, [email], { startsAt: later(-20 * DAY_MS) });
  await noJobIsDue(database);
});
afterAll(async () => {
  await service.stop();
  await Promise.all([simulator.stop(), database.drop()]);
});

interface Snoozed {
  deal: { id: string; snooze: { reason: string; until: string; by: string; at: string } | null };
}
const SNOOZE = `mutation ($dealId: ID!, $until: DateTime!, $reason: String!) {
  answer: snoozeDeal(dealId: $dealId, until: $until, reason: $reason) {
    ... on DealSuccess { deal { id snooze { reason until by at } } } ... on Refusal { code message field } } }`;
const WAKE = `mutation ($dealId: ID!) { answer: wakeDeal(dealId: $dealId) {
    ... on DealSuccess { deal { id snooze { reason until by at } } } ... on Refusal { code message field } } }`;
type Answer = Partial<Snoozed & Record<"code" | "message" | "field", string>>;
const ask = async (query: string, variables: object, as?: ActorClaims) =>
  dataOf(await service.ask<{ answer: Answer }>(query, variables, as)).answer;
const snooze = (dealId: string, until: string, reason = "The budget comes with the new year.", as?: ActorClaims) =>
  ask(SNOOZE, { dealId, until, reason }, as);
const wake = (dealId: string, as?: ActorClaims) => ask(WAKE, { dealId }, as);

async function idOf(crmId: number, as?: ActorClaims): Promise<string> {
  const { deals } = dataOf(
    await service.ask<{ deals: { nodes: { id: string; crmId: string }[] } }>(
      "{ deals { nodes { id crmId } } }",
      {},
      as,
    ),
  );
  const found = deals.nodes.find((deal) => deal.crmId === String(crmId));
  if (!found) throw new Error(`deal ${crmId} is not matched`);
  return found.id;
}
/** The ids of the deals that fit, by the filter `snoozed` alone and with the verdicts of the quiet board. */
async function listed(snoozed: boolean): Promise<string[]> {
  const query = `query ($snoozed: Boolean!) { deals(filter: { snoozed: $snoozed }) { nodes { id } }
    board: deals(filter: { snoozed: $snoozed, verdict: [ACTIVE, COOLING, QUIET, GHOSTED, UNKNOWN] }, orderBy: QUIET_DAYS_DESC) { nodes { id } } }`;
  interface Lists {
    deals: { nodes: { id: string }[] };
    board: { nodes: { id: string }[] };
  }
  const { deals, board } = dataOf(await service.ask<Lists>(query, { snoozed }));
  const ids = ({ nodes }: Lists["deals"]) => nodes.map(({ id }) => id).sort();
  expect(ids(board)).toEqual(ids(deals));
  return ids(deals);
}
async function shown(dealId: string) {
  const query = "query ($id: ID!) { deal(id: $id) { snooze { reason until by at } quiet { verdict } } }";
  interface Shown {
    deal: Pick<Snoozed["deal"], "snooze"> & { quiet: { verdict: string } };
  }
  return dataOf(await service.ask<Shown>(query, { id: dealId })).deal;
}
async function sync(kind = "INCREMENTAL"): Promise<void> {
  aheadMs += 11 * MINUTE_MS;
  await syncAgain(service, database, undefined, kind);
}
const auditOf = async () => {
  const query = "{ auditEvents(first: 50) { nodes { action code subject userId } } }";
  interface Events {
    auditEvents: { nodes: { action: string; code: string | null; subject: string; userId: string }[] };
  }
  const { nodes } = dataOf(await service.ask<Events>(query)).auditEvents;
  return nodes.filter(({ action }) => action === "DEAL_SNOOZED").reverse();
};

test("a deal is snoozed by any member with reason and date, leaves the board, and returns at its date; the CRM is told nothing", async () => {
  const id = await idOf(simulator.company.stories.ghosted.dealId);
  const { quiet } = await shown(id);
  const until = later(5 * DAY_MS);
  simulator.log.clear();
  const mia = { role: "member", sub: "mia" };
  const { deal } = await snooze(id, until, "  The budget comes with the new year. \u202e<b>\u0007 ", mia);
  const reason = "The budget comes with the new year. \u202e<b>\u0007";
  expect(deal).toEqual({ id, snooze: { reason, until, by: "mia", at: expect.any(String) } });
  expect(await shown(id)).toEqual({ quiet, snooze: deal?.snooze });
  expect(await listed(true)).toEqual([id]);
  expect(await listed(false)).not.toContain(id);
  // Said again alike, by whomever, nothing changes.
  const before = await dumpState(database);
  expect((await snooze(id, until, reason, { sub: "otto" })).deal).toEqual(deal);
  expect(await dumpState(database)).toEqual(before);
  // Said otherwise, be it the reason or the date alone, the newest counts.
  const otherwise = async (date: string) => (await snooze(id, date, "After the fair.", { sub: "otto" })).deal?.snooze;
  expect(await otherwise(until)).toMatchObject({ reason: "After the fair.", until, by: "otto" });
  const longer = later(9 * DAY_MS);
  expect(await otherwise(longer)).toMatchObject({ reason: "After the fair.", until: longer, by: "otto" });
  expect(simulator.log.all().filter(({ method }) => method !== "GET")).toEqual([]);
  expect(await auditOf()).toEqual(
    ["mia", "otto", "otto"].map((userId) => ({ action: "DEAL_SNOOZED", code: null, subject: id, userId })),
  );
  aheadMs += 9 * DAY_MS + MINUTE_MS;
  expect((await shown(id)).snooze).toBeNull();
  expect(await listed(true)).toEqual([]);
  expect(await listed(false)).toContain(id);
});

test("waking ends it, and succeeds where there is nothing to end", async () => {
  const id = await idOf(simulator.company.stories.ghosted.dealId);
  const events = (await auditOf()).length;
  await snooze(id, later(DAY_MS));
  expect((await wake(id, { role: "member", sub: "mia" })).deal).toEqual({ id, snooze: null });
  expect((await wake(id)).deal).toEqual({ id, snooze: null });
  expect(await listed(true)).toEqual([]);
  expect((await auditOf()).slice(events)).toEqual([
    expect.objectContaining({ code: null }),
    { action: "DEAL_SNOOZED", code: "TAKEN_BACK", subject: id, userId: "mia" },
  ]);
});

test("it holds through a sync of everything and other contact, and ends with the buyer's next", async () => {
  const { dealId, personId, email } = simulator.company.stories.noParticipants;
  const id = await idOf(dealId);
  const { deal } = await snooze(id, later(60 * DAY_MS));
  const v2Time = (at: number) => times.v2Time(at / 1_000);
  const old = { last_incoming_mail_time: v2Time(now() - HOUR_MS), last_outgoing_mail_time: v2Time(now()) };
  simulator.control.change("person", personId, old);
  simulator.control.change("deal", dealId, { title: "Renamed" });
  await sync("FULL");
  await sync("RECONCILE");
  expect((await shown(id)).snooze).toEqual(deal?.snooze);
  simulator.control.change("person", personId, { last_incoming_mail_time: v2Time(now()) });
  await sync();
  expect((await shown(id)).snooze).toBeNull();
  // What ended stays ended, and one may be begun anew.
  await sync("FULL");
  expect((await shown(id)).snooze).toBeNull();
  const begun = now();
  expect((await snooze(id, deal?.snooze?.until ?? "")).deal?.snooze).not.toBeNull();
  // A meeting with the buyer is contact at its end, without anything else that happens.
  const ends = { startsAt: later(2 * HOUR_MS), endsAt: later(3 * HOUR_MS), externalId: "ahead" };
  await recordMeeting(service, [email], ends);
  expect((await shown(id)).snooze).not.toBeNull();
  aheadMs += begun + 4 * HOUR_MS - now();
  expect((await shown(id)).snooze).toBeNull();
  expect(await listed(true)).toEqual([]);
});

// Planted and seen red: a snooze that is not judged when it is said, or judged while another judges its deal.
test("a meeting that was planned before the snooze ends it by being held, also where it is recorded at that moment", async () => {
  const { dealId, email } = simulator.company.stories.noParticipants;
  const id = await idOf(dealId);
  const plan = (externalId: string) =>
    recordMeeting(service, [email], { externalId, startsAt: later(HOUR_MS), endsAt: later(2 * HOUR_MS) });
  const isHeld = async () => {
    expect((await shown(id)).snooze).not.toBeNull();
    aheadMs += 3 * HOUR_MS;
    expect((await shown(id)).snooze).toBeNull();
  };
  await plan("planned");
  await snooze(id, later(30 * DAY_MS));
  await isHeld();
  // Judged with the meeting, and not committed yet.
  const gate = database.dataSource.createQueryRunner();
  await gate.startTransaction();
  await gate.query("LOCK TABLE deal_silence IN SHARE MODE");
  const waiting = (count: number) => until("it waits", async () => (await database.lockWaits()).length >= count);
  const planning = plan("at that moment");
  await waiting(1);
  const snoozing = snooze(id, later(30 * DAY_MS));
  await waiting(2);
  await gate.commitTransaction();
  await gate.release();
  await Promise.all([planning, snoozing]);
  await isHeld();
});

test("a meeting that is cancelled before it was held ends no snooze", async () => {
  const { dealId, email } = simulator.company.stories.noParticipants;
  const id = await idOf(dealId);
  const { id: meetingId } = await recordMeeting(service, [email], {
    startsAt: later(HOUR_MS),
    externalId: "cancelled",
  });
  const { deal } = await snooze(id, later(30 * DAY_MS));
  dataOf(await service.ask("mutation ($id: ID!) { cancelMeeting(meetingId: $id) { __typename } }", { id: meetingId }));
  aheadMs += 2 * HOUR_MS;
  expect((await shown(id)).snooze).toEqual(deal?.snooze);
  await wake(id);
});

test("what cannot be snoozed is refused in words, and nothing is stored", async () => {
  const { ghosted, singleDeal } = simulator.company.stories;
  const id = await idOf(ghosted.dealId);
  const wonId = await idOf(singleDeal.dealId);
  simulator.control.change("deal", singleDeal.dealId, { status: "won" });
  await sync();
  const before = await dumpState(database);
  const other = Buffer.from(`Deal:999999:${ghosted.dealId}`).toString("base64url");
  const unmatched = Buffer.from(Buffer.from(id, "base64url").toString().replace(/\d+$/, "987654")).toString(
    "base64url",
  );
  const missing = await Promise.all([other, unmatched, "", "\0"].map((one) => snooze(one, later(DAY_MS))));
  expect(new Set(missing.map((answer) => JSON.stringify(answer)))).toEqual(
    new Set([JSON.stringify({ code: "DEAL_NOT_FOUND", message: missing[0]?.message, field: "dealId" })]),
  );
  // Another copy became the live one after the id was read.
  const [live] = await database.query<{ id: number }>("SELECT copy_id AS id FROM connection");
  const asked = { until: new Date(later(DAY_MS)), reason: "Meanwhile." };
  const earlier = { copyId: (live?.id ?? 0) - 1, crmId: ghosted.dealId };
  const snoozing = new Snoozing(database.opened(), clock, createLogger("silent"));
  expect(await snoozing.snooze(await seller(database), earlier, asked)).toMatchObject({ code: "DEAL_NOT_FOUND" });
  const refused = async (dealId: string, until: string, reason?: string) => {
    const { code, field, message } = await snooze(dealId, until, reason);
    return `${code} ${field}: ${message}`;
  };
  expect(await refused(id, later(-1))).toBe(
    "INVALID_INPUT until: until must be in the future; to end a snooze use wakeDeal.",
  );
  expect(await refused(id, later(367 * DAY_MS))).toBe("INVALID_INPUT until: until must be within 366 days from now.");
  expect(await refused(id, later(DAY_MS), " \n ")).toBe("INVALID_INPUT reason: reason must not be empty.");
  expect(await refused(id, later(DAY_MS), "r".repeat(501))).toContain("reason must have at most 500 characters");
  expect(await refused(id, later(DAY_MS), "a\0b")).toContain("reason must not contain a NUL character");
  expect(await refused(wonId, later(DAY_MS))).toContain("INVALID_INPUT dealId: The deal is won or lost");
  const nobody = { tenant: "nobody" };
  expect((await snooze(id, later(DAY_MS), "Fine.", nobody)).code).toBe("NOT_CONNECTED");
  expect((await wake(id, nobody)).code).toBe("NOT_CONNECTED");
  expect(await dumpState(database)).toEqual(before);
});

// Seen red: a snooze that went with the deal's row.
test("it outlives its deal's way out of sight and back, by whatever way, and a re-authorization by a colleague", async () => {
  const { dealId, ownerId } = simulator.company.stories.singleDeal;
  simulator.control.change("deal", dealId, { status: "open" });
  await sync();
  const { deal } = await snooze(await idOf(dealId), later(60 * DAY_MS), "Back in spring.");
  const isBack = async () => expect((await shown(await idOf(dealId))).snooze).toEqual(deal?.snooze);
  simulator.control.remove("deal", dealId);
  await sync();
  await expect(idOf(dealId)).rejects.toThrow("is not matched");
  simulator.control.change("deal", dealId, { status: "open", is_deleted: false });
  await sync();
  await isBack();
  expect(await listed(true)).toEqual([await idOf(dealId)]);
  simulator.control.narrow(ownerId, "nothing");
  for (let walk = 0; walk < 3; walk += 1) await sync("RECONCILE");
  await expect(idOf(dealId)).rejects.toThrow("is not matched");
  simulator.control.narrow(ownerId, "everything");
  await sync("RECONCILE");
  await isBack();
  simulator.control.revoke(ownerId);
  aheadMs += 61 * MINUTE_MS;
  await expect(sync()).rejects.toThrow();
  const colleague = [...simulator.company.users.values()].find(
    ({ id, is_admin, active_flag }) => id !== ownerId && is_admin === 1 && active_flag,
  );
  simulator.control.signIn(colleague?.id ?? 0);
  await connect(service, simulator);
  await syncEnds(service);
  await noJobIsDue(database);
  await isBack();
  expect(await database.query("SELECT 1 FROM kept_snooze")).toEqual([]);
  await wake(await idOf(dealId));
});

const callOf = ({ dealId, personId }: { dealId: number; personId: number }, type = "call") => ({
  ...{ deal_id: dealId, person_id: personId, type, due_date: dayOf({ zone: ZONE, businessDays: false }, now()) },
  ...{ done: true, marked_as_done_time: times.v2Time(now() / 1_000) },
});

// Seen red: it counted from when the day began, before the snooze.
test("a call on the day of the snooze that has no time ends it, unless it was ticked off before", async () => {
  // In the afternoon: by noon in UTC the day has begun everywhere.
  aheadMs += (DAY_MS - (now() % DAY_MS) + 15 * HOUR_MS) % DAY_MS;
  const story = simulator.company.stories.noParticipants;
  const id = await idOf(story.dealId);
  simulator.control.add("activity", callOf(story));
  aheadMs += MINUTE_MS;
  const { deal } = await snooze(id, later(30 * DAY_MS));
  await sync();
  expect((await shown(id)).snooze).toEqual(deal?.snooze);
  simulator.control.add("activity", callOf(story));
  await sync();
  expect((await shown(id)).snooze).toBeNull();
});

// Seen red: of calls without a time only that of the latest day was found, whenever it was ticked off.
test("tomorrow's call that was ticked off before the snooze does not hide today's that was ticked off after it", async () => {
  aheadMs += (DAY_MS - (now() % DAY_MS) + 15 * HOUR_MS) % DAY_MS;
  const story = simulator.company.stories.noParticipants;
  const id = await idOf(story.dealId);
  const dayAfter = (days: number) => dayOf({ zone: ZONE, businessDays: false }, now() + days * DAY_MS);
  const earlier = times.v2Time((now() - 5 * DAY_MS) / 1_000);
  simulator.control.add("activity", { ...callOf(story), due_date: dayAfter(-5), marked_as_done_time: earlier });
  simulator.control.add("activity", { ...callOf(story), due_date: dayAfter(1) });
  aheadMs += MINUTE_MS;
  await snooze(id, later(30 * DAY_MS));
  await sync();
  expect((await shown(id)).snooze).not.toBeNull();
  aheadMs += MINUTE_MS;
  simulator.control.add("activity", callOf(story));
  await sync();
  expect((await shown(id)).snooze).toBeNull();
});

// Seen red: what had been our own word ended nothing when it became the buyer's.
test("a kind that is named two-way ends the snoozes that it has followed, and no others", async () => {
  const { noParticipants, ghosted } = simulator.company.stories;
  const [id, other] = [await idOf(noParticipants.dealId), await idOf(ghosted.dealId)];
  for (const one of [id, other]) await snooze(one, later(30 * DAY_MS));
  aheadMs += MINUTE_MS;
  simulator.control.add("activity", callOf(noParticipants, "demo"));
  await sync();
  expect(await listed(true)).toEqual([id, other].sort());
  await setQuiet(service, { twoWayActivityTypes: ["demo"] });
  await noJobIsDue(database);
  expect(await listed(true)).toEqual([other]);
  expect((await shown(id)).snooze).toBeNull();
  await setQuiet(service, {});
  await noJobIsDue(database);
  await wake(other);
});

test("a snooze of a deal that is out of sight goes with a disconnect", async () => {
  const { dealId } = simulator.company.stories.ghosted;
  await snooze(await idOf(dealId), later(30 * DAY_MS), "Out of sight.");
  simulator.control.remove("deal", dealId);
  await sync();
  expect(await database.query("SELECT snooze_reason FROM kept_snooze")).toEqual([{ snooze_reason: "Out of sight." }]);
  dataOf(await service.ask("mutation { disconnect { __typename } }"));
  expect(await database.query("SELECT 1 FROM kept_snooze")).toEqual([]);
  simulator.control.change("deal", dealId, { status: "open", is_deleted: false });
  await connect(service, simulator);
  await syncEnds(service);
  await noJobIsDue(database);
  expect((await shown(await idOf(dealId))).snooze).toBeNull();
});

// Seen red: the page committed after the kept ones were deleted, and the next connection brought it back.
test("a page that a disconnect waits for keeps no snooze", async () => {
  const { dealId } = simulator.company.stories.ghosted;
  await snooze(await idOf(dealId), later(30 * DAY_MS), "Until the page is done.");
  const [of] = await database.query<{ tenant: number; copy: number }>(
    "SELECT tenant_id AS tenant, copy_id AS copy FROM connection",
  );
  const [tenantId, copyId] = [of?.tenant ?? 0, of?.copy ?? 0];
  let begun = () => {};
  const removing = new Promise<void>((resolve) => {
    begun = resolve;
  });
  const page = database.scope(tenantId).transaction(async (scope) => {
    await holdLiveCopy(scope, copyId);
    await removeRecords({ ...scope, copyId }, DealRow, [dealId], clock());
    begun();
    await sleep(500);
  });
  await removing;
  await Promise.all([page, service.ask("mutation { disconnect { __typename } }")]);
  expect(await database.query("SELECT 1 FROM kept_snooze")).toEqual([]);
  await connect(service, simulator);
  await syncEnds(service);
  await noJobIsDue(database);
});

test("a snooze goes with the copy when the CRM is disconnected", async () => {
  const id = await idOf(simulator.company.stories.ghosted.dealId);
  await snooze(id, later(30 * DAY_MS), "Until the very end.");
  dataOf(await service.ask("mutation { disconnect { __typename } }"));
  await noJobIsDue(database);
  expect(JSON.stringify(await dumpState(database))).not.toContain("Until the very end.");
  expect((await wake(id)).code).toBe("NOT_CONNECTED");
});
