import { once } from "node:events";
import { GRAPHQL_TRANSPORT_WS_PROTOCOL as PROTOCOL } from "graphql-ws";
import { request } from "undici";
import WebSocket from "ws";
import { CLOSE_CODES, ERROR_CODES } from "../../src/server/errors";
import { tokenFor } from "../support/actors";
import { subscribe } from "../support/sockets";
import { useService } from "../support/world";

const { service } = useService({ deals: 10, roles: ["api"] });

const operation = (query: string, more: object = {}) => JSON.stringify({ query, ...more });
const nested = (depth: number) =>
  `{ deal(id: "x") ${"{ organization { openDeals ".repeat(depth)}{ id }${" } }".repeat(depth)} }`;
const NOTES =
  "query ($n: Int) { persons(first: $n) { nodes { openDeals(first: $n) { recentNotes(first: 50) { html text } } } } }";

/** What a client does that is answered with the code. */
const CAUSES: Record<string, [body: string, headers?: Record<string, string>]> = {
  UNAUTHENTICATED: [operation("{ viewer { userId } }"), { authorization: "Bearer x" }],
  BAD_REQUEST: ["{"],
  UNSUPPORTED_MEDIA_TYPE: ["{ viewer { userId } }", { "content-type": "application/graphql" }],
  BODY_TOO_LARGE: [operation(`{ viewer { userId } } #${"x".repeat(512 * 1024)}`)],
  GRAPHQL_PARSE_FAILED: [operation("{ viewer {")],
  GRAPHQL_VALIDATION_FAILED: [operation("{ nothing }")],
  OPERATION_RESOLUTION_FAILURE: [operation("query A { viewer { userId } }", { operationName: "B" })],
  PERSISTED_QUERY_NOT_SUPPORTED: [
    JSON.stringify({ extensions: { persistedQuery: { version: 1, sha256Hash: "0".repeat(64) } } }),
  ],
  BAD_USER_INPUT: [operation(NOTES, { variables: { n: "many" } })],
  DOCUMENT_TOO_COMPLEX: [operation(`{ ${"viewer { userId } ".repeat(450)} }`)],
  DOCUMENT_TOO_DEEP: [operation(nested(6))],
  TOO_MANY_ALIASES: [operation(`{ ${Array.from({ length: 31 }, (_, i) => `a${i}: viewer { userId }`).join(" ")} }`)],
  TOO_MANY_VALUES: [operation(NOTES, { variables: { n: 1, more: Array(5_001).fill(0) } })],
  OPERATION_TOO_COSTLY: [operation(NOTES, { variables: { n: 50 } })],
};

const ACCEPTED = "application/graphql-response+json";
const TYPE = `${ACCEPTED}; charset=utf-8`;

// Seen red: bodies that Fastify refused were told as JSON, and Apollo Client reads no errors there beside another status than 200.
test.each(Object.keys(CAUSES))(
  "%s comes with the status that its line tells, in the type that is accepted",
  async (code) => {
    const [body, headers] = CAUSES[code] ?? [];
    const answer = await request(`${service.url}/graphql`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: ACCEPTED,
        authorization: `Bearer ${await tokenFor()}`,
        ...headers,
      },
      body,
    });
    expect(answer.headers["content-type"]).toBe(TYPE);
    const { errors } = (await answer.body.json()) as { errors: { extensions: { code: string } }[] };
    expect([errors[0]?.extensions.code, answer.statusCode]).toEqual([code, ERROR_CODES.get(code)?.[0]]);
  },
);

test("an argument that does not fit one field leaves the others their data, with 200", async () => {
  const { status, data, errors } = await service.ask("{ viewer { userId } deals(first: 0) { totalCount } }");
  expect([status, data, errors?.[0]?.extensions.code]).toEqual([200, null, "BAD_USER_INPUT"]);
});

