import { EventEmitter } from "node:events";
import { gzipSync } from "node:zlib";
import { parse } from "graphql";
import { request } from "undici";
import type { OperationContext } from "../../src/resolvers/context";
import { type BoundedSocket, Seats } from "../../src/server/bounded-socket";
import type { Operation } from "../../src/server/documents";
import { OperationLimits } from "../../src/server/limits";
import { tokenFor } from "../support/actors";
import { collectGarbage } from "../support/garbage";
import { startService } from "../support/service";
import { subscribe } from "../support/sockets";
import { dataOf, until } from "../support/stories";
import { useService } from "../support/world";

const { simulator, database, service } = useService({ deals: 10, roles: ["api"] });

const nested = (depth: number) =>
  `{ deal(id: "x") ${"{ organization { openDeals ".repeat(depth)}{ id }${" } }".repeat(depth)} }`;
const doubling = (levels: number) => {
  const fragment = (level: number) =>
    `fragment F${level} on Deal { organization { openDeals(first: 1) { ${level < levels ? `...F${level + 1} ...F${level + 1}` : "id"} } } }`;
  return `{ deal(id: "x") { ...F1 } } ${Array.from({ length: levels }, (_, index) => fragment(index + 1)).join(" ")}`;
};

const TOO_MUCH: [title: string, query: string, variables: object, code: string][] = [
  ["a long document", `{ ${"viewer { userId } ".repeat(700)} }`, {}, "GRAPHQL_PARSE_FAILED"],
  ["a deep document", nested(6), {}, "DOCUMENT_TOO_DEEP"],
  [
    "many aliases",
    `{ ${Array.from({ length: 31 }, (_, i) => `a${i}: viewer { userId }`).join(" ")} }`,
    {},
    "TOO_MANY_ALIASES",
  ],
  [
    "long lists within long lists",
    '{ deal(id: "x") { organization { persons(first: 50) { openDeals(first: 50) { recentNotes(first: 50) { id } } } } } }',
    {},
    "OPERATION_TOO_COSTLY",
  ],
  [
    "the same with the sizes in variables",
    'query ($n: Int) { deal(id: "x") { organization { persons(first: $n) { openDeals(first: $n) { recentNotes(first: $n) { id } } } } } }',
    { n: 50 },
    "OPERATION_TOO_COSTLY",
  ],
  [
    "the same with the sizes as defaults of variables",
    'query ($n: Int = 50) { deal(id: "x") { organization { persons(first: $n) { openDeals(first: $n) { recentNotes(first: $n) { id } } } } } }',
    {},
    "OPERATION_TOO_COSTLY",
  ],
  [
    "lists that have no size of their own, each of which may be long",
    '{ meeting(externalId: "x") { attendees { match { candidates { openDeals(first: 20) { title } } } } } }',
    {},
    "OPERATION_TOO_COSTLY",
  ],
  [
    "the text of thousands of notes",
    "{ deals(first: 100) { nodes { recentNotes(first: 50) { html text } organization { recentNotes(first: 50) { html } } } } }",
    {},
    "OPERATION_TOO_COSTLY",
  ],
  ["fragments that double each other", doubling(6), {}, "DOCUMENT_TOO_DEEP"],
  [
    "thousands of values in variables",
    "query ($f: DealFilter) { deals(filter: $f) { nodes { id } } }",
    { f: { status: Array.from({ length: 5_000 }, () => "OPEN") } },
    "TOO_MANY_VALUES",
  ],
  [
    "many mutations",
    `mutation { ${Array.from({ length: 25 }, (_, i) => `a${i}: disconnect { __typename }`).join(" ")} }`,
    {},
    "OPERATION_TOO_COSTLY",
  ],
];

test.each(TOO_MUCH)(
  "%s: refused before anything is executed, with a code and what to do",
  async (_title, query, variables, code) => {
    const answer = await service.ask(query, variables);
    expect(answer.status).toBe(400);
    expect(answer.data).toBeUndefined();
    expect(answer.errors).toHaveLength(1);
    expect(answer.errors?.[0]?.extensions.code).toBe(code);
  },
);

test.each([
  ["thousands of lines before what is wrong", `${"\n".repeat(240_000)}{ viewer { x } }`, 1, "DOCUMENT_TOO_COMPLEX"],
  ["one object asked for 490 times", `{ ${"viewer { userId } ".repeat(490)} }`, 1, "DOCUMENT_TOO_COMPLEX"],
  ["a directive 900 times", `{ viewer { userId ${"@nothing ".repeat(900)} } }`, 1, "DOCUMENT_TOO_COMPLEX"],
])("%s: few errors, each with its code", async (_title, query, count, code) => {
  const { status, errors } = await service.ask(query);
  expect([status, errors?.length, errors?.[0]?.extensions]).toEqual([400, count, { code }]);
});

