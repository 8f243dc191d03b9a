import { mkdtempSync, openSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { hostname, tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { createApp } from "../../src/app";
import { resumeCrm, stopCrm } from "../../src/connections/crm-stops";
import { createLogger } from "../../src/platform/logger";
import { tokenFor } from "../support/actors";
import { fieldOf, setMapping, writeFields } from "../support/fields";
import { writeNote } from "../support/notes";
import { type Program, startProgram } from "../support/processes";
import type { GraphQLAnswer, Service } from "../support/service";
import { connect, recordMeeting, syncEnds, until } from "../support/stories";
import { useCrm } from "../support/world";

interface Span {
  name: string;
  traceId: string;
  spanId: string;
  parentSpanId?: string;
}

let program: Program | undefined;
let service: Service;
const spans: Span[] = [];

const { world, simulator, database } = useCrm({ deals: 10 });
beforeAll(async () => {
  const collector = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { resourceSpans } = JSON.parse(Buffer.concat(chunks).toString());
      for (const { scopeSpans } of resourceSpans) for (const scope of scopeSpans) spans.push(...scope.spans);
      response.end("{}");
    });
  });
  await new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", resolve));
  world.cleanup(() => {
    collector.close();
    collector.closeAllConnections();
  });
  const { port } = collector.address() as AddressInfo;
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` };
  ({ program, service } = await world.startProcess({ LOG_LEVEL: "debug", ...endpoint }));
});

async function post(query: string, headers: Record<string, string> = {}, role = "admin") {
  const answer = await fetch(`${service.url}/graphql`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${await tokenFor({ role })}`, ...headers },
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
    kind: "query",
    operationName: "Fields",
    tenant: "acme",
    tenantId: await database.tenantId("acme"),
    userId: "anna",
    codes: [],
    sql: expect.any(Number),
    crm: expect.any(Number),
  });
  // Seen red with fields that stay for the next lines of the same work.
  const [ofCalls, ofStatements] = [
    lines.filter(({ route }) => route),
    lines.filter(({ sql }) => typeof sql === "string"),
  ];
  expect(ofCalls.filter((line) => ofStatements.includes(line))).toEqual([]);
  expect(lines.at(-1)).not.toHaveProperty("route");
});

test("an id that is none is not taken over, and the log never holds what a statement was given", async () => {
  const { id } = await post('{ meeting(externalId: "canary-7351") { id } }', { "x-request-id": '{"a": 1}' });
  expect(id).toMatch(/^[0-9a-f-]{36}$/);
  expect((await saidOf(id)).length).toBeGreaterThan(1);
  expect(program?.output()).not.toContain("canary-7351");
});

// Seen red: the name is the caller's word, and nothing else said what was done.
test("a mutation's line says what it asked for, whatever its caller calls it and in whatever fragment that stands", async () => {
  const document = `mutation Innocent { ...on Mutation { x: clearFieldMapping(entity: DEAL) { __typename } } ...rest }
    fragment rest on Mutation { y: disconnect { __typename } z: disconnect { __typename } }`;
  const { id } = await post(document, { "x-request-id": "what-it-did" }, "member");
  expect((await saidOf(id)).at(-1)).toMatchObject({ did: ["clearFieldMapping", "disconnect"], userId: "anna" });
  const { id: query } = await post("{ viewer { userId } }");
  expect((await saidOf(query)).at(-1)).not.toHaveProperty("did");
});

// Seen red: of a value that was written, and of whatever failed, nothing led to the CRM's own log.
test("the line of each write has the CRM's own id of the call, also where it failed", async () => {
  const { id: meetingId } = await recordMeeting(service, [simulator.company.stories.singleDeal.email]);
  await setMapping(service, "DEAL", fieldOf(simulator, "DEAL", "varchar").field_code);
  const { writes } = await writeFields(service, meetingId, [{ entity: "DEAL", value: "Agreed." }]);
  expect(writes).toMatchObject([{ state: "WRITTEN" }]);
  const headers = { "x-correlation-id": "the-crms-own-7352" };
  const end = simulator.control.fail({ match: "/api/v1/notes", with: { status: 500, headers } });
  await writeNote(service, { meetingId });
  end();
  const line = (said: string) => logged().find(({ msg }) => msg === said);
  await until("both are said", async () => line("a note was not seen written"));
  expect(line("a field was sent to the CRM")).toMatchObject({ correlationId: expect.stringMatching(/./) });
  expect(line("a note was not seen written")).toMatchObject({ err: { correlationId: "the-crms-own-7352" } });
});

