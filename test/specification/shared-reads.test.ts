import { getNamedType } from "graphql";
import { buildGraphQLSchema } from "../../src/resolvers/graphql-schema";
import { selectionsWithin } from "../support/schema-walk";
import type { Service } from "../support/service";
import { type Subscription, subscribe, subscribeBriefly } from "../support/sockets";
import { countStatements, type StatementCounter } from "../support/statements";
import { recordMeeting, until } from "../support/stories";
import { useCrm } from "../support/world";

// Planted and seen red: each subscriber reads for itself; what was read before an event is shared after it; one
// tenant's read is shared with another; a resolver of an event that reads its actor's user id; a token's end that ends
// the group's source.

const SUBSCRIBERS = 30;
const TENANTS = ["acme", "globex"];

let counter: StatementCounter;
let service: Service;

const { world, database } = useCrm({ deals: 10 });
beforeAll(async () => {
  counter = await countStatements(database.url);
  world.cleanup(counter.close);
  service = await world.startService({ roles: ["api"], config: { databaseUrl: counter.url } });
  await database.query(
    `WITH made AS (INSERT INTO tenant (external_id) SELECT unnest($1::text[]) RETURNING id)
     INSERT INTO synced_copy (tenant_id, crm_company_id, crm_user_id, state, created_at)
     SELECT id, 1, 1, 'LIVE', now() FROM made`,
    [TENANTS],
  );
  await database.query(
    `INSERT INTO connection (tenant_id, state, state_changed_at, copy_id, company_name)
     SELECT c.tenant_id, 'CONNECTED', now(), c.id, 'Company of ' || t.external_id
     FROM synced_copy c JOIN tenant t ON t.id = c.tenant_id`,
  );
  await database.query(
    `INSERT INTO sync_run (tenant_id, id, copy_id, kind, state, queued_at)
     SELECT tenant_id, gen_random_uuid(), id, 'FULL', 'QUEUED', now() FROM synced_copy`,
  );
});

const STATUS = "subscription { connectionStatusChanged { companyName sync { current { state } lastSuccessAt } } }";
const PROGRESS = "subscription { syncProgressed { state progress steps { resource } } }";

/** Sockets of one tenant, each with a subscription that has shown the present state. */
async function watchers(tenant: string, query: string, count: number): Promise<Subscription<object>[]> {
  const found = await Promise.all(
    Array.from({ length: count }, () => subscribe<object>(service.url, query, { as: { tenant, role: "member" } })),
  );
  await until("all see the present state", async () => found.every(({ results }) => results.length === 1));
  return found;
}

const all = (found: Subscription<object>[], count: number) => found.every(({ results }) => results.length === count);

