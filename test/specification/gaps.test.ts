import { randomBytes } from "node:crypto";
import { type Simulator, startSimulator } from "../../simulator";
import { createTestDatabase, type TestDatabase } from "../support/database";
import { type Service, startService } from "../support/service";
import { connect, dataOf, recordMeeting, syncEnds } from "../support/stories";

/** How far the clocks of both sides are ahead. */
let aheadMs = 0;
const clock = () => new Date(Date.now() + aheadMs);
const passDays = (days: number) => {
  aheadMs += days * 86_400_000;
};
let simulator: Simulator;
let database: TestDatabase;
let service: Service;

beforeAll(async () => {
  [simulator, database] = await Promise.all([startSimulator({ deals: 40, now: clock }), createTestDatabase()]);
  service = await startService(simulator, database, { clock });
});
afterAll(async () => {
  await service.stop();
  await Promise.all([simulator.stop(), database.drop()]);
});
beforeEach(() => simulator.control.clearFaults());

interface Gap {
  resource: string;
  code: string;
  count: number;
  since: string;
  message: string;
}
const GAPS = "gaps { resource code count since message }";

async function gapsOfCopy(as: object): Promise<Gap[]> {
  type Answer = { connection: { sync: { gaps: Gap[] } } };
  return dataOf(await service.ask<Answer>(`{ connection { sync { ${GAPS} } } }`, {}, as)).connection.sync.gaps;
}

interface Briefed {
  gaps: Gap[];
  deal: { quiet: { reasons: { code: string; since: string | null }[] } } | null;
}

async function briefingOf(email: string, as: object): Promise<Briefed> {
  const meeting = await recordMeeting(service, [email], { startsAt: clock().toISOString() }, as);
  const query = `query ($id: ID!) { briefing(meetingId: $id) { ${GAPS} deal { quiet { reasons { code since } } } } }`;
  return dataOf(await service.ask<{ briefing: Briefed }>(query, { id: meeting.id }, as)).briefing;
}

async function sync(as: object, kind = "INCREMENTAL"): Promise<void> {
  const request = "mutation ($kind: SyncKind) { requestSync(kind: $kind) { ... on Refusal { message } } }";
  expect(dataOf(await service.ask(request, { kind }, as))).toEqual({ requestSync: {} });
  expect((await syncEnds(service, as)).state).toBe("SUCCEEDED");
}

/** The whole of a v2 list, as the CRM would answer. */
const listOf = (data: object[]) => ({
  ...{ status: 200, contentType: "application/json" },
  body: JSON.stringify({ success: true, data, additional_data: { next_cursor: null } }),
});

test("records that cannot be read are a gap of the copy, of briefings, and of the silence of the deal that they name", async () => {
  const as = { tenant: "unread" };
  const { singleDeal, freeMail } = simulator.company.stories;
  const odd = { subject: "Call", type: "call", done: "perhaps" };
  const end = simulator.control.fail({
    match: "/api/v2/activities",
    with: listOf([
      { id: 900_001, ...odd, deal_id: singleDeal.dealId },
      { id: 900_002, ...odd, deal_id: null },
    ]),
  });
  await connect(service, simulator, as);
  expect(await syncEnds(service, as)).toMatchObject({
    state: "SUCCEEDED",
    gaps: [{ resource: "ACTIVITIES", code: "RECORDS_UNREADABLE", count: 2 }],
  });
  const [gap, ...others] = await gapsOfCopy(as);
  expect(others).toEqual([]);
  expect(gap?.message).toMatch(/activities .* could not be read.*operator/);

  const touched = await briefingOf(singleDeal.email, as);
  expect(touched.gaps).toEqual([gap]);
  const incomplete = { code: "DATA_INCOMPLETE", since: gap?.since };
  expect(touched.deal?.quiet.reasons).toContainEqual(incomplete);
  const untouched = await briefingOf(freeMail.email, as);
  expect(untouched.gaps).toEqual([gap]);
  expect(untouched.deal?.quiet.reasons.map(({ code }) => code)).not.toContain("DATA_INCOMPLETE");

  // Read again and as odd as before, it is missing since the first time.
  aheadMs += 600_000;
  await sync(as, "RECONCILE");
  expect(await gapsOfCopy(as)).toEqual([gap]);
  end();
  // One has become readable; the other is shown no more, which whole reads days later take for gone.
  const mended = { id: 900_001, subject: "Call", type: "call", done: true, deal_id: singleDeal.dealId };
  simulator.control.fail({ match: "/api/v2/activities", with: listOf([mended]) });
  await sync(as, "RECONCILE");
  expect(await gapsOfCopy(as)).toMatchObject([{ count: 1 }]);
  passDays(4);
  await sync(as, "RECONCILE");
  expect(await gapsOfCopy(as)).toEqual([]);
});

test("a record that names what can be no deal is kept aside like any other", async () => {
  const as = { tenant: "long" };
  const deal_id = randomBytes(10_000).toString("hex");
  simulator.control.fail({ match: "/api/v2/activities", with: listOf([{ id: 900_003, subject: "Call", deal_id }]) });
  await connect(service, simulator, as);
  expect(await syncEnds(service, as)).toMatchObject({ state: "SUCCEEDED", gaps: [{ count: 1 }] });
});

test("participants that could not be read touch the briefings in which their deal could be missing", async () => {
  const { singleDeal, ghosted } = simulator.company.stories;
  const hidden = simulator.control.add("deal", { title: "Second deal", status: "open", org_id: singleDeal.orgId });
  simulator.control.setParticipants(hidden, [singleDeal.personId]);
  simulator.control.fail({ match: `/api/v1/deals/${hidden}/participants`, with: { status: 500, body: "" } });
  const alone = "alone@alone-trading.example";
  simulator.control.add("person", { name: "Alone", emails: [{ value: alone, primary: true, label: "work" }] });
  const as = { tenant: "hidden" };
  await connect(service, simulator, as);
  await syncEnds(service, as);
  const gap = { resource: "DEAL_PARTICIPANTS", count: 1 };
  // The attendee's other deal is known, and of this one nothing shows that the attendee is on it.
  expect((await briefingOf(singleDeal.email, as)).gaps).toMatchObject([gap]);
  // Nor could anybody say that this person is on no deal.
  expect((await briefingOf(alone, as)).gaps).toMatchObject([gap]);
  expect((await briefingOf("nobody@nowhere.example", as)).gaps).toEqual([]);
  expect((await briefingOf(ghosted.email, as)).gaps).toEqual([]);
});
