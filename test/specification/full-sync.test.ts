import { copiedIds, copiedParticipants, visibleIds, visibleParticipants } from "../support/copy";
import { connect, type EndedRun, syncEnds } from "../support/stories";
import { useService } from "../support/world";

// Seen red with: participants asked for deals that have none.

let userId: number;

const { simulator, database, service } = useService({ deals: 700, seed: 7 });
beforeAll(async () => {
  userId = simulator.company.stories.singleDeal.ownerId;
});
beforeEach(() => simulator.log.clear());

/** Connects a tenant of its own and waits for its first sync. */
async function syncAs(tenant: string): Promise<EndedRun> {
  await connect(service, simulator, { tenant });
  return syncEnds(service, { tenant });
}

test("the first run is a full sync: the copy is exactly what the authorizing user sees", async () => {
  const run = await syncAs("acme");
  expect(run).toMatchObject({ state: "SUCCEEDED", error: null, gaps: [] });
  expect(run.steps.map(({ state }) => state)).toEqual(Array(9).fill("SUCCEEDED"));
  expect(run.steps.map(({ rejected }) => rejected)).toEqual(Array(9).fill(0));
  expect(await copiedIds(database)).toEqual(visibleIds(simulator, userId));
  expect(await copiedParticipants(database)).toEqual(visibleParticipants(simulator, userId));
});

test("it asks in the documented order, without updated_since, 500 a page, and for nothing else", async () => {
  await syncAs("order");
  const lists = simulator.log.all().filter(({ path }) => path.startsWith("/api/") && !path.endsWith("/participants"));
  const order = [...new Set(lists.map(({ path }) => path))];
  expect(order).toEqual([
    "/api/v1/users/me",
    "/api/v1/users",
    "/api/v2/pipelines",
    "/api/v2/stages",
    "/api/v2/organizations",
    "/api/v2/persons",
    "/api/v2/organizationFields",
    "/api/v2/deals",
    "/api/v2/personFields",
    "/api/v2/activities",
    "/api/v2/dealFields",
    "/api/v1/notes",
  ]);
  expect(lists.filter(({ method }) => method !== "GET")).toEqual([]);
  expect(lists.filter(({ query }) => "updated_since" in query)).toEqual([]);
  const paged = lists.filter(({ path }) => !path.startsWith("/api/v1/users"));
  expect(paged.every(({ query }) => query.limit === "500")).toBe(true);
});

test("participants cost one request a deal, and none for a deal that has none", async () => {
  await syncAs("participants");
  const asked = simulator.log.of("GET", /\/participants$/).map(({ path }) => Number(path.split("/")[4]));
  const withPeople = simulator.control.visibleTo(userId).deals.filter((deal) => deal.participants_count > 0);
  expect(asked.sort((a, b) => a - b)).toEqual(withPeople.map(({ id }) => id));
});

test("a value is kept to the cent, with every address, mail time and custom field", async () => {
  await syncAs("exact");
  const { stories, deals, persons } = simulator.company;
  const deal = deals.get(stories.singleDeal.dealId);
  const person = persons.get(stories.secondaryAddress.personId);
  const [row] = await database.query<{ value: string; custom_fields: object }>(
    "SELECT d.value, d.custom_fields FROM deal d JOIN connection c USING (tenant_id, copy_id) WHERE c.tenant_id = (SELECT id FROM tenant WHERE external_id = 'exact') AND d.crm_id = $1",
    [deal?.id],
  );
  const set = Object.entries(deal?.custom_fields ?? {}).filter(([, value]) => value !== null);
  expect(set).not.toEqual([]);
  expect(row).toEqual({ value: String(deal?.value), custom_fields: Object.fromEntries(set) });
  const [times] = await database.query<{ incoming: Date; outgoing: Date }>(
    `SELECT p.last_incoming_mail_time AS incoming, p.last_outgoing_mail_time AS outgoing
     FROM person p JOIN connection c USING (tenant_id, copy_id) WHERE c.tenant_id = (SELECT id FROM tenant WHERE external_id = 'exact') AND p.crm_id = $1`,
    [stories.ghosted.personId],
  );
  const ghosted = simulator.control.visibleTo(userId).persons.find(({ id }) => id === stories.ghosted.personId) as {
    last_incoming_mail_time?: string;
    last_outgoing_mail_time?: string;
  };
  expect(times).toEqual({
    incoming: new Date(ghosted.last_incoming_mail_time ?? 0),
    outgoing: new Date(ghosted.last_outgoing_mail_time ?? 0),
  });
  const addresses = await database.query<{ address: string }>(
    "SELECT a.address FROM person_address a JOIN connection c USING (tenant_id, copy_id) WHERE c.tenant_id = (SELECT id FROM tenant WHERE external_id = 'exact') AND a.person_id = $1",
    [person?.id],
  );
  expect(addresses.map(({ address }) => address)).toContain(stories.secondaryAddress.email.trim().toLowerCase());
});

test("runs are listed newest first, a page at a time", async () => {
  const PAGE =
    "query ($after: String) { syncRuns(first: 1, after: $after) { nodes { id kind state progress } pageInfo { hasNextPage endCursor } } }";
  type Answer = {
    syncRuns: { nodes: { kind: string; progress: number }[]; pageInfo: { hasNextPage: boolean; endCursor: string } };
  };
  const { data } = await service.ask<Answer>(PAGE, {}, { tenant: "acme" });
  expect(data.syncRuns).toMatchObject({
    nodes: [{ kind: "FULL", state: "SUCCEEDED", progress: 1 }],
    pageInfo: { hasNextPage: false },
  });
  const next = await service.ask<Answer>(PAGE, { after: data.syncRuns.pageInfo.endCursor }, { tenant: "acme" });
  expect(next.data.syncRuns.nodes).toEqual([]);
  const bad = await service.ask(PAGE, { after: "nonsense" }, { tenant: "acme" });
  expect(bad.errors?.[0]?.extensions.code).toBe("BAD_USER_INPUT");
});