test.each([
  [
    "a connection's change",
    STATUS,
    "connection_changed",
    "UPDATE connection SET company_name = 'Renamed' WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = 'acme')",
    {
      connectionStatusChanged: { companyName: "Renamed", sync: { current: { state: "QUEUED" }, lastSuccessAt: null } },
    },
  ],
  [
    "a run's progress",
    PROGRESS,
    "progress_changed",
    "UPDATE sync_run SET state = 'RUNNING' WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = 'acme')",
    { syncProgressed: { state: "RUNNING", progress: 0, steps: [] } },
  ],
])(
  "%s is read once for all subscribers of its tenant, and by nobody else",
  async (_, query, channel, change, shown) => {
    const [ours, theirs] = [await watchers("acme", query, SUBSCRIBERS), await watchers("globex", query, 2)];
    const sent = await counter.during(async () => {
      await database.query(
        `DO $$ BEGIN ${change}; PERFORM pg_notify('${channel}', (SELECT id::text FROM tenant WHERE external_id = 'acme')); END $$`,
      );
      await until("all of the tenant see it", async () => all(ours, 2));
    });
    for (const { results } of ours) expect(results[1]).toEqual(shown);
    const tables = sent.flatMap((sql) =>
      [...sql.matchAll(/FROM "?(connection|sync_run|sync_step)\b/g)].map(([, t]) => t),
    );
    const reads = (table: string) => tables.filter((name) => name === table).length;
    expect(sent.length).toBeLessThanOrEqual(12);
    expect(reads("connection")).toBeLessThanOrEqual(1);
    expect(reads("sync_step")).toBeLessThanOrEqual(1);
    expect(all(theirs, 1)).toBe(true);
    await Promise.all([...ours, ...theirs].map((watching) => watching.end()));
  },
);

// Seen red with gaps that came with every status: each page view and each event counted all unasked deals.
test.each([
  ["that nobody asks for are not read", "", 0],
  ["are read once for all who ask, however often", "gaps { code } more: gaps { count }", 1],
])("a status's gaps %s", async (_, gaps, times) => {
  const found = await watchers("acme", `subscription { connectionStatusChanged { sync { nextRunAt ${gaps} } } }`, 3);
  const sent = await counter.during(async () => {
    await database.query("SELECT pg_notify('connection_changed', id::text) FROM tenant WHERE external_id = 'acme'");
    await until("all are woken", async () => all(found, 2));
  });
  expect([...sent.join().matchAll(/AS unasked/g)]).toHaveLength(times);
  await Promise.all(found.map((watching) => watching.end()));
});

test("tenants that are woken at one moment are shown their own", async () => {
  const found = await Promise.all(TENANTS.map((tenant) => watchers(tenant, STATUS, 3)));
  await database.query("SELECT pg_notify('connection_changed', id::text) FROM tenant WHERE external_id = ANY ($1)", [
    TENANTS,
  ]);
  await until("all are woken", async () => found.every((ofTenant) => all(ofTenant, 2)));
  const [acme = [], globex = []] = found;
  for (const { results } of acme)
    expect(results[1]).toMatchObject({ connectionStatusChanged: { companyName: "Renamed" } });
  for (const { results } of globex)
    expect(results[1]).toMatchObject({ connectionStatusChanged: { companyName: "Company of globex" } });
  await Promise.all(found.flat().map((watching) => watching.end()));
});

test("changes that follow each other are each seen by all, the last one last", async () => {
  const ours = await watchers("acme", STATUS, SUBSCRIBERS);
  for (let change = 1; change <= 20; change += 1) {
    await database.query(
      `DO $$ BEGIN UPDATE connection SET company_name = 'Name ${change}' WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = 'acme');
         PERFORM pg_notify('connection_changed', (SELECT id::text FROM tenant WHERE external_id = 'acme')); END $$`,
    );
  }
  const last = { connectionStatusChanged: { companyName: "Name 20" } };
  await until("all see the last", async () =>
    ours.every(({ results }) => JSON.stringify(results.at(-1)).includes("Name 20")),
  );
  for (const { results } of ours) expect(results.at(-1)).toMatchObject(last);
  await Promise.all(ours.map((watching) => watching.end()));
});

const schema = buildGraphQLSchema();
/** `writeSettled` is for one user and executed for that one alone (`writes-told`). */
const subscriptions = Object.values(schema.getSubscriptionType()?.getFields() ?? {}).filter(
  ({ name }) => name !== "writeSettled",
);

test("all that a subscription can ask for is answered without knowing which user asks", async () => {
  const as = { tenant: "acme" };
  await recordMeeting(service, ["buyer@customer.example"], {}, as);
  await database.query(
    `INSERT INTO deal (tenant_id, copy_id, crm_id, title, status, participants_due, participants_known, custom_fields)
     SELECT c.tenant_id, c.copy_id, 1, 'Met', 'open', false, true, '{}' FROM connection c JOIN meeting USING (tenant_id)`,
  );
  await database.query(
    `INSERT INTO matched_record (tenant_id, copy_id, entity, crm_id, meeting_id)
     SELECT d.tenant_id, d.copy_id, 'DEAL', d.crm_id, m.id FROM deal d JOIN meeting m USING (tenant_id)`,
  );
  const subjects = (sql: string) => database.query<{ of: string }>(sql);
  const told = [
    ...(await subjects("SELECT tenant_id || ' ' || id AS of FROM meeting")).map(({ of }) => ["meeting_matched", of]),
    ...(await subjects("SELECT tenant_id || ' ' || crm_id || ':' || now() AS of FROM deal")).map(({ of }) => [
      "silence_changed",
      of,
    ]),
  ];
  const lastOf = (selection: string) => selection.split(" { ").at(-2) ?? "";
  const [answered, refused] = [new Set<string>(), new Set<string>()];
  for (const { name, type } of subscriptions) {
    for (const selection of selectionsWithin(schema, getNamedType(type).name)) {
      const watching = await subscribe<object>(service.url, `subscription { ${name} { ${selection} } }`, { as });
      let refusal = "";
      void watching.closed.then(({ reason }) => {
        refusal = reason;
      });
      await until(`${name} answers ${selection}`, async () => {
        // Meetings and deals are told of when they change; whether anybody listens by now is not seen from here.
        // Each by itself: on a cluster the nodes would tell of their own rows, and nobody listens there.
        for (const [channel, subject] of told) await database.query("SELECT pg_notify($1, $2)", [channel, subject]);
        return watching.results.length > 0 || refusal !== "";
      });
      (refusal === "" ? answered : refused).add(lastOf(selection));
      if (refusal !== "") expect(refusal).toContain("OPERATION_TOO_COSTLY");
      else
        expect({ selection, answer: watching.results[0] }).toEqual({
          selection,
          answer: { [name]: expect.anything() },
        });
      await watching.end();
    }
  }
  // Of what is too much by one way all is answered by another, but for the stages of all pipelines, for which nobody subscribes, and
  // what only settings have, which are a Node and no target of a write.
  expect([...refused].filter((name) => !answered.has(name)).sort()).toEqual(["stages", "thresholds"]);
});

test("a token that ends closes its own socket; the others of its subscription are told of what follows", async () => {
  const [staying] = await watchers("acme", STATUS, 1);
  const ending = await subscribeBriefly<object>(service.url, STATUS, { tenant: "acme", role: "member" });
  expect((await ending.closed).code).toBe(4403);
  expect(staying?.results).toHaveLength(1);
  await database.query(
    "SELECT pg_notify('connection_changed', (SELECT id::text FROM tenant WHERE external_id = 'acme'))",
  );
  await until("the other is told", async () => staying?.results.length === 2);
  await staying?.end();
});
