import * as times from "../../simulator/model/times";
import { DAY_MS } from "../../src/platform/clock";
import { notesWith, posts, writeNote } from "../support/notes";
import {
  connect,
  dataOf,
  noJobIsDue,
  type RecordedMeeting,
  recordMeeting,
  syncAgain,
  syncEnds,
  until,
} from "../support/stories";
import { useService } from "../support/world";

// Seen red: a revived meeting that forgot what it was about; one that was recorded while nothing was connected; what one match
// wrote holding the deal of another; a meeting that was moved out of the time around its deal.

const { simulator, database, service } = useService({ deals: 20, connected: ["acme"] });

interface Match {
  status: string;
  rule: string | null;
  reason: string;
  deal: { crmId: string } | null;
}
const MATCH = "match { status rule reason deal { crmId } }";
async function matchOf(id: string): Promise<Match> {
  const query = `query ($id: ID!) { meeting(id: $id) { ${MATCH} } }`;
  return dataOf(await service.ask<{ meeting: { match: Match } }>(query, { id })).meeting.match;
}
const change = async (name: string, id: string) =>
  dataOf(await service.ask(`mutation ($id: ID!) { ${name}(meetingId: $id) { __typename } }`, { id }));

let buyers = 0;
interface Buyer {
  email: string;
  personId: number;
  dealId: number;
  /** Another open deal of the same person. */
  more(): number;
}
/** A person of the CRM with one open deal, of whom no other meeting knows. */
function newBuyer(): Buyer {
  const email = `buyer@written-${++buyers}.example`;
  const { control } = simulator;
  const personId = control.add("person", {
    name: email,
    emails: [{ value: email, primary: true, label: "work" }],
    org_id: null,
  });
  const more = () => {
    const add_time = times.v2Time(Date.now() / 1_000 - 86_400);
    const dealId = control.add("deal", { title: email, status: "open", person_id: personId, org_id: null, add_time });
    control.setParticipants(dealId, [personId]);
    return dealId;
  };
  return { email, personId, dealId: more(), more };
}

const STAYS = "The match stays as it was when something was written to the CRM for this meeting.";
const holds = ({ dealId }: Buyer) => ({
  status: "MATCHED",
  rule: "ONLY_CANDIDATE",
  deal: { crmId: String(dealId) },
  reason: expect.stringContaining(STAYS),
});
/** As the first time, but for what is said of it. */
const again = (buyer: Buyer, externalId: string, more = {}): Promise<RecordedMeeting> =>
  recordMeeting(service, [buyer.email], { externalId, ...more });

/** A meeting for which a note was written on the buyer's only deal; then a second deal came. */
async function written(externalId: string): Promise<Buyer & { id: string }> {
  const buyer = newBuyer();
  await syncAgain(service, database);
  const { id } = await again(buyer, externalId);
  await writeNote(service, { meetingId: id });
  buyer.more();
  await syncAgain(service, database);
  expect(await matchOf(id)).toEqual(holds(buyer));
  return { ...buyer, id };
}

test("a meeting that is revived is about the deal that was written to before it was cancelled", async () => {
  const meeting = await written("revived");
  await change("cancelMeeting", meeting.id);
  await syncAgain(service, database);
  expect(await matchOf(meeting.id)).toMatchObject({ status: "NONE", rule: null, reason: "The meeting was cancelled." });
  await again(meeting, "revived");
  expect(await matchOf(meeting.id)).toEqual(holds(meeting));
});

