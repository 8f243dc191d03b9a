import { type ExecutionResult, execute, parse } from "graphql";
import { LRUCache } from "lru-cache";
import { Client } from "pg";
import type { Actor } from "../../src/auth/actor";
import { createDataSource } from "../../src/database/data-source";
import { entities } from "../../src/entities";
import { createOperationContext, type ResolverServices } from "../../src/resolvers/context";
import { buildGraphQLSchema } from "../../src/resolvers/graphql-schema";
import { openOn } from "../support/database";
import type { Service } from "../support/service";
import { connect, dataOf, recordMeeting, syncEnds, until } from "../support/stories";
import { useService } from "../support/world";

// Planted and seen red: what was read by the last copy is the answer whatever the connection says; each root field reads anew
// by itself; what is read again outlives the deadline.

const { world, simulator, database, service } = useService({ deals: 20, connected: ["acme", "globex"] });
/** Another process, which is told of no change and knows the copy that it saw last. */
let knowing: Service;
let query: string;

beforeAll(async () => {
  knowing = await world.startService({ roles: ["api"] });
  for (const tenant of ["acme", "globex"])
    await recordMeeting(service, [simulator.company.stories.singleDeal.email], { externalId: "m" }, { tenant });
  query = await everything();
});

/** Everything that there is now, and by the ids that it has now. */
async function everything(): Promise<string> {
  type Nodes = { nodes: { id: string }[] };
  const found = dataOf(
    await service.ask<Record<"deals" | "persons" | "meetings", Nodes>>(
      "{ deals { nodes { id } } persons { nodes { id } } meetings { nodes { id } } }",
    ),
  );
  const [deal, person, meeting] = [found.deals, found.persons, found.meetings].map(({ nodes }) => nodes[0]?.id ?? "x");
  const DEAL = "{ id title stage { name } organization { name } recentNotes { text } quiet { verdict } }";
  return `{ viewer { userId } connection { state companyName } quietSettings { businessDays }
    deal(id: "${deal}") ${DEAL} person(id: "${person}") { name openDeals ${DEAL} } node(id: "${deal}") { ... on Deal ${DEAL} }
    deals { totalCount nodes ${DEAL} } persons { nodes { id name } } meetings { nodes { title match { status reason deal { title } } briefing { deal ${DEAL} otherDeals { title } } } }
    briefing(meetingId: "${meeting}") { deal ${DEAL} persons { name } timeline { kind } asOf gaps { resource } }
    meeting(externalId: "m") { match { status reason } briefing { asOf } } }`;
}

/** A process that has seen nothing yet says the same. */
async function answersAlike(): Promise<Record<string, unknown>> {
  const fresh = await world.startService({ roles: ["api"] });
  const expected = await fresh.ask(query);
  await fresh.stop();
  for (const time of ["first", "again"]) expect([time, await knowing.ask(query)]).toEqual([time, expected]);
  return dataOf(expected);
}

/** A copy of another company takes the place of the present one; its one deal is what the meeting is about. */
async function takeAnother(title: string, ask: (sql: string, values: unknown[]) => Promise<unknown>): Promise<void> {
  const tenantId = await database.tenantId("acme");
  await ask("UPDATE synced_copy SET state = 'RETIRED' WHERE tenant_id = $1", [tenantId]);
  await ask(
    `WITH copy AS (
       INSERT INTO synced_copy (tenant_id, crm_company_id, crm_user_id, state, created_at)
       VALUES ($1, 77, 1, 'LIVE', now()) RETURNING id
     ), connected AS (UPDATE connection SET copy_id = copy.id FROM copy WHERE tenant_id = $1
     ), matched AS (
       INSERT INTO matched_record (tenant_id, copy_id, meeting_id, entity, crm_id)
       SELECT $1, copy.id, m.id, 'DEAL', 1 FROM copy, meeting m WHERE m.tenant_id = $1
     )
     INSERT INTO deal (tenant_id, copy_id, crm_id, title, status, participants_due, participants_known, custom_fields)
     SELECT $1, copy.id, 1, $2, 'open', false, true, '{}' FROM copy`,
    [tenantId, title],
  );
}

test("whatever became of the copy that a process saw last, it answers as one that has seen none", async () => {
  const before = await answersAlike();
  expect(before.deal).not.toBeNull();

  dataOf(await service.ask("mutation { disconnect { __typename } }"));
  expect(await answersAlike()).toMatchObject({ deal: null, briefing: null, deals: { nodes: [] } });

  await connect(service, simulator);
  await syncEnds(service);
  // Ids of the copy before are none of this one.
  expect(await answersAlike()).toMatchObject({ deal: null, node: null });
  query = await everything();
  expect((await answersAlike()).deal).toEqual({ ...(before.deal as object), id: expect.any(String) });

  await takeAnother("Of another company", database.query);
  expect(await answersAlike()).toMatchObject({
    deal: null,
    meetings: { nodes: [{ briefing: { otherDeals: [{ title: "Of another company" }] } }] },
  });
  expect(dataOf(await knowing.ask("{ deals { totalCount } }", {}, { tenant: "globex" }))).not.toEqual({
    deals: { totalCount: 0 },
  });
});

test("a copy that another takes the place of while it is read is the whole answer, or none of it", async () => {
  const asked =
    "{ connection { state } meetings { nodes { briefing { otherDeals { title } } } } persons { nodes { name } } }";
  const before = await knowing.ask(asked);
  const session = new Client({ connectionString: database.url.reveal() });
  await session.connect();
  world.cleanup(() => session.end());
  await session.query("BEGIN");
  await session.query("LOCK TABLE deal IN ACCESS EXCLUSIVE MODE");
  await takeAnother("The next one", (sql, values) => session.query(sql, values));
  const answer = knowing.ask(asked);
  await until("the question waits", async () => (await database.lockWaits()).length > 0);
  await session.query("COMMIT");
  const after = await service.ask(asked);
  expect(after).not.toEqual(before);
  expect([before, after]).toContainEqual(await answer);
});

/** Executes a query whose process takes `last` for the tenant's copy. @returns the signals that its reads were given */
async function signalsOf(
  text: string,
  last: number,
): Promise<{ signals: AbortSignal[]; result: ExecutionResult; end(): void }> {
  const dataSource = await createDataSource({ url: database.url, entities }).initialize();
  world.cleanup(() => dataSource.destroy());
  const [db, signals] = [openOn(dataSource), [] as AbortSignal[]];
  const tenantId = await database.tenantId("globex");
  const lastCopies = new LRUCache<number, number>({ max: 10 });
  lastCopies.set(tenantId, last);
  const tenant = (id: number, signal: AbortSignal) => {
    signals.push(signal);
    return db.tenant(id, signal);
  };
  // What a query's reads take of the services; the rest it never meets.
  const services = { database: { tenant }, lastCopies, clock: () => new Date() } as unknown as ResolverServices;
  const actor = { tenantId, tenant: "globex", userId: "mia", role: "admin", plan: "sales" } as Actor;
  const contextValue = createOperationContext(actor, services);
  const result = await execute({ schema: buildGraphQLSchema(), document: parse(text), contextValue });
  return { signals, result, end: () => contextValue.deadline.abort() };
}

test("a query that is read again is read again once, and called off at its deadline as a whole", async () => {
  const asked = "{ deals { nodes { title } } persons { nodes { name } } organizations { nodes { name } } }";
  const { signals, result, end } = await signalsOf(asked, 999_999);
  expect(result.errors).toBeUndefined();
  expect(result).toMatchObject({ data: dataOf(await service.ask(asked, {}, { tenant: "globex" })) });
  end();
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
});
