import type { Fault } from "../../simulator";
import { fieldOf, patches, setMapping, writeFields } from "../support/fields";
import { askNote, posts, writeNote } from "../support/notes";
import { connect, dataOf, recordMeeting, syncAgain, syncEnds, until } from "../support/stories";
import { useService } from "../support/world";

// While lists are read for the first time nothing is known to be the only one: what is written then could never be taken back.

const { simulator, database, service } = useService({ deals: 10 });

beforeEach(() => {
  simulator.control.clearFaults();
  simulator.log.clear();
});

const yesterday = () => `${new Date(Date.now() - 86_400_000).toISOString().slice(0, 19)}Z`;
const buyer = (name: string) => {
  const email = `${name}@${name}-trading.example`;
  const person_id = simulator.control.add("person", { name, emails: [{ value: email, primary: true, label: "work" }] });
  return { email, person_id, deal_id: simulator.control.add("deal", { title: name, status: "open", person_id }) };
};
const fail = (list: string, fault: Fault = { status: 500 }) =>
  simulator.control.fail({ match: new RegExp(`/api/v[12]/${list}$`), with: fault });

interface Read {
  match: { status: string; reason: string; mayChange: boolean; deal: { id: string; crmId: string } | null };
  attendees: { match: { status: string; person: { id: string } } }[];
}
const meetingOf = async (id: string, as: object) => {
  const query = `query ($id: ID!) { meeting(id: $id) { match { status reason mayChange deal { id crmId } }
    attendees { match { status person { id } } } } }`;
  return dataOf(await service.ask<{ meeting: Read }>(query, { id }, as)).meeting;
};
const isMatched = (id: string, as: object) =>
  until("the meeting is matched", async () => (await meetingOf(id, as)).match.status === "MATCHED");

const READING = {
  code: "NEEDS_CHOICE",
  message:
    "The CRM is still being read for the first time, and what else could be meant is not known yet. Say in targetId where to write, or send it again once the CRM is read.",
};

// Seen red: the note went to the person for ever, and the next run matched the deal.
test("while the deals could not be read, what names no target goes nowhere, and to the deal once they are", async () => {
  const as = { tenant: "early" };
  const ada = buyer("ada");
  const mend = fail("deals");
  await connect(service, simulator, as);
  expect((await syncEnds(service, as)).state).toBe("FAILED");
  await setMapping(service, "PERSON", fieldOf(simulator, "PERSON", "varchar").field_code, as);
  const { id } = await recordMeeting(service, [ada.email], {}, as);
  const { match, attendees } = await meetingOf(id, as);
  expect([match.status, attendees.map((one) => one.match.status)]).toEqual(["PENDING", ["MATCHED"]]);

  expect(await askNote(service, { meetingId: id }, as)).toEqual({ ...READING, field: "targetId" });
  const value = { entity: "PERSON" as const, value: "early" };
  expect(await writeFields(service, id, [value], { as })).toEqual({ ...READING, field: "values.0.targetId" });
  expect([posts(simulator), patches(simulator)]).toEqual([[], []]);
  const targetId = attendees[0]?.match.person.id;
  expect((await writeNote(service, { meetingId: id, targetId }, as)).state).toBe("WRITTEN");

  mend();
  await syncAgain(service, database, as);
  await isMatched(id, as);
  await writeNote(service, { meetingId: id }, as);
  expect((await writeFields(service, id, [value], { as })).allWritten).toBe(true);
  expect(posts(simulator).map(({ body }) => body)).toMatchObject([
    { person_id: ada.person_id },
    { deal_id: ada.deal_id },
  ]);
});

// Seen red: it was the first one's for ever, and the next run brought the other.
test("while a company of somebody who attends could not be read, a value that names none goes to no other's", async () => {
  const as = { tenant: "companies" };
  const [known, unread] = ["dora", "emil"].map((name) => {
    const org_id = simulator.control.add("organization", { name: `${name} trading` });
    const { email, person_id } = buyer(name);
    simulator.control.change("person", person_id, { org_id });
    return { email, org_id };
  });
  const data = [{ id: known?.org_id, name: "Known" }];
  const page = { success: true, data, additional_data: { next_cursor: "more" } };
  for (const [isFirst, fault] of [
    [true, { status: 200, body: page }],
    [false, { status: 500 }],
  ] as const) {
    const where = ({ cursor }: Readonly<Record<string, string>>) => (cursor === undefined) === isFirst;
    simulator.control.fail({ match: "/api/v2/organizations", where, with: fault });
  }
  await connect(service, simulator, as);
  expect((await syncEnds(service, as)).state).toBe("FAILED");
  await setMapping(service, "ORGANIZATION", fieldOf(simulator, "ORGANIZATION", "varchar").field_code, as);
  const { id } = await recordMeeting(service, [known?.email ?? "", unread?.email ?? ""], {}, as);
  const value = { entity: "ORGANIZATION" as const, value: "early" };
  expect(await writeFields(service, id, [value], { as })).toEqual({ ...READING, field: "values.0.targetId" });

  simulator.control.clearFaults();
  await syncAgain(service, database, as);
  expect(await writeFields(service, id, [value], { as })).toMatchObject({
    code: "NEEDS_CHOICE",
    message: expect.stringContaining("more than one organization"),
  });
  expect(patches(simulator)).toEqual([]);
});

