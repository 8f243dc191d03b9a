import { connect, dataOf, noJobIsDue, readMatch, recordMeeting, syncAgain, syncEnds, until } from "../support/stories";
import { useService } from "../support/world";

let aheadMs = 0;
const clock = () => new Date(Date.now() + aheadMs);
const { simulator, database, service } = useService({ deals: 60, clock });

const matchOf = (id: string, as: object) => readMatch(service, id, as);

test("the first sync of a new copy matches meetings of any age, and so does that of the next one", async () => {
  const as = { tenant: "veteran" };
  const { email, dealId: crmId } = simulator.company.stories.singleDeal;
  const startsAt = new Date(Date.now() - 45 * 86_400_000).toISOString();
  const { id } = await recordMeeting(service, [email], { startsAt }, as);
  const isMatched = () =>
    until("the meeting is matched", async () => (await matchOf(id, as)).deal?.crmId === String(crmId));
  await connect(service, simulator, as);
  await syncEnds(service, as);
  await isMatched();
  dataOf(await service.ask("mutation { disconnect { __typename } }", {}, as));
  await connect(service, simulator, as);
  await syncEnds(service, as);
  await isMatched();
});

test("while no CRM is connected, a meeting and its attendees say that, and not that the CRM lacks them", async () => {
  const as = { tenant: "apart" };
  const { email } = simulator.company.stories.singleDeal;
  const reasons = `query ($id: ID!) { meeting(id: $id) { match { reason } attendees { match { reason organizationReason } } } }`;
  const reasonsOf = async (id: string) => JSON.stringify(dataOf(await service.ask(reasons, { id }, as)));
  const before = await recordMeeting(service, [email], {}, as);
  const unconnected = await reasonsOf(before.id);
  expect(unconnected).toContain("No CRM is connected.");
  expect(unconnected).not.toMatch(/in the CRM/);
  await connect(service, simulator, as);
  await syncEnds(service, as);
  await until("it is matched", async () => (await matchOf(before.id, as)).status === "MATCHED");
  dataOf(await service.ask("mutation { disconnect { __typename } }", {}, as));
  const disconnected = await reasonsOf(before.id);
  expect(disconnected).toContain("No CRM is connected.");
  expect(disconnected).not.toMatch(/next sync|in the CRM/);
  // Seen red: nothing was said of why an attendee's organization is not known.
  expect(disconnected).toBe(unconnected);
});

// Planted and seen red: the statuses of an owner's meetings as they are stored; any status of theirs.
test("lists by status have what is shown, of everybody or of one owner, with a CRM and without", async () => {
  const as = { tenant: "listed" };
  await connect(service, simulator, as);
  await syncEnds(service, as);
  const { email } = simulator.company.stories.singleDeal;
  const [anna, ben] = ["anna@seller.example", "ben@seller.example"];
  for (const ownerEmail of [anna, ben]) {
    await recordMeeting(service, [email], { ownerEmail, title: `matched, ${ownerEmail}` }, as);
    await recordMeeting(service, ["nobody@nowhere.example"], { ownerEmail, title: `none, ${ownerEmail}` }, as);
  }
  const query = "query ($filter: MeetingFilter) { meetings(filter: $filter) { totalCount nodes { title } } }";
  const listed = async (filter: object) => {
    const asked = service.ask<{ meetings: { totalCount: number; nodes: { title: string }[] } }>(query, { filter }, as);
    const { totalCount, nodes } = dataOf(await asked).meetings;
    expect(totalCount).toBe(nodes.length);
    return nodes.map(({ title }) => title).sort();
  };
  const ofStatus = async (...status: string[]) => [
    await listed({ status }),
    await listed({ status, ownerEmail: anna.toUpperCase() }),
    await listed({ status, ownerEmail: "carla@seller.example" }),
  ];
  const [matched, none] = ["matched", "none"].map((what) => [`${what}, ${anna}`, `${what}, ${ben}`]);
  const all = [...(matched ?? []), ...(none ?? [])];
  const ofAnna = (titles: string[] = []) => titles.filter((title) => title.endsWith(anna));
  expect(await ofStatus("MATCHED")).toEqual([matched, ofAnna(matched), []]);
  expect(await ofStatus("NONE")).toEqual([none, ofAnna(none), []]);
  expect(await ofStatus("NONE", "MATCHED")).toEqual([all, ofAnna(all), []]);
  expect(await ofStatus("PENDING")).toEqual([[], [], []]);
  dataOf(await service.ask("mutation { disconnect { __typename } }", {}, as));
  expect(await ofStatus("MATCHED", "NONE")).toEqual([[], [], []]);
  expect(await ofStatus("PENDING")).toEqual([all, ofAnna(all), []]);
});

