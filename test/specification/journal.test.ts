import { v2Time } from "../../simulator/model/times";
import { sweepChanges } from "../../src/connections/journal";
import { KeepOut } from "../../src/connections/keep-out";
import { erasePerson } from "../../src/operator/erasure";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/platform/clock";
import { Keyring } from "../../src/platform/keyring";
import { createLogger } from "../../src/platform/logger";
import { setQuiet } from "../support/quiet-settings";
import { dataOf, noJobIsDue, recordMeeting, syncAgain, syncEnds, until } from "../support/stories";
import { useService } from "../support/world";

// Seen red with: a first reading that counts as a change; a name where the record is not matched; flips that are told and not
// noted; participants that go with a person and are not noted; a deal that is gone and keeps its entries.

let aheadMs = 0;
const clock = () => new Date(Date.now() + aheadMs);
const later = (ms: number) => new Date(clock().getTime() + ms);
const { simulator, database, service, world } = useService({ deals: 40, clock, connected: ["acme"] });
const story = () => simulator.company.stories.singleDeal;

interface Change {
  kind: string;
  from: string | null;
  to: string | null;
  seenAt: string;
}
const CHANGES = "changes(first: 50) { kind from to seenAt }";
const words = (changes: readonly Change[]) => changes.map(({ kind, from, to }) => `${kind}: ${from} -> ${to}`);
const entries = async () => (await database.query<{ n: number }>("SELECT count(*)::int AS n FROM deal_change"))[0]?.n;
const forget = () => database.query("DELETE FROM deal_change");

async function sync(kind = "INCREMENTAL"): Promise<void> {
  aheadMs += 11 * MINUTE_MS;
  await syncAgain(service, database, undefined, kind);
}

interface Listed {
  crmId: string;
  changes: Change[];
}
async function changesOf(dealId: number): Promise<Change[]> {
  const query = `{ deals(first: 50) { nodes { crmId ${CHANGES} } } }`;
  const { deals } = dataOf(await service.ask<{ deals: { nodes: Listed[] } }>(query));
  return deals.nodes.find(({ crmId }) => crmId === String(dealId))?.changes ?? [];
}

test("what is read for the first time, and what is read again, is no change", async () => {
  expect(await entries()).toBe(0);
  await recordMeeting(service, [story().email], { startsAt: later(-40 * DAY_MS).toISOString() });
  for (const kind of ["INCREMENTAL", "FULL", "RECONCILE"]) await sync(kind);
  expect(await entries()).toBe(0);
});

test("what a sync sees change in a deal is an entry in words; who is not matched is a CRM id", async () => {
  const { dealId, ownerId, personId, orgId, stageId } = story();
  const { company, control } = simulator;
  const was = { ...company.deals.get(dealId) };
  const nameOf = (records: ReadonlyMap<number, { name: string }>, id?: number | null) => records.get(id ?? 0)?.name;
  const other = <T>(ids: Iterable<T>, not: T) => [...ids].find((id) => id !== not) as T;
  const [stage, owner] = [other(company.stages.keys(), stageId), other(company.users.keys(), ownerId)];
  const [person, organization] = [other(company.persons.keys(), personId), other(company.organizations.keys(), orgId)];
  control.change("deal", dealId, {
    ...{ stage_id: stage, owner_id: owner, person_id: person, org_id: organization, title: "Renamed" },
    ...{ value: 1_250.5, currency: "SEK", expected_close_date: "2027-03-01" },
  });
  await sync();
  const [first] = await changesOf(dealId);
  expect(words((await changesOf(dealId)).filter(({ kind }) => kind !== "VERDICT")).sort()).toEqual([
    `CLOSE_DATE: ${was.expected_close_date} -> 2027-03-01`,
    `ORGANIZATION: ${nameOf(company.organizations, orgId)} -> organization ${organization}`,
    `OWNER: ${nameOf(company.users, ownerId)} -> ${nameOf(company.users, owner)}`,
    `PERSON: ${nameOf(company.persons, personId)} -> person ${person}`,
    `STAGE: ${nameOf(company.stages, stageId)} -> ${nameOf(company.stages, stage)}`,
    `TITLE: ${was.title} -> Renamed`,
    `VALUE: ${was.value} ${was.currency} -> 1250.5 SEK`,
  ]);
  expect(Math.abs(new Date(first?.seenAt ?? 0).getTime() - clock().getTime())).toBeLessThan(HOUR_MS);
  control.change("deal", dealId, { status: "lost", person_id: personId });
  await sync();
  expect(words((await changesOf(dealId)).slice(0, 3))).toEqual(
    expect.arrayContaining([
      "STATUS: open -> lost",
      `PERSON: person ${person} -> ${nameOf(company.persons, personId)}`,
    ]),
  );
  control.change("deal", dealId, { status: "open", org_id: orgId });
  await sync();
  await forget();
  for (const kind of ["INCREMENTAL", "FULL", "RECONCILE"]) await sync(kind);
  expect(await entries()).toBe(0);
});