// Seen red: a match is one row, which the next one replaces: of a deal that a meeting had last month nothing was left.
test("from which deal to which a meeting came is said, with the rule, the occasion and the operation", async () => {
  const { email, dealId } = simulator.company.stories.singleDeal;
  const { id } = await recordMeeting(service, [email]);
  await post(`mutation { cancelMeeting(meetingId: "${id}") { __typename } }`, { "x-request-id": "cancels-it" });
  const [, meetingId] = Buffer.from(id, "base64url").toString().split(":");
  const said = () =>
    logged().filter((line) => line.msg === "a meeting has another deal" && line.meetingId === meetingId);
  await until("both are said", async () => said().length === 2);
  expect(said()).toMatchObject([
    { level: 30, occasion: "RECORDED", was: null, became: dealId, rule: "ONLY_CANDIDATE" },
    { level: 30, occasion: "CANCELLED", was: dealId, became: null, operationId: "cancels-it" },
  ]);
});

// Seen red: no process said it, and the row keeps the last reason alone.
test("a stop of all calls, its other reason and its end are said once each by a process that obeys", async () => {
  const db = database.opened();
  const asked = () => post("{ connection { fields(entity: ORGANIZATION) { key } } }");
  const said = () => logged().filter(({ msg }) => /calls to the CRM/.test(String(msg)));
  const stop = (reason: string) => stopCrm(db, reason, new Date());
  const steps = [() => stop("Notes go wrong."), () => stop("Deals do."), () => resumeCrm(db, new Date())];
  for (const [at, step] of steps.entries()) {
    await step();
    await until("it is said", async () => (await asked()) && said().length > at);
    await asked();
  }
  expect(said().map(({ level, stop }) => [level, (stop as { reason: string }).reason])).toEqual([
    [40, "Notes go wrong."],
    [40, "Deals do."],
    [30, "Deals do."],
  ]);
});

// Seen red: that a command was given stood nowhere but in what it changed.
test("a command says who gave it on which machine, and none of its words", async () => {
  const environment = { ...world.environment, LOG_LEVEL: "info" };
  const command = startProgram("src/main.js", environment, ["admit-person", "acme", "ada@buyer.example", "--yes"]);
  await command.ended;
  const [line = "{}"] = command.output().split("\n");
  const by = `${userInfo().username}@${hostname()}`;
  expect(JSON.parse(line)).toMatchObject({ level: 30, command: "admit-person", by });
  expect(line).not.toContain("ada");
});

test("a masked error's id is in a log line of the same operation", async () => {
  await database.query("ALTER TABLE meeting RENAME COLUMN title TO away");
  const { id, body } = await post('{ meeting(externalId: "x") { id } }');
  await database.query("ALTER TABLE meeting RENAME COLUMN away TO title");
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

// Seen red: what JSON leaves as it is ruled the terminal of who read the log, and any caller may choose it.
test("no word of a caller is a command of a terminal in the log, or another line, and each says the same", async () => {
  const log = join(mkdtempSync(join(tmpdir(), "words-")), "log");
  const operationName = 'x\u009b2J\u202e\u2028\u007f\n{"level":50,"msg":"forged"}\u001b[31m é 人';
  createLogger("info", openSync(log, "w")).info({ operationName }, "an operation was answered");
  const text = () => readFileSync(log, "utf8");
  await until("it is written", async () => text().endsWith("\n"));
  expect(text()).toMatch(/^\{[^\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]+\}\n$/u);
  expect(JSON.parse(text())).toMatchObject({ level: 30, operationName });
});

// Seen red: nobody was told, unless somebody asked doctor. A lost note is taken for absent by another machine's clock.
test.each([
  [300_000, true],
  [-300_000, true],
  [0, false],
])("a clock that is %i ms ahead of the database's is for somebody to mend: %p", async (aheadMs, isTold) => {
  const log = join(mkdtempSync(join(tmpdir(), "clock-")), "log");
  const config = { ...world.config, roles: new Set(["api"] as const) };
  const app = createApp(config, createLogger("error", openSync(log, "w")), () => new Date(Date.now() + aheadMs));
  await app.start();
  await app.stop();
  const line = () => /"aheadMs":.*this machine's clock is not the database's/.test(readFileSync(log, "utf8"));
  if (isTold) await until("it is told", async () => line());
  expect(line()).toBe(isTold);
});

// Seen red: a database that was restarted woke somebody, by a rejection of the job library that mends itself.
test("a rejection that nobody hears wakes somebody where it is a bug, and not where the database was away", async () => {
  const reject = (words: string, code: string) =>
    `Promise.reject(Object.assign(new Error("${words}"),{code:"${code}"}))`;
  const both = `${reject("connect", "ECONNREFUSED")};${reject("a bug", "NONE")}`;
  const loaded = `data:text/javascript,${encodeURIComponent(`process.on("SIGUSR2",()=>{${both}})`)}`;
  const { program } = await world.startProcess({ NODE_OPTIONS: `--import ${loaded}` });
  program.child.kill("SIGUSR2");
  expect(await program.says(/^{"level":40.*"message":"connect".*nobody handled/m)).toBeDefined();
  expect(await program.says(/^{"level":50.*"message":"a bug".*nobody handled/m)).toBeDefined();
});