// Planted and seen red: that it may change stayed from before anything was read, and the time that it was first recorded for.
test("what a meeting is matched as says what holds now: with a CRM that has been read, and where it was moved", async () => {
  const as = { tenant: "moved" };
  const { email } = simulator.company.stories.singleDeal;
  const record = (externalId: string, hoursAgo: number) => {
    const startsAt = new Date(Date.now() - hoursAgo * 3_600_000).toISOString();
    return recordMeeting(service, [email], { externalId, title: externalId, startsAt }, as);
  };
  const read = async () => {
    const query =
      "query ($id: ID!) { meeting(id: $id) { match { mayChange } } briefing(meetingId: $id) { previousMeeting { title } } }";
    return dataOf(await service.ask(query, { id }, as));
  };
  const settled = { match: { mayChange: false } };
  const { id } = await record("a", 9);
  await record("b", 8);
  await connect(service, simulator, as);
  await syncEnds(service, as);
  await noJobIsDue(database);
  expect(await read()).toEqual({ meeting: settled, briefing: { previousMeeting: null } });
  await record("a", 7);
  expect(await read()).toEqual({ meeting: settled, briefing: { previousMeeting: { title: "b" } } });
});

test("a meeting of long ago whose deal is deleted is matched to none, and says why", async () => {
  const as = { tenant: "forlorn" };
  const email = "forlorn@forlorn-trading.example";
  const ago = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString();
  const person_id = simulator.control.add("person", {
    name: "Forlorn",
    emails: [{ value: email, primary: true, label: "work" }],
  });
  const deals = ["First", "Second"].map((title) =>
    simulator.control.add("deal", { title, status: "open", person_id, add_time: `${ago(60).slice(0, 19)}Z` }),
  );
  const [about = 0, other = 0] = deals;
  await connect(service, simulator, as);
  await syncEnds(service, as);
  const { id } = await recordMeeting(service, [email], { startsAt: ago(45) }, as);
  const query = `query ($id: ID!) { meeting(id: $id) { match { status rule reason deal { crmId } candidates { deal { id crmId } } } } }`;
  interface Candidates {
    status: string;
    candidates: { deal: { id: string; crmId: string } }[];
  }
  const read = async () =>
    dataOf(await service.ask<{ meeting: { match: Candidates } }>(query, { id }, as)).meeting.match;
  const chosen = (await read()).candidates.find(({ deal }) => deal.crmId === String(about))?.deal.id;
  const choose = `mutation ($m: ID!, $d: ID!) { chooseDeal(meetingId: $m, dealId: $d) { __typename } }`;
  dataOf(await service.ask(choose, { m: id, d: chosen }, as));
  expect(await read()).toMatchObject({ status: "MATCHED", rule: "CHOSEN", deal: { crmId: String(about) } });

  const sync = async () => {
    dataOf(await service.ask("mutation { requestSync { ... on Refusal { message } } }", {}, as));
    await syncEnds(service, as);
  };
  simulator.control.remove("deal", about);
  await sync();
  const left = { rule: null, deal: null, reason: expect.stringContaining("no longer visible") };
  expect(await read()).toMatchObject({
    ...left,
    status: "NEEDS_CHOICE",
    candidates: [{ deal: { crmId: String(other) } }],
  });
  simulator.control.remove("deal", other);
  await sync();
  const found = await until("it is matched again", async () => {
    const match = await read();
    return match.status === "NONE" && match;
  });
  expect(found).toMatchObject({ ...left, candidates: [] });
});