// Seen red: the second note went to the person, although the receipt of the first says which deal.
test("while the deal of an earlier note is still to be read anew, the next note goes nowhere else", async () => {
  const as = { tenant: "again" };
  const { email, person_id, deal_id } = buyer("bea");
  await connect(service, simulator, as);
  await syncEnds(service, as);
  const { id } = await recordMeeting(service, [email], {}, as);
  await isMatched(id, as);
  await writeNote(service, { meetingId: id }, as);
  dataOf(await service.ask("mutation { disconnect { __typename } }", {}, as));
  // Planted and seen red: what the note was written for was forgotten, and by the rules it could be either.
  simulator.control.add("deal", { title: "another", status: "open", person_id, add_time: yesterday() });
  const mend = fail("deals");
  await connect(service, simulator, as);
  expect((await syncEnds(service, as)).state).toBe("FAILED");
  const pending = await until("the meeting is matched", async () => {
    const { match, attendees } = await meetingOf(id, as);
    return attendees[0]?.match.status === "MATCHED" && match;
  });
  expect(pending).toMatchObject({
    status: "PENDING",
    reason: expect.stringContaining("for which something was written"),
  });
  expect(await askNote(service, { meetingId: id }, as)).toEqual({ ...READING, field: "targetId" });

  mend();
  await syncAgain(service, database, as);
  await isMatched(id, as);
  await writeNote(service, { meetingId: id }, as);
  expect(posts(simulator).map(({ body }) => body)).toMatchObject([{ deal_id }, { deal_id }]);
});

// Seen red: the note went to the first deal, and the meeting stayed about it for ever as "the only deal".
test("a deal besides which others may come takes what names it, or was chosen, and nothing else", async () => {
  const as = { tenant: "half" };
  const { email, person_id, deal_id } = buyer("cleo");
  // They come, and do not end.
  const mend = fail("deals", { kind: "again" });
  await connect(service, simulator, as);
  expect((await syncEnds(service, as)).state).toBe("FAILED");
  await setMapping(service, "DEAL", fieldOf(simulator, "DEAL", "varchar").field_code, as);
  const record = async () => (await recordMeeting(service, [email], {}, as)).id;
  const [named, chosen, left] = [await record(), await record(), await record()];
  const { match } = await meetingOf(left, as);
  const ONLY = "It is the only deal of the attendees that was open when the meeting began";
  expect(match).toMatchObject({ status: "MATCHED", mayChange: true, deal: { crmId: String(deal_id) } });
  expect(match.reason).toBe(`${ONLY}. The CRM's deals have not been read to their end yet, so this may change.`);

  expect(await askNote(service, { meetingId: left }, as)).toEqual({ ...READING, field: "targetId" });
  const value = { entity: "DEAL" as const, value: "early" };
  expect(await writeFields(service, left, [value], { as })).toEqual({ ...READING, field: "values.0.targetId" });
  expect([posts(simulator), patches(simulator)]).toEqual([[], []]);
  const targetId = match.deal?.id ?? "";
  await writeNote(service, { meetingId: named, targetId }, as);
  const choose = "mutation ($id: ID!, $deal: ID!) { chooseDeal(meetingId: $id, dealId: $deal) { __typename } }";
  dataOf(await service.ask(choose, { id: chosen, deal: targetId }, as));
  expect((await meetingOf(chosen, as)).match.mayChange).toBe(false);
  await writeNote(service, { meetingId: chosen }, as);
  expect(posts(simulator).map(({ body }) => body)).toMatchObject([{ deal_id }, { deal_id }]);

  simulator.control.add("deal", { title: "another", status: "open", person_id, add_time: yesterday() });
  mend();
  await syncAgain(service, database, as);
  await until("it is known", async () => (await meetingOf(left, as)).match.status === "NEEDS_CHOICE");
  expect((await meetingOf(left, as)).match.mayChange).toBe(false);
  expect((await meetingOf(named, as)).match.reason).toBe(
    `${ONLY}, as far as the CRM had been read then. The match stays as it was when something was written to the CRM for this meeting.`,
  );
  await writeNote(service, { meetingId: named }, as);
  expect((await askNote(service, { meetingId: left }, as)).message).toContain("Choose it with chooseDeal");
});

// Seen red: for ever refused, and told to wait until the CRM is read.
test.each(["users", "organizations"])(
  "where the CRM refuses its %s, which tell no deal and no person, a note that names nothing goes to the meeting's",
  async (list) => {
    const as = { tenant: `without-${list}` };
    const { email, deal_id } = buyer(`dora-${list}`);
    const lead = `ed@ed-${list}.example`;
    const person_id = simulator.control.add("person", {
      name: "Ed",
      emails: [{ value: lead, primary: true, label: "work" }],
    });
    fail(list, { kind: "forbidden" });
    await connect(service, simulator, as);
    expect((await syncEnds(service, as)).state).toBe("FAILED");
    for (const attendee of [email, lead])
      await writeNote(service, { meetingId: (await recordMeeting(service, [attendee], {}, as)).id }, as);
    expect(posts(simulator).map(({ body }) => body)).toMatchObject([{ deal_id }, { person_id }]);
  },
);