test("a change that a RECONCILE is the first to see is an entry, once", async () => {
  const { dealId } = story();
  const updated = simulator.company.deals.get(dealId)?.update_time;
  simulator.control.change("deal", dealId, { title: "Seen late" });
  Object.assign(simulator.company.deals.get(dealId) ?? {}, { update_time: updated });
  await sync();
  expect(await entries()).toBe(0);
  await sync("RECONCILE");
  await sync("RECONCILE");
  expect(words(await changesOf(dealId))).toEqual(["TITLE: Renamed -> Seen late"]);
  await forget();
});

test("who takes part is told from the second answer on, and a person that leaves with its record as well", async () => {
  const { dealId, personId, participantIds } = story();
  const { company, control } = simulator;
  const stranger = [...company.persons.keys()].find((id) => !participantIds.includes(id) && id !== personId) ?? 0;
  const names = (ids: number[]) =>
    ids
      .sort((a, b) => a - b)
      .map((id) => (id === personId ? company.persons.get(id)?.name : `person ${id}`))
      .join(", ");
  const told = async () => words((await changesOf(dealId)).filter(({ kind }) => kind === "PARTICIPANTS"));
  control.setParticipants(dealId, [...participantIds, stranger], "moves");
  await sync();
  const joined = `PARTICIPANTS: ${names([...participantIds])} -> ${names([...participantIds, stranger])}`;
  expect(await told()).toEqual([joined]);
  control.remove("person", stranger);
  await sync("RECONCILE");
  const left = `PARTICIPANTS: ${names([...participantIds, stranger])} -> ${names([...participantIds])}`;
  expect(await told()).toEqual([left, joined]);
  control.setParticipants(dealId, [], "moves");
  await sync();
  expect(await told()).toEqual([`PARTICIPANTS: ${names([...participantIds])} -> null`, left, joined]);
  control.setParticipants(dealId, participantIds, "moves");
  await sync();
  expect((await told())[0]).toBe(`PARTICIPANTS: null -> ${names([...participantIds])}`);
  await forget();
});

// Seen red: each of the persons was told as a change of its own, with the same two lists of names.
test("persons of a deal that leave at once are told as one change", async () => {
  const { dealId, personId, participantIds } = story();
  const { company, control } = simulator;
  const strangers = [...company.persons.keys()].filter((id) => !participantIds.includes(id) && id !== personId);
  const leaving = strangers.slice(0, 3);
  control.setParticipants(dealId, [...participantIds, ...leaving], "moves");
  await sync();
  await forget();
  for (const id of leaving) control.remove("person", id);
  await sync("RECONCILE");
  const told = words((await changesOf(dealId)).filter(({ kind }) => kind === "PARTICIPANTS"));
  // Pages may have held them apart.
  expect(told.length).toBeGreaterThan(0);
  expect(told.length).toBeLessThan(leaving.length);
  expect(new Set(told).size).toBe(told.length);
  control.setParticipants(dealId, participantIds, "moves");
  await sync();
  await forget();
});

const quietStory = () => simulator.company.stories.noParticipants;
const mailed = () =>
  simulator.control.change("person", quietStory().personId, {
    last_incoming_mail_time: v2Time(clock().getTime() / 1_000),
  });
const flips = async () =>
  words((await changesOf(quietStory().dealId)).filter(({ kind }) => kind === "VERDICT")).reverse();
const untold = async () => {
  const sql = "SELECT holds_from AS at FROM deal_silence WHERE deal_id = $1 AND NOT is_told ORDER BY phase";
  return (await database.query<{ at: Date }>(sql, [quietStory().dealId])).map(({ at }) => at.getTime());
};
const isPassed = () => until("it is passed", async () => (await untold()).every((at) => at > clock().getTime()));