// Seen red: nobody had come or left, so no meeting was matched again, and it waited for the next change of whatever record.
test("a meeting in doubt is matched again as soon as it is known who takes part in its deal", async () => {
  const as = { tenant: "in doubt" };
  const { email, dealId } = simulator.company.stories.singleDeal;
  await connect(service, simulator, as);
  await syncEnds(service, as);
  const externalId = "in doubt";
  const { id } = await recordMeeting(service, [email], { externalId }, as);
  const query = "query ($id: ID!) { meeting(id: $id) { match { deal { id } } } }";
  const found = dataOf(await service.ask<{ meeting: { match: { deal: { id: string } } } }>(query, { id }, as));
  const choose = "mutation ($id: ID!, $deal: ID!) { chooseDeal(meetingId: $id, dealId: $deal) { __typename } }";
  dataOf(await service.ask(choose, { id, deal: found.meeting.match.deal.id }, as));
  await database.query("UPDATE deal SET participants_due = true WHERE crm_id = $1", [dealId]);
  await recordMeeting(service, ["zoe@elsewhere.example"], { externalId }, as);
  expect(await matchOf(id, as)).toEqual({ status: "NEEDS_CHOICE", deal: null });
  aheadMs += 10 * 60_000;
  await syncAgain(service, database, as);
  expect(await matchOf(id, as)).toEqual({ status: "NONE", deal: null });
});

// Seen red: only the answer looked whether the deal was there. Lists told the match as it was, a choice had nothing to choose
// from, and an attendee was matched to nobody.
test("meetings of long ago are matched again where a deal or a person of theirs is gone", async () => {
  const as = { tenant: "bereft" };
  const ago = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString();
  const buyer = (name: string, count: number) => {
    const emails = [{ value: `${name}@${name}-trading.example`, primary: true, label: "work" }];
    const person_id = simulator.control.add("person", { name, emails });
    const add_time = `${ago(60).slice(0, 19)}Z`;
    const deals = Array.from({ length: count }, () =>
      simulator.control.add("deal", { title: name, status: "open", person_id, add_time }),
    );
    return { person_id, deals, emails: emails.map(({ value }) => value) };
  };
  const [left, torn, alone, kept] = [buyer("left", 1), buyer("torn", 2), buyer("alone", 1), buyer("kept", 1)];
  await connect(service, simulator, as);
  await syncEnds(service, as);
  for (const { emails } of [left, torn, alone, kept])
    await recordMeeting(service, emails, { startsAt: ago(45), title: emails[0] }, as);
  const query = `query ($status: [MeetingMatchStatus!]) { meetings(first: 20, filter: { status: $status }) { nodes {
    title match { status } attendees { match { status person { crmId } } } } } }`;
  interface Listed {
    title: string;
    match: { status: string };
    attendees: { match: { status: string; person: object | null } }[];
  }
  const listed = async (status: string | null) =>
    dataOf(await service.ask<{ meetings: { nodes: Listed[] } }>(query, { status }, as)).meetings.nodes;
  const titles = async (status: string) => (await listed(status)).map(({ title }) => title.split("@")[0]).sort();
  expect([await titles("MATCHED"), await titles("NEEDS_CHOICE")]).toEqual([["alone", "kept", "left"], ["torn"]]);
  const version = () =>
    database.query(`SELECT r.xmin::text, m.xmin::text AS match FROM matched_record r JOIN meeting_match m USING (tenant_id, meeting_id)
      JOIN meeting t USING (tenant_id) WHERE t.id = meeting_id AND t.title LIKE 'kept%' ORDER BY r.entity, r.crm_id`);
  const before = await version();

  for (const id of [...left.deals, ...torn.deals]) simulator.control.remove("deal", id);
  simulator.control.remove("person", alone.person_id);
  // A person that the CRM only shows no more is gone after two walks.
  for (const _ of [1, 2]) {
    aheadMs += 12 * 60_000;
    dataOf(await service.ask("mutation { requestSync(kind: RECONCILE) { ... on Refusal { message } } }", {}, as));
    await syncEnds(service, as);
  }
  await until("they are matched again", async () => (await titles("NONE")).length === 3);
  expect([await titles("MATCHED"), await titles("NEEDS_CHOICE")]).toEqual([["kept"], []]);
  for (const { match, attendees } of await listed(null)) {
    expect(["MATCHED", "NONE"]).toContain(match.status);
    for (const one of attendees) expect(one.match.status === "MATCHED").toBe(one.match.person !== null);
  }
  expect(await version()).toEqual(before);
});
