import { connect, dataOf, recordMeeting, syncEnds, until } from "../support/stories";
import { useService } from "../support/world";

const { simulator, service } = useService({ deals: 60 });

interface MatchRead {
  status: string;
  deal: { crmId: string } | null;
}
const matchOf = async (id: string, as: object): Promise<MatchRead> => {
  const query = "query ($id: ID!) { meeting(id: $id) { match { status deal { crmId } } } }";
  return dataOf(await service.ask<{ meeting: { match: MatchRead } }>(query, { id }, as)).meeting.match;
};

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
  expect(await read()).toMatchObject({ ...left, status: "NONE", candidates: [] });
});