test("each flip of a verdict is an entry, once: by what a sync brings, by a meeting, and by time alone", async () => {
  const { email } = quietStory();
  await recordMeeting(service, [email], { startsAt: later(-40 * DAY_MS).toISOString() });
  await noJobIsDue(database);
  await forget();
  mailed();
  await sync();
  const begun = await flips();
  const passNext = async () => {
    const [next = 0] = await untold();
    aheadMs += next - 12 * MINUTE_MS - clock().getTime();
    await sync();
    aheadMs += 2 * MINUTE_MS;
    await isPassed();
    return next;
  };
  await passNext();
  const next = await passNext();
  const told = await flips();
  expect(told.slice(begun.length)).toEqual(["VERDICT: ACTIVE -> COOLING", "VERDICT: COOLING -> QUIET"]);
  expect(Date.parse((await changesOf(quietStory().dealId))[0]?.seenAt ?? "")).toBe(next);
  const ahead = { startsAt: later(3 * DAY_MS).toISOString(), externalId: "ahead" };
  const { id } = await recordMeeting(service, [email], ahead);
  await noJobIsDue(database);
  await sync();
  expect((await flips()).length).toBe(told.length + 1);
  expect((await flips()).at(-1)).toMatch(/^VERDICT: QUIET -> /);
  dataOf(await service.ask("mutation ($id: ID!) { deleteMeeting(meetingId: $id) { __typename } }", { id }));
  await forget();
});

// Seen red: it waited for a run that succeeds, which none does where a list is refused.
test("what became of verdicts while the copy was too old is an entry also where one list is refused to the user for good", async () => {
  await setQuiet(service, { thresholds: [{ code: "STALLED_IN_STAGE", days: 3_650 }] });
  const { email } = quietStory();
  await recordMeeting(service, [email], { startsAt: later(-40 * DAY_MS).toISOString() });
  await noJobIsDue(database);
  const allow = simulator.control.fail({ match: "/api/v2/organizations", with: { status: 403 } });
  const failedRun = async () => {
    aheadMs += 11 * MINUTE_MS;
    await service.ask("mutation { requestSync { __typename } }");
    expect(await syncEnds(service)).toMatchObject({ state: "FAILED" });
    await noJobIsDue(database);
  };
  mailed();
  await failedRun();
  await forget();
  aheadMs += 20 * DAY_MS;
  await isPassed();
  expect(await flips()).toEqual([]);
  await failedRun();
  expect(await flips()).toEqual(["VERDICT: ACTIVE -> QUIET"]);
  allow();
  await forget();
});

// Seen red: a deal with contact all along had gone quiet and recovered, on days on which each answer was UNKNOWN.
test("what became of verdicts while the copy was too old to judge by is one entry once it is fresh, or none", async () => {
  await setQuiet(service, { thresholds: [{ code: "STALLED_IN_STAGE", days: 3_650 }] });
  mailed();
  await sync();
  await forget();
  aheadMs += 20 * DAY_MS;
  await isPassed();
  expect(await flips()).toEqual([]);
  mailed();
  await sync();
  await sync();
  expect(await flips()).toEqual([]);
  aheadMs += 20 * DAY_MS;
  await isPassed();
  // Planted and seen red: it was told by a run that had read nothing.
  const mend = simulator.control.fail({ match: /\/api\/v2\/(persons|deals|activities)/, with: { status: 500 } });
  aheadMs += 11 * MINUTE_MS;
  await service.ask("mutation { requestSync { __typename } }");
  expect(await syncEnds(service)).toMatchObject({ state: "FAILED" });
  await noJobIsDue(database);
  expect(await flips()).toEqual([]);
  mend();
  const before = clock().getTime();
  await sync();
  expect(await flips()).toEqual(["VERDICT: ACTIVE -> QUIET"]);
  const [{ seenAt } = { seenAt: "" }] = await changesOf(quietStory().dealId);
  expect(Date.parse(seenAt)).toBeGreaterThan(before);
  await sync();
  expect(await entries()).toBe(1);
  await forget();
});

const BRIEFING = `query ($id: ID!) { briefing(meetingId: $id) { previousMeeting { id } deal { id crmId } ${CHANGES} } }`;
interface Briefed {
  briefing: { previousMeeting: { id: string } | null; deal: { id: string } | null; changes: Change[] };
}