test("it is recorded for another day, long after the deal was won: it stays; for other people the rules decide", async () => {
  const meeting = await written("moved");
  simulator.control.change("deal", meeting.dealId, { status: "won" });
  await syncAgain(service, database);
  const startsAt = new Date(Date.now() + 60 * DAY_MS).toISOString();
  await again(meeting, "moved", { startsAt });
  expect(await matchOf(meeting.id)).toEqual(holds(meeting));
  await recordMeeting(service, ["nobody@nowhere.example"], { externalId: "moved", startsAt });
  expect(await matchOf(meeting.id)).toMatchObject({
    status: "NONE",
    deal: null,
    reason: expect.stringMatching(/^The deal for which something was written before is none of the attendees'/),
  });
  // Planted and seen red: what was written held it again, as if nobody else had met meanwhile.
  expect((await again(meeting, "moved")).match.reason).not.toContain(STAYS);
});

test("it is recorded again while no CRM is connected: it is about that deal when one is", async () => {
  const meeting = await written("unconnected");
  dataOf(await service.ask("mutation { disconnect { __typename } }"));
  expect((await again(meeting, "unconnected")).match.status).toBe("PENDING");
  await connect(service, simulator);
  await syncEnds(service);
  await noJobIsDue(database);
  expect(await matchOf(meeting.id)).toEqual(holds(meeting));
});

test("what one match wrote does not hold the deal of another", async () => {
  const meeting = await written("handed-over");
  const successor = newBuyer();
  await syncAgain(service, database);
  await recordMeeting(service, [successor.email], { externalId: "handed-over" });
  expect(await matchOf(meeting.id)).toMatchObject({
    rule: "ONLY_CANDIDATE",
    deal: { crmId: String(successor.dealId) },
  });
  successor.more();
  await syncAgain(service, database);
  expect(await matchOf(meeting.id)).toMatchObject({ status: "NEEDS_CHOICE", deal: null });
});

test("others are recorded while no CRM is connected: whether they lead to its deal is judged when one is", async () => {
  const meeting = await written("others");
  dataOf(await service.ask("mutation { disconnect { __typename } }"));
  const others = ["nobody@nowhere.example"];
  for (let times = 0; times < 2; times += 1) await recordMeeting(service, others, { externalId: "others" });
  await connect(service, simulator);
  await syncEnds(service);
  await noJobIsDue(database);
  expect(await matchOf(meeting.id)).toMatchObject({
    deal: null,
    reason: expect.stringMatching(/^The deal for which something was written before is none of the attendees'/),
  });
});

const SHOWN = "query ($id: ID!) { meeting(id: $id) { match { candidates { deal { id crmId } } } } }";
interface Shown {
  meeting: { match: { candidates: { deal: { id: string; crmId: string } }[] } };
}
async function choose(id: string, crmId: number): Promise<void> {
  const { candidates } = dataOf(await service.ask<Shown>(SHOWN, { id })).meeting.match;
  const deal = candidates.find((candidate) => candidate.deal.crmId === String(crmId))?.deal.id;
  const mutation = "mutation ($id: ID!, $deal: ID!) { chooseDeal(meetingId: $id, dealId: $deal) { __typename } }";
  dataOf(await service.ask(mutation, { id, deal }));
  expect(await matchOf(id)).toMatchObject({ rule: "CHOSEN", deal: { crmId: String(crmId) } });
}

test("a choice is for those who led to it: recorded with one of them it stays, also where the CRM has taken them off or is to be asked", async () => {
  const [buyer, chosen] = [newBuyer(), newBuyer()];
  const { control } = simulator;
  control.setParticipants(chosen.dealId, [chosen.personId, buyer.personId]);
  await syncAgain(service, database);
  const { id } = await again(buyer, "taken-off");
  await choose(id, chosen.dealId);
  control.setParticipants(chosen.dealId, [chosen.personId]);
  await syncAgain(service, database, undefined, "FULL");
  const isStill = { status: "MATCHED", rule: "CHOSEN", deal: { crmId: String(chosen.dealId) } };
  const startsAt = new Date(Date.now() + DAY_MS).toISOString();
  for (const others of [[], ["colleague@seller.example"], [newBuyer().email]]) {
    await recordMeeting(service, [...others, buyer.email], { externalId: "taken-off", startsAt });
    expect(await matchOf(id)).toMatchObject(isStill);
  }
  const unasked = (due: boolean) =>
    database.query("UPDATE deal SET participants_due = $2 WHERE crm_id = $1", [chosen.dealId, due]);
  await unasked(true);
  const others = newBuyer().email;
  await recordMeeting(service, [others], { externalId: "taken-off" });
  // Seen red where it stayed until that was known: a note of the others' meeting went to it.
  expect(await matchOf(id)).toMatchObject({ status: "NEEDS_CHOICE", rule: null, deal: null });
  await recordMeeting(service, [buyer.email], { externalId: "taken-off", startsAt });
  expect(await matchOf(id)).toMatchObject(isStill);
  await recordMeeting(service, [others], { externalId: "taken-off" });
  await unasked(false);
  await recordMeeting(service, [others], { externalId: "taken-off" });
  expect((await matchOf(id)).reason).toMatch(/The deal that a user chose before is none of the attendees'/);
});

/** A meeting whose deal, the second of its buyer, was chosen, and is gone from the CRM. */
async function chosenAndGone(externalId: string) {
  const buyer = newBuyer();
  const chosen = buyer.more();
  await syncAgain(service, database);
  const { id } = await again(buyer, externalId);
  await choose(id, chosen);
  simulator.control.remove("deal", chosen);
  await syncAgain(service, database);
  return { buyer, chosen, id };
}

test("the chosen deal is gone from the CRM: nothing takes its place until the choice is taken back", async () => {
  const { buyer, id } = await chosenAndGone("chosen-and-gone");
  expect(await matchOf(id)).toMatchObject({ status: "NEEDS_CHOICE", rule: null, deal: null });
  await change("unchooseDeal", id);
  expect(await matchOf(id)).toMatchObject({ rule: "ONLY_CANDIDATE", deal: { crmId: String(buyer.dealId) } });
});

// Planted and seen red: nobody knew any more for whom it was chosen, and the others' meeting was about it.
test("the chosen deal is out of sight while others are recorded: back again it is not theirs", async () => {
  const { chosen, id } = await chosenAndGone("out-of-sight");
  await recordMeeting(service, ["nobody@nowhere.example"], { externalId: "out-of-sight" });
  simulator.control.change("deal", chosen, { status: "open", is_deleted: false });
  await syncAgain(service, database);
  expect(await matchOf(id)).toMatchObject({
    deal: null,
    reason: expect.stringMatching(/^The deal that a user chose before is none of the attendees'/),
  });
});

// Planted and seen red: the deal was still held by the note, where the rules came to the same one.
test("a choice that is taken back leaves the meeting to the rules from then on, also where something was written", async () => {
  const buyer = newBuyer();
  await syncAgain(service, database);
  const { id } = await again(buyer, "taken-back");
  await choose(id, buyer.dealId);
  await writeNote(service, { meetingId: id });
  await change("unchooseDeal", id);
  expect(await matchOf(id)).toMatchObject({ rule: "ONLY_CANDIDATE", deal: { crmId: String(buyer.dealId) } });
  buyer.more();
  await syncAgain(service, database);
  expect(await matchOf(id)).toMatchObject({ status: "NEEDS_CHOICE", deal: null });
});

test("a hundred inputs of one externalId are one meeting, as the last of them says", async () => {
  const { email } = simulator.company.stories.singleDeal;
  const inputs = Array.from({ length: 100 }, (_, index) => ({
    externalId: "a-hundred-times",
    title: `No. ${index}`,
    startsAt: new Date().toISOString(),
    ownerEmail: "anna@seller.example",
    attendees: [{ email: index === 99 ? email : "nobody@nowhere.example" }],
  }));
  const record = `mutation ($inputs: [RecordMeetingInput!]!) { recordMeetings(inputs: $inputs) {
    ... on MeetingSuccess { meeting { id title ${MATCH} } } } }`;
  type Recorded = { recordMeetings: { meeting: { id: string; title: string; match: Match } }[] };
  const { recordMeetings } = dataOf(await service.ask<Recorded>(record, { inputs }));
  expect(recordMeetings).toHaveLength(100);
  expect(new Set(recordMeetings.map(({ meeting }) => JSON.stringify(meeting))).size).toBe(1);
  expect(recordMeetings[0]?.meeting).toMatchObject({ title: "No. 99", match: { status: "MATCHED" } });
  const kept = await database.query("SELECT title FROM meeting WHERE external_id = 'a-hundred-times'");
  expect(kept).toEqual([{ title: "No. 99" }]);
});

test("a meeting that is deleted while its note is being sent: the note is in the CRM once, and its receipt says where", async () => {
  const buyer = newBuyer();
  await syncAgain(service, database);
  const { id } = await again(buyer, "deleted-while-written");
  simulator.log.clear();
  const release = simulator.control.fail({
    match: "/api/v1/notes",
    method: "POST",
    with: { kind: "delay", ms: 2_000 },
  });
  const writing = writeNote(service, { meetingId: id, idempotencyKey: "while-deleted" });
  await until("the note is sent", async () => posts(simulator).length > 0);
  await change("deleteMeeting", id);
  const write = await writing;
  expect(write).toMatchObject({ state: "WRITTEN", meeting: null });
  expect(notesWith(simulator, write.reference)).toHaveLength(1);
  expect(posts(simulator)).toHaveLength(1);
  release();
});
