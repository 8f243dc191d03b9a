import { DAY_MS, MINUTE_MS } from "../../src/platform/clock";
import { createTestDatabase, type TestDatabase } from "../support/database";
import { type Days, startDays } from "../support/days";
import { connect, dataOf, recordMeeting } from "../support/stories";

// Seen red, all: a run that looks at a meeting's records has no step for their lists, so what it wrote was counted nowhere,
// and the meeting kept its match for as long as nothing else changed.

let database: TestDatabase;
let days: Days;
beforeAll(async () => {
  database = await createTestDatabase();
  days = await startDays(database, { deals: 20, deletedByIds: "shows" });
  await connect(days.service, days.simulator);
  await days.until(inMs(10 * MINUTE_MS));
});
afterAll(async () => {
  await days.stop();
  await database.drop();
});

const inMs = (ms: number) => new Date(days.clock().getTime() + ms);
/** All lists are read, so that none is due before a meeting soon. */
async function readLists(): Promise<void> {
  dataOf(await days.service.ask("mutation { requestSync(kind: INCREMENTAL) { __typename } }"));
  await days.until(inMs(2 * MINUTE_MS));
}
const MATCH =
  "query ($id: ID!) { meeting(id: $id) { match { status reason deal { title } } attendees { match { status } } } }";
interface Matched {
  meeting: {
    match: { status: string; reason: string; deal: { title: string } | null };
    attendees: { match: { status: string } }[];
  };
}

/** Who is met, with a deal of their own, and whoever takes their place. */
function company(title: string) {
  const { control } = days.simulator;
  const personOf = (name: string) =>
    control.add("person", { name, emails: [{ value: `${name}@${title}.example`, primary: true, label: "work" }] });
  const [met, other] = [personOf("met"), personOf("other")];
  const deal = control.add("deal", { title, status: "open", person_id: null, org_id: null });
  control.setParticipants(deal, [met]);
  return { met, other, deal, address: `met@${title}.example` };
}
type Company = ReturnType<typeof company>;

test.each<[string, (of: Company) => unknown, object]>([
  [
    "the deal is lost for long",
    ({ deal }) => {
      const lost = inMs(-30 * DAY_MS)
        .toISOString()
        .slice(0, 19)
        .concat("Z");
      days.simulator.control.change("deal", deal, { status: "lost", lost_time: lost, close_time: lost });
    },
    { match: { deal: null }, attendees: [{ match: { status: "MATCHED" } }] },
  ],
  [
    "the deal is deleted",
    ({ deal }) => days.simulator.control.remove("deal", deal),
    // What is gone is shown to nobody before as well.
    {
      match: { reason: expect.not.stringContaining("is gone"), deal: null },
      attendees: [{ match: { status: "MATCHED" } }],
    },
  ],
  [
    "somebody else takes part in the deal",
    ({ deal, other }) => days.simulator.control.setParticipants(deal, [other]),
    { match: { deal: null }, attendees: [{ match: { status: "MATCHED" } }] },
  ],
  [
    "the person has another address",
    ({ met }) =>
      days.simulator.control.change("person", met, {
        emails: [{ value: "met@elsewhere.example", primary: true, label: "work" }],
      }),
    { match: { deal: null }, attendees: [{ match: { status: "NONE" } }] },
  ],
])("what is looked at before a meeting matches it again: %s", async (change, happens, expected) => {
  const { service, simulator } = days;
  const title = change.replace(/\W/g, "");
  const of = company(title);
  await readLists();
  const { id } = await recordMeeting(service, [of.address], { startsAt: inMs(6 * MINUTE_MS).toISOString() });
  const read = async () => dataOf(await service.ask<Matched>(MATCH, { id })).meeting;
  expect(await read()).toMatchObject({ match: { deal: { title } } });
  happens(of);
  simulator.log.clear();
  await days.until(inMs(3 * MINUTE_MS));
  const lists = simulator.log.of("GET", /\/(persons|deals|organizations)$/).filter(({ query }) => !query.ids);
  expect(lists).toEqual([]);
  expect(await read()).toMatchObject(expected);
});

// Seen red: the last run's count was taken for all, so that progress stood still from the first deal on.
test("what is asked for a meeting before it is reckoned how much there is to ask is no estimate of that", async () => {
  const { service, simulator } = days;
  const { address, deal } = company("reckoned");
  await readLists();
  const deals = await database.query<{ id: number }>("SELECT crm_id::int AS id FROM deal WHERE status = 'open'");
  for (const { id } of [...deals, { id: deal }]) simulator.control.change("deal", id, { title: "Changed" });
  await recordMeeting(service, [address], { startsAt: inMs(2 * MINUTE_MS).toISOString() });
  await readLists();
  const steps = await database.query<{ fetched: number; expected: number }>(
    "SELECT fetched, expected FROM sync_step WHERE resource = 'DEAL_PARTICIPANTS' AND fetched > 0",
  );
  expect(steps.filter(({ fetched, expected }) => fetched > expected)).toEqual([]);
});

// Seen red: it had been brought up to date for those who attended then, and was not again.
test("who is added to a meeting that begins soon is looked at as well, and nobody twice for a delivery that comes again", async () => {
  const { service, simulator } = days;
  const [first, added] = [company("first"), company("added")];
  await readLists();
  const meeting = { externalId: "soon", startsAt: inMs(4 * MINUTE_MS).toISOString() };
  await recordMeeting(service, [first.address], meeting);
  await days.until(inMs(MINUTE_MS));
  simulator.log.clear();
  await recordMeeting(service, [first.address], meeting);
  await days.until(inMs(MINUTE_MS));
  expect(simulator.log.of("GET", /\/deals$/)).toEqual([]);
  await recordMeeting(service, [first.address, added.address], meeting);
  await days.until(inMs(MINUTE_MS));
  const asked = simulator.log.of("GET", /\/deals$/).map(({ query }) => query.ids?.split(",").map(Number).sort());
  expect(asked).toEqual([[first.deal, added.deal].sort()]);
});