test("a briefing tells what changed since the meeting before on the same deal, else in 30 days", async () => {
  const { dealId, email } = story();
  const briefed = async (id: string) => dataOf(await service.ask<Briefed>(BRIEFING, { id })).briefing;
  const note = (title: string, days: number) =>
    database.query(
      `INSERT INTO deal_change (tenant_id, copy_id, deal_id, seen_at, kind, was, became)
       SELECT tenant_id, copy_id, $1, $2, 'TITLE', 'Once', $3 FROM connection`,
      [dealId, later(-days * DAY_MS), title],
    );
  for (const days of [2, 12, 35, 45, 70]) await note(`${days} days ago`, days);
  const record = (externalId: string, days: number) =>
    recordMeeting(service, [email], { externalId, startsAt: later(days * DAY_MS).toISOString() });
  dataOf(await service.ask("mutation { requestSync { __typename } }"));
  const titles = ({ changes }: Briefed["briefing"]) =>
    changes.filter(({ kind }) => kind === "TITLE").map(({ to }) => to);
  await database.query("DELETE FROM meeting WHERE external_id LIKE 'meeting-%'");
  const first = await record("first", -50);
  expect(first.match.status).toBe("MATCHED");
  expect(await briefed(first.id)).toMatchObject({ previousMeeting: null });
  expect(titles(await briefed(first.id))).toEqual(["2 days ago", "12 days ago"]);
  const second = await record("second", -10);
  const cancelled = await record("cancelled", -5);
  const third = await record("third", 1);
  dataOf(
    await service.ask("mutation ($id: ID!) { cancelMeeting(meetingId: $id) { __typename } }", { id: cancelled.id }),
  );
  expect(await briefed(third.id)).toMatchObject({ previousMeeting: { id: second.id } });
  expect(titles(await briefed(third.id))).toEqual(["2 days ago"]);
  // One that is still ahead, too, has not taken place: what changed is news since the last that has.
  await record("sooner", 0.5);
  expect(await briefed(third.id)).toMatchObject({ previousMeeting: { id: second.id } });
  expect(titles(await briefed(third.id))).toEqual(["2 days ago"]);
  expect((await briefed(second.id)).previousMeeting).toEqual({ id: first.id });
  expect(titles(await briefed(second.id))).toEqual(["2 days ago", "12 days ago", "35 days ago", "45 days ago"]);
  const { deal } = await briefed(third.id);
  const query = `query ($id: ID!, $since: DateTime, $first: Int) { deal(id: $id) { changes(first: $first, since: $since) { kind to } } }`;
  const sinceThen = async (then: Date | string, most = 50) =>
    dataOf(
      await service.ask<Briefed & { deal: Briefed["briefing"] }>(query, { id: deal?.id, since: then, first: most }),
    ).deal;
  const since = (days: number, most?: number) => sinceThen(later(-days * DAY_MS), most);
  expect(titles(await since(13))).toEqual(["2 days ago", "12 days ago"]);
  expect(titles(await since(3))).toEqual(["2 days ago"]);
  expect((await since(100, 2)).changes).toHaveLength(2);
  expect((await sinceThen("0001-01-01T00:00:00+14:00", 2)).changes).toHaveLength(2);
  expect((await sinceThen("9999-12-31T23:59:59-14:00")).changes).toEqual([]);
});

// Seen red: sellers read that the deal had lost its participants and its title, and got them back.
test("who is erased here and comes back by a sync has changed nothing in a deal", async () => {
  const { company } = simulator;
  const { email, dealId, personId } = company.stories.freeMail;
  const all = database.opened();
  const keepOut = new KeepOut(new Keyring(world.config.encryptionKeys));
  const parts = { database: all, keepOut, clock, logger: createLogger("silent") };
  expect(await erasePerson(parts, await database.tenantId("acme"), email, false)).toMatchObject({ records: 1 });
  const titles = () => database.query(`SELECT title FROM deal WHERE crm_id = ${dealId}`);
  expect(await titles()).toEqual([{ title: expect.stringContaining("[erased]") }]);
  await sync("RECONCILE");
  expect(await titles()).toEqual([{ title: company.deals.get(dealId)?.title }]);
  expect(await database.query(`SELECT deal_id FROM deal_participant WHERE person_id = ${personId}`)).not.toEqual([]);
  const told = `SELECT was, became FROM deal_change WHERE deal_id = ${dealId} AND (kind = 'PARTICIPANTS' OR was LIKE '%[erased]%')`;
  expect(await database.query(told)).toEqual([]);
});

test("entries go after 400 days, with their deal, and with the copy when the connection ends", async () => {
  await syncEnds(service);
  const { dealId } = story();
  const old = new Date(Date.now() - 401 * DAY_MS);
  await database.query("UPDATE deal_change SET seen_at = $1 WHERE became = '70 days ago'", [old]);
  const left = async () =>
    (
      await database.query<{ became: string }>("SELECT became FROM deal_change WHERE kind = 'TITLE' ORDER BY seen_at")
    ).map(({ became }) => became);
  await sweepChanges(database.opened(), createLogger("silent"), clock());
  expect(await left()).toEqual(["45 days ago", "35 days ago", "12 days ago", "2 days ago"]);
  await database.query("UPDATE deal_change SET deal_id = $1 WHERE became = '45 days ago'", [dealId + 1]);
  simulator.control.remove("deal", dealId);
  await sync();
  expect(await left()).toEqual(["45 days ago"]);
  dataOf(await service.ask("mutation { disconnect { __typename } }"));
  await until("the copy is purged", async () => (await entries()) === 0);
});
