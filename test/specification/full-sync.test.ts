import { copiedIds, copiedParticipants, visibleIds, visibleParticipants } from "../support/copy";
import { connect, dataOf, type EndedRun, syncEnds, until } from "../support/stories";
import { useService } from "../support/world";

// Seen red with: participants asked for deals that have none.

let userId: number;

/** How far the clocks of both sides are ahead. */
let aheadMs = 0;
const clock = () => new Date(Date.now() + aheadMs);

const { simulator, database, service } = useService({ deals: 700, seed: 7, clock });
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

const MORE_DUE = `WITH due AS (
  UPDATE deal SET participants_due = true, participants_asked_at = NULL WHERE tenant_id = $1 AND crm_id = ANY (ARRAY (
    SELECT crm_id FROM deal WHERE tenant_id = $1 AND participants_asked_at IS NOT NULL AND participants_known AND participants_count > 1 LIMIT $2))
  RETURNING 1) SELECT count(*)::int AS came FROM due`;

// Seen red: with deals that had come meanwhile it fell.
test.each([0, 80])(
  "progress does not fall when a run goes on after its turn, with unread ones and up to %i deals more",
  async (more) => {
    const as = { tenant: `turns ${more}` };
    const end = simulator.control.fail({ match: /[02468]\/participants$/, with: { status: 500, body: "" } });
    const quicken = simulator.control.fail({ match: /[13579]\/participants$/, with: { kind: "delay", ms: 20 } });
    const seen: number[] = [];
    await connect(service, simulator, as);
    const turn = until(
      "a batch of deals was asked",
      async () => simulator.log.of("GET", /\/participants$/).length > 150,
    );
    const passed = turn.then(async () => {
      const [due] = await database.query<{ came: number }>(MORE_DUE, [await database.tenantId(as.tenant), more]);
      aheadMs += 18_000;
      return due?.came ?? 0;
    });
    const run = await until("the run ends", async () => {
      const query = "{ syncRuns(first: 1) { nodes { state progress steps { resource fetched } } } }";
      type Runs = {
        syncRuns: { nodes: { state: string; progress: number; steps: { resource: string; fetched: number }[] }[] };
      };
      const [found] = dataOf(await service.ask<Runs>(query, {}, as)).syncRuns.nodes;
      seen.push(found?.progress ?? 0);
      return found?.state === "SUCCEEDED" && found;
    });
    const came = await passed;
    end();
    quicken();
    expect(came > 0).toBe(more > 0);
    expect(run.progress).toBe(1);
    expect([...seen].sort((a, b) => a - b)).toEqual(seen);
    const [step] = await database.query<{ fetched: number; expected: number }>(
      "SELECT fetched, expected FROM sync_step WHERE tenant_id = $1 AND resource = 'DEAL_PARTICIPANTS'",
      [await database.tenantId(as.tenant)],
    );
    expect(step?.fetched).toBeGreaterThan(200);
    expect(step?.expected).toBe((step?.fetched ?? 0) - came);
  },
);