test("an input that does not fit is not sent back once for each thing that is wrong with it", async () => {
  const filter = Object.fromEntries(Array.from({ length: 4_900 }, (_, i) => [`x${i}`, "x".repeat(80)]));
  const query = "query ($filter: DealFilter) { deals(filter: $filter) { nodes { id } } }";
  const answer = await service.ask(query, { filter });
  expect(answer.status).toBe(400);
  expect(answer.errors?.map(({ extensions }) => extensions.code)).toEqual(Array(6).fill("BAD_USER_INPUT"));
  expect(JSON.stringify(answer).length).toBeLessThan(10_000);
});

test("documents of half a megabyte do not stay in memory, however little there is to parse in them", async () => {
  const held = () => {
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  const before = held();
  for (let i = 0; i < 60; i += 1) {
    dataOf(await service.ask(`{ viewer { userId } } #${i}${"x".repeat(400_000)}`));
  }
  expect(held() - before).toBeLessThan(8_000_000);
});

test("the same lists with smaller sizes in the variables are answered: the cost is that of the variables", async () => {
  const query =
    'query ($n: Int) { deal(id: "x") { organization { persons(first: $n) { openDeals(first: $n) { recentNotes(first: $n) { id } } } } } }';
  expect(dataOf(await service.ask(query, { n: 10 }))).toEqual({ deal: null });
});

test("variables that do not fit make no later operation cheap, and those of one caller not another's", async () => {
  const query = `query ($n: Int, $filter: DealFilter) {
    deals(first: $n, filter: $filter) { nodes { organization { persons(first: $n) { openDeals(first: $n) { id } } } } } }`;
  const codeOf = async (variables: object) => (await service.ask(query, variables)).errors?.[0]?.extensions.code;
  expect(await codeOf({ n: 50, filter: { nothing: 1 } })).toBe("BAD_USER_INPUT");
  expect(await codeOf({ n: 50, filter: {} })).toBe("OPERATION_TOO_COSTLY");
  expect(await codeOf({ n: 5, filter: {} })).toBeUndefined();
  expect(await codeOf({ n: 50 })).toBe("OPERATION_TOO_COSTLY");
  expect(await codeOf({ n: 5 })).toBeUndefined();
});

test("fragments that spread each other 30 times over are refused, in no time", async () => {
  const wide = Array.from({ length: 11 }, (_, level) => {
    const next = level < 10 ? `...F${level + 1} `.repeat(30) : "__typename";
    return `fragment F${level} on Organization { ${next} }`;
  }).join(" ");
  const { status, errors } = await service.ask(`{ organization(id: "x") { ...F0 } } ${wide}`);
  expect([status, errors?.[0]?.extensions.code]).toEqual([400, "OPERATION_TOO_COSTLY"]);
});

test("nor do fragments that double each other in a mutation", async () => {
  const doubled = Array.from({ length: 150 }, (_, level) => {
    const next = level < 149 ? `...F${level + 1} ...F${level + 1}` : "disconnect { __typename }";
    return `fragment F${level} on Mutation { ${next} }`;
  }).join(" ");
  const answer = await service.ask(`mutation { ...F0 } ${doubled}`);
  expect(answer.errors?.[0]?.extensions.code).toBe("OPERATION_TOO_COSTLY");
});

test("a long text in place of an e-mail address is refused without work that grows with its square", async () => {
  const query = "query ($email: String!) { persons(email: $email) { nodes { id } } }";
  for (const email of [`a${" ".repeat(400_000)}b`, `mailto:${"?".repeat(400_000)}\nx`]) {
    const answer = await service.ask(query, { email });
    expect(answer.errors?.[0]?.extensions.code).toBe("BAD_USER_INPUT");
  }
});

test("a subscription is measured like a query", async () => {
  const aliases = Array.from({ length: 31 }, (_, i) => `a${i}: state`).join(" ");
  const watching = await subscribe(service.url, `subscription { connectionStatusChanged { ${aliases} } }`);
  await expect(watching.closed).resolves.toMatchObject({ reason: expect.stringContaining("TOO_MANY_ALIASES") });
  await watching.end();
});

test.each([
  ["a field that is read from the CRM at every event", "connectionStatusChanged { fields(entity: DEAL) { key } }"],
  [
    "more than an event is for",
    "connectionStatusChanged { sync { last { steps { requests } gaps { code } } current { steps { requests } gaps { code } } gaps { code } } fieldMappings { fieldKey } fields(entity: DEAL) { options { id } } }",
  ],
])("a subscription with %s is refused", async (_title, selection) => {
  const watching = await subscribe(service.url, `subscription { ${selection} }`);
  await expect(watching.closed).resolves.toMatchObject({ reason: expect.stringContaining("OPERATION_TOO_COSTLY") });
  await watching.end();
});

test("sockets of a user and of a tenant are counted while they are open; one too many is told so, and others are not", () => {
  const seats = new Seats({ ofTenant: 3, ofUser: 2 });
  const told: string[] = [];
  const socket = (readyState = 1) =>
    Object.assign(new EventEmitter(), {
      readyState,
      OPEN: 1 as const,
      proven: () => undefined,
      turnAway: (reason: string) => void told.push(reason),
    }) as unknown as BoundedSocket;
  const take = (tenantId: number, userId: string, one = socket()) => seats.take({ tenantId, userId }, one);
  const first = socket();
  expect([take(1, "anna", first), take(1, "anna"), take(1, "anna")]).toEqual([true, true, false]);
  expect([take(2, "anna"), take(1, "ben"), take(1, "cara")]).toEqual([true, true, false]);
  expect(told).toEqual(["user_sockets", "tenant_sockets"]);
  expect(take(3, "anna", socket(3))).toBe(false);
  first.emit("close");
  expect([take(1, "anna"), take(1, "anna")]).toEqual([true, false]);
});

test("a socket that sends a query is told where to send it", async () => {
  const watching = await subscribe(service.url, "{ viewer { userId } }");
  await expect(watching.closed).resolves.toMatchObject({ reason: expect.stringContaining("SUBSCRIPTIONS_ONLY") });
  await watching.end();
});

async function post(body: string | Buffer, headers: Record<string, string>) {
  const answer = await request(`${service.url}/graphql`, {
    method: "POST",
    headers: { authorization: `Bearer ${await tokenFor()}`, ...headers },
    body,
  });
  return { status: answer.statusCode, body: await answer.body.text() };
}

const QUERY = JSON.stringify({ query: "{ viewer { userId } }" });

test("only POST with JSON is served", async () => {
  expect((await post(QUERY, { "content-type": "text/plain" })).status).toBe(415);
  expect((await post(QUERY, { "content-type": "application/x-www-form-urlencoded" })).status).toBe(415);
  expect((await post(QUERY, { "content-type": "multipart/form-data; boundary=x" })).status).toBe(415);
  expect((await request(`${service.url}/graphql?query=%7Bviewer%7BuserId%7D%7D`)).statusCode).toBe(405);
  expect((await post(QUERY, { "content-type": "application/json" })).status).toBe(200);
});

test("a compressed body is refused, and so is one that says that it is compressed", async () => {
  const as = (encoding: string) => ({ "content-type": "application/json", "content-encoding": encoding });
  for (const body of [QUERY, gzipSync(QUERY)]) {
    const answer = await post(body, as("gzip"));
    const [error] = JSON.parse(answer.body).errors;
    expect([answer.status, error.extensions.code]).toEqual([415, "UNSUPPORTED_MEDIA_TYPE"]);
    expect(error.message).toContain("not compressed");
  }
  expect((await post(QUERY, as("identity"))).status).toBe(200);
});

test("a body over the limit, one that is no JSON and a batch are refused with a clear answer in the form of GraphQL", async () => {
  const large = JSON.stringify({ query: "{ viewer { userId } }", variables: { x: "x".repeat(600_000) } });
  const json = { "content-type": "application/json" };
  for (const [body, status, code] of [
    [large, 413, "BODY_TOO_LARGE"],
    ["{", 400, "BAD_REQUEST"],
    [`[${QUERY},${QUERY}]`, 400, "BAD_REQUEST"],
  ] as const) {
    const answer = await post(body, json);
    expect([answer.status, JSON.parse(answer.body).errors[0].extensions.code]).toEqual([status, code]);
  }
  // Seen red: "Missing query.", which sends whoever batches to look for what is there.
  const batch = await post(`[${QUERY},${QUERY}]`, json);
  expect(JSON.parse(batch.body).errors[0].message).toBe("Send one operation a request.");
});

test("without introspection the schema is not told", async () => {
  const closed = await startService(simulator, database, { roles: new Set(["api"]), introspection: false });
  const answer = await closed.ask("{ __schema { queryType { name } } }");
  expect([answer.status, answer.errors?.[0]?.extensions.code]).toEqual([400, "GRAPHQL_VALIDATION_FAILED"]);
  expect(dataOf(await closed.ask("{ viewer { userId } }"))).toEqual({ viewer: { userId: "anna" } });
  await closed.stop();
});

test("without introspection no error tells which names resemble a wrong one", async () => {
  const closed = await startService(simulator, database, { roles: new Set(["api"]), introspection: false });
  const wrong: [query: string, variables?: object][] = [
    ["{ viewr { userId } }"],
    ["{ viewer { userIdd } }"],
    ["{ viewer { ... on Dealx { id } } }"],
    ["{ deals(firs: 1) { nodes { id } } }"],
    ["{ deals(orderBy: VALU_DESC) { nodes { id } } }"],
    ["{ deals(filter: { statuss: [OPEN] }) { nodes { id } } }"],
    ["query ($filter: DealFiltr) { deals(filter: $filter) { nodes { id } } }"],
    ["query ($filter: DealFilter) { deals(filter: $filter) { nodes { id } } }", { filter: { statuss: ["OPEN"] } }],
    ["query ($status: [DealStatus!]) { deals(filter: { status: $status }) { nodes { id } } }", { status: ["OPENN"] }],
    ["mutation { recordMeetin { code } }"],
  ];
  for (const [query, variables] of wrong) {
    const told = (await service.ask(query, variables)).errors?.map(({ message }) => message).join();
    const kept = (await closed.ask(query, variables)).errors?.map(({ message }) => message).join();
    expect({ query, told, kept }).toEqual({
      query,
      told: expect.stringContaining("Did you mean"),
      kept: expect.not.stringContaining("Did you mean"),
    });
  }
  const watching = await subscribe(closed.url, "subscription { connectionStatusChangd { state } }");
  expect((await watching.closed).reason).toContain("Cannot query field");
  expect((await watching.closed).reason).not.toContain("Did you mean");
  await closed.stop();
});

// Seen red: it kept its turn, and after 32 of them nobody of the tenant was answered by that process.
test("an operation that never ends is called off in the end, and its turn is another's", async () => {
  const limits = new OperationLimits();
  const context = { actor: { tenantId: 1 }, deadline: new AbortController() } as OperationContext;
  const [operation] = parse("{ viewer { plan } }").definitions;
  const asked = { operation, variables: {}, size: { cost: 1 } } as Operation;
  jest.useFakeTimers({ doNotFake: ["performance", "nextTick", "setImmediate", "queueMicrotask"] });
  const never = Array.from({ length: 32 }, () => limits.inTurn(asked, context, () => new Promise(() => {})));
  const ended = Promise.allSettled(never);
  await jest.advanceTimersByTimeAsync(70_000); // What waits, waits for 15 seconds.
  const next = limits.inTurn(asked, context, async () => "answered");
  await jest.advanceTimersByTimeAsync(5_000);
  jest.useRealTimers();
  expect(await next).toBe("answered");
  expect(await ended).toEqual(
    never.map(() => ({ status: "rejected", reason: expect.objectContaining({ code: "DEADLINE_EXCEEDED" }) })),
  );
});

test.each([
  ["in its variables", "mutation ($input: RecordMeetingInput!) { recordMeeting(input: $input) { __typename } }", true],
  ["in its document", `mutation { recordMeeting(input: INPUT) { __typename } }`, false],
])(
  "large meetings %s are recorded one after the other, and a small one of the same tenant passes",
  async (_where, query, inVariables) => {
    const meeting = (externalId: string, count: number) => ({
      externalId,
      title: "Town hall",
      startsAt: "2026-11-21T09:00:00Z",
      ownerEmail: "anna@seller.example",
      attendees: Array.from({ length: count }, (_, index) => ({ email: `p${index}@buyer.example` })),
    });
    const ended: string[] = [];
    const record = async (name: string, count: number) => {
      const input = meeting(`heavy-${inVariables}-${name}`, count);
      const literal = JSON.stringify(input).replace(/"(\w+)":/g, "$1:");
      const answer = await (inVariables ? service.ask(query, { input }) : service.ask(query.replace("INPUT", literal)));
      ended.push(name);
      return dataOf(answer);
    };
    await record("held", 1);
    const holder = database.dataSource.createQueryRunner();
    await holder.startTransaction();
    const large: Promise<unknown>[] = [];
    try {
      const held = [await database.tenantId("acme"), `heavy-${inVariables}-held`];
      await holder.query("SELECT 1 FROM meeting WHERE tenant_id = $1 AND external_id = $2 FOR UPDATE", held);
      large.push(record("held", 120));
      await until("the first large one is held up", async () => (await database.lockWaits()).length > 0);
      large.push(...["b", "c"].map((name) => record(name, 120)));
      for (const name of ["small", "next", "last"]) await record(name, 1);
      expect(ended).toEqual(["held", "small", "next", "last"]);
    } finally {
      await holder.rollbackTransaction();
      await holder.release();
      await Promise.allSettled(large);
    }
    await Promise.all(large);
    expect(ended[4]).toBe("held");
  },
);
