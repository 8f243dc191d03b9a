import { copiedParticipants, visibleParticipants } from "../support/copy";
import { connect, dataOf, type EndedRun, syncEnds } from "../support/stories";
import { useService } from "../support/world";

/** How far the clocks of both sides are ahead; it begins later than everything that made the company. */
let aheadMs = 60_000;
const passHours = (hours: number) => {
  aheadMs += hours * 3_600_000;
};
let userId: number;

const { world, simulator, database, service } = useService({
  deals: 20,
  clock: () => new Date(Date.now() + aheadMs),
});
beforeAll(() => {
  userId = simulator.company.stories.singleDeal.ownerId;
});
beforeEach(() => world.beginAnew());

const somebody = (name: string) => simulator.control.add("person", { name });
function dealOf(...persons: number[]): number {
  const id = simulator.control.add("deal", { title: "Of several", person_id: persons[0] ?? null, status: "open" });
  simulator.control.setParticipants(id, persons);
  return id;
}

const NOBODY = { success: true, data: null, additional_data: { pagination: { more_items_in_collection: false } } };
const withhold = (dealId: number) =>
  simulator.control.fail({ match: `/api/v1/deals/${dealId}/participants`, with: { status: 200, body: NOBODY } });

async function sync(as: object): Promise<EndedRun> {
  passHours(0.01);
  const request = "mutation { requestSync(kind: INCREMENTAL) { ... on Refusal { message } } }";
  expect(dataOf(await service.ask(request, {}, as))).toEqual({ requestSync: {} });
  return syncEnds(service, as);
}

async function connectAs(as: object): Promise<EndedRun> {
  await connect(service, simulator, as);
  return syncEnds(service, as);
}

const isExact = async ({ tenant }: { tenant: string }) =>
  expect(await copiedParticipants(database, tenant)).toEqual(visibleParticipants(simulator, userId));
const GAP = [{ resource: "DEAL_PARTICIPANTS", code: "CRM_ANSWER_UNREADABLE", count: 1 }];
const askedOf = (dealId: number) => simulator.log.of("GET", `/api/v1/deals/${dealId}/participants`).length;

// Seen red, both: nobody was known to take part, and no gap said so.
test("an answer with nobody leaves those who are known to take part in a deal of several, and is told as a gap", async () => {
  const as = { tenant: "known" };
  const deal = dealOf(somebody("First"), somebody("Second"));
  await connectAs(as);
  await isExact(as);
  const end = withhold(deal);
  simulator.control.change("deal", deal, { title: "Changed" });
  expect(await sync(as)).toMatchObject({ state: "SUCCEEDED", gaps: GAP });
  await isExact(as);
  end();
  expect(await sync(as)).toMatchObject({ state: "SUCCEEDED", gaps: [] });
  await isExact(as);
});

test("an answer with nobody is none for a deal that was never known", async () => {
  const as = { tenant: "first" };
  const end = withhold(dealOf(somebody("First"), somebody("Second")));
  expect(await connectAs(as)).toMatchObject({ state: "SUCCEEDED", gaps: GAP });
  end();
  expect(await sync(as)).toMatchObject({ state: "SUCCEEDED", gaps: [] });
  await isExact(as);
});

// Planted and seen red, each: an answer that is never believed; one that is doubted whoever is shown, or without a look at the deal.
test("what the CRM says for a day is believed: others came whom the user may not see", async () => {
  const as = { tenant: "replaced" };
  const deal = dealOf(somebody("First"), somebody("Second"));
  await connectAs(as);
  const hidden = [somebody("Third"), somebody("Fourth")];
  for (const id of hidden) simulator.control.hide("person", id);
  simulator.control.setParticipants(deal, hidden);
  simulator.control.change("deal", deal, { title: "Replaced" });
  expect(await sync(as)).toMatchObject({ gaps: GAP });
  passHours(25);
  expect(await sync(as)).toMatchObject({ state: "SUCCEEDED", gaps: [] });
  await isExact(as);
  passHours(72);
  simulator.log.clear();
  expect(await sync(as)).toMatchObject({ state: "SUCCEEDED", gaps: [] });
  expect(askedOf(deal)).toBe(1);
  simulator.control.setParticipants(deal, []);
});

test("a deal of people whom the user may not see has nobody, and no gap", async () => {
  const as = { tenant: "hidden" };
  const persons = [somebody("First"), somebody("Second")];
  for (const id of persons) simulator.control.hide("person", id);
  dealOf(...persons);
  expect(await connectAs(as)).toMatchObject({ state: "SUCCEEDED", gaps: [] });
  await isExact(as);
});

test("a deal that is emptied before its answer has nobody, and no gap", async () => {
  const as = { tenant: "emptied" };
  const deal = dealOf(somebody("First"), somebody("Second"));
  simulator.control.fail({
    match: `/api/v1/deals/${deal}/participants`,
    times: 1,
    with: { kind: "meanwhile", act: () => simulator.control.setParticipants(deal, [], "moves") },
  });
  expect(await connectAs(as)).toMatchObject({ state: "SUCCEEDED", gaps: [] });
  await isExact(as);
});