// Seen red: 404 with a body that no client of GraphQL reads.
test.each(["GET", "HEAD", "PUT", "PATCH", "DELETE"] as const)(
  "%s is answered with 405, and with what is allowed",
  async (method) => {
    const { statusCode, headers, body } = await request(`${service.url}/graphql?query={viewer{userId}}`, {
      method,
      headers: { accept: ACCEPTED },
      ...(method !== "GET" &&
        method !== "HEAD" && { headers: { accept: ACCEPTED, "content-type": "text/plain" }, body: "{" }),
    });
    expect([statusCode, headers.allow, headers["content-type"]]).toEqual([405, "POST", TYPE]);
    if (method === "HEAD") return body.dump();
    expect(await body.json()).toMatchObject({ errors: [{ extensions: { code: "METHOD_NOT_ALLOWED" } }] });
    expect(ERROR_CODES.get("METHOD_NOT_ALLOWED")?.[0]).toBe(405);
  },
);

// Seen red: "Send operations by POST", for which nobody looked at nginx.
test("an upgrade that a proxy has taken for a GET is told what the proxy must pass on", async () => {
  const headers = { "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==", "sec-websocket-version": "13" };
  const { statusCode, body } = await request(`${service.url}/graphql`, { headers });
  expect([statusCode, await body.text()]).toEqual([405, expect.stringContaining("pass Upgrade and Connection on")]);
});

const FIELDS = "{ connection { fields(entity: DEAL) { key } } }";
// Seen red: these come as errors, and had no line.
test.each([
  ["NOT_CONNECTED", FIELDS, {}],
  ["NOT_ALLOWED_FOR_ROLE", "{ auditEvents { nodes { at } } }", { role: "member" }],
])("the refusal %s of a field has its line among the errors", async (code, query, as) => {
  const { status, errors } = await service.ask(query, {}, { tenant: "newcomer", ...as });
  expect([errors?.[0]?.extensions.code, status]).toEqual([code, ERROR_CODES.get(code)?.[0]]);
});

test("what only a socket answers has no status", async () => {
  const { closed, end } = await subscribe(service.url, "{ viewer { userId } }");
  expect((await closed).reason).toContain("SUBSCRIPTIONS_ONLY");
  await end();
  expect(ERROR_CODES.get("SUBSCRIPTIONS_ONLY")?.[0]).toBeNull();
});

const init = async () => ({ type: "connection_init", payload: { authorization: `Bearer ${await tokenFor()}` } });
const begin = {
  type: "subscribe",
  id: "one",
  payload: { query: "subscription { connectionStatusChanged { state } }" },
};

/** What a client sends, and with which code its socket is closed. */
const CLOSES: [code: number, send: () => Promise<object[]>][] = [
  [4400, async () => [{ type: "nothing" }]],
  [4401, async () => [begin]],
  [4403, async () => [{ type: "connection_init", payload: { authorization: "Bearer x" } }]],
  [4409, async () => [await init(), begin, begin]],
  [4429, async () => [await init(), await init()]],
];

// Seen red: it had no line.
test("a socket of no protocol is closed with 4406, which has its line", async () => {
  const [code] = await once(new WebSocket(`${service.url.replace("http", "ws")}/graphql`), "close");
  expect([code, CLOSE_CODES.has(code)]).toEqual([4406, true]);
});

test.each(CLOSES)("a socket is closed with %i, which has its line", async (code, send) => {
  const messages = await send();
  const socket = new WebSocket(`${service.url.replace("http", "ws")}/graphql`, PROTOCOL);
  const closed = once(socket, "close");
  await once(socket, "open");
  for (const message of messages) {
    socket.send(JSON.stringify(message));
    // A subscription needs the answer to its `connection_init`.
    if (messages.length > 2 && socket.readyState === socket.OPEN) await Promise.race([once(socket, "message"), closed]);
  }
  expect([(await closed)[0], CLOSE_CODES.has(code)]).toEqual([code, true]);
});
