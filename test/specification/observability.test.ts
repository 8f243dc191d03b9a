import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type Simulator, startSimulator } from "../../simulator";
import { tokenFor } from "../support/actors";
import { createTestDatabase, type TestDatabase } from "../support/database";
import { type Program, startProgram } from "../support/processes";
import { environmentFor, type GraphQLAnswer, type Service } from "../support/service";
import { connect, syncEnds, until } from "../support/stories";

interface Span {
  name: string;
  traceId: string;
  spanId: string;
  parentSpanId?: string;
}

let simulator: Simulator;
let database: TestDatabase;
let collector: Server;
let program: Program | undefined;
let url: string;
const spans: Span[] = [];

beforeAll(async () => {
  [simulator, database] = await Promise.all([startSimulator({ deals: 10 }), createTestDatabase()]);
  collector = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { resourceSpans } = JSON.parse(Buffer.concat(chunks).toString());
      for (const { scopeSpans } of resourceSpans) for (const scope of scopeSpans) spans.push(...scope.spans);
      response.end("{}");
    });
  });
  await new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", resolve));
  const { port } = collector.address() as AddressInfo;
  program = startProgram("src/main.js", {
    ...environmentFor(simulator),
    ...{ DATABASE_URL: database.url.reveal(), LOG_LEVEL: "debug" },
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
  });
  url = (await program.says(/"address":"([^"]+)"/))[1] ?? "";
});
afterAll(async () => {
  program?.child.kill("SIGKILL");
  collector.close();
  collector.closeAllConnections();
  await Promise.all([simulator.stop(), database.drop()]);
});

async function post(query: string, headers: Record<string, string> = {}) {
  const answer = await fetch(`${url}/graphql`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${await tokenFor()}`, ...headers },
    body: JSON.stringify({ query }),
  });
  return {
    id: answer.headers.get("x-request-id"),
    body: (await answer.json()) as Pick<GraphQLAnswer<object>, "errors">,
  };
}

const logged = () =>
  (program?.output() ?? "")
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line): Record<string, unknown> => JSON.parse(line));

/** What the log says of an operation; its own line is the last. */
async function saidOf(id: string | null): Promise<Record<string, unknown>[]> {
  const of = () => logged().filter(({ operationId }) => operationId === id);
  await until("the operation is logged", async () => of().some(({ msg }) => msg === "an operation was answered"));
  return of();
}

test("an operation, its SQL and its calls to the CRM carry one id in the log, which the caller may choose", async () => {
  const stop = async () => undefined;
  const service: Service = { url, ask, stop };
  await connect(service, simulator);
  await syncEnds(service);
  const { id } = await post("query Fields { connection { fields(entity: DEAL) { key } } }", {
    "x-request-id": "page-42-abc",
  });
  expect(id).toBe("page-42-abc");
  const lines = await saidOf("page-42-abc");
  expect(lines.find(({ sql }) => typeof sql === "string")).toBeDefined();
  expect(lines.find(({ route }) => route === "GET /api/v2/dealFields")).toMatchObject({ status: 200 });
  expect(lines.find(({ msg }) => msg === "an operation was answered")).toMatchObject({
    ...{
      kind: "query",
      operationName: "Fields",
      tenant: "acme",
      tenantId: await database.tenantId("acme"),
      userId: "anna",
      codes: [],
    },
    ...{ sql: expect.any(Number), crm: expect.any(Number) },
  });
});

async function ask<T>(query: string, variables = {}): Promise<GraphQLAnswer<T>> {
  const answer = await fetch(`${url}/graphql`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${await tokenFor()}` },
    body: JSON.stringify({ query, variables }),
  });
  return { status: answer.status, ...((await answer.json()) as Omit<GraphQLAnswer<T>, "status">) };
}

test("an id that is none is not taken over, and the log never holds what a statement was given", async () => {
  const { id } = await post('{ meeting(externalId: "canary-7351") { id } }', { "x-request-id": '{"a": 1}' });
  expect(id).toMatch(/^[0-9a-f-]{36}$/);
  expect((await saidOf(id)).length).toBeGreaterThan(1);
  expect(program?.output()).not.toContain("canary-7351");
});

test("a masked error's id is in a log line of the same operation", async () => {
  await database.query("ALTER TABLE meeting RENAME TO meeting_away");
  const { id, body } = await post('{ meeting(externalId: "x") { id } }');
  await database.query("ALTER TABLE meeting_away RENAME TO meeting");
  const errorId = body.errors?.[0]?.extensions.errorId;
  expect(errorId).toBeDefined();
  expect((await saidOf(id)).find((line) => line.errorId === errorId)).toBeDefined();
});

test("a run's job names its task and job in each line", async () => {
  const succeeded = logged().find(({ msg }) => msg === "a sync run succeeded");
  expect(succeeded).toMatchObject({
    task: "sync_run",
    jobId: expect.any(String),
    tenantId: await database.tenantId("acme"),
  });
});

test("traces lead from an operation to its SQL and its calls to the CRM, and from a job to its calls", async () => {
  await post("query Traced { connection { fields(entity: PERSON) { key } } }");
  program?.child.kill("SIGTERM");
  expect(await program?.ended).toBe(0);
  const operation = spans.find(({ name }) => name === "query Traced");
  const within = spans.filter(({ traceId }) => traceId === operation?.traceId);
  expect(within.map(({ name }) => name)).toEqual(expect.arrayContaining(["sql", "GET /api/v2/personFields"]));
  const job = spans.find(({ name }) => name === "job sync_run");
  const pages = spans.filter(({ traceId, name }) => traceId === job?.traceId && name === "GET /api/v2/persons");
  expect(pages.length).toBeGreaterThan(0);
});
