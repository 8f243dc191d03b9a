import { request } from "undici";
import WebSocket from "ws";
import { tokenFor } from "../support/actors";
import { useService } from "../support/world";

const FRONT = "https://front.example";
const { simulator, service } = useService({
  deals: 10,
  roles: ["api"],
  config: { allowedOrigins: [FRONT, "http://localhost:5173"], production: true },
});

const QUERY = JSON.stringify({ query: "{ viewer { userId } }" });

interface Sent {
  method?: "OPTIONS" | "POST" | "GET";
  path?: string;
  origin?: string;
  body?: string;
  headers?: Record<string, string | undefined>;
}

async function send({ method = "POST", path = "/graphql", origin, body, headers = {} }: Sent) {
  const answer = await request(`${service.url}${path}`, {
    method,
    headers: { ...(origin !== undefined && { origin }), ...headers },
    body,
  });
  return { status: answer.statusCode, headers: answer.headers, text: await answer.body.text() };
}

/** Apollo Client adds its name, and Sentry or OpenTelemetry their traces. */
const HEADERS = "authorization,content-type,apollographql-client-name,traceparent,baggage";

const preflight = (origin: string, method = "POST", path = "/graphql") =>
  send({
    method: "OPTIONS",
    path,
    origin,
    headers: {
      "access-control-request-method": method,
      "access-control-request-headers": HEADERS,
    },
  });

const json = { "content-type": "application/json" };
const withToken = async () => ({ ...json, authorization: `Bearer ${await tokenFor()}` });

/** @returns the status of an upgrade that is refused, or 101 */
function upgrade(origin: string | undefined, path = "/graphql"): Promise<number | undefined> {
  const socket = new WebSocket(`${service.url.replace("http", "ws")}${path}`, "graphql-transport-ws", { origin });
  return new Promise((resolve, reject) => {
    socket.once("open", () => {
      socket.terminate();
      resolve(101);
    });
    socket.once("unexpected-response", (_request, answer) => {
      answer.destroy();
      resolve(answer.statusCode);
    });
    socket.once("error", reject);
  });
}

const own = () => service.url;
const redirect = () => new URL(simulator.redirectUrl).origin;
/** Who asks, whether a page of it may read answers, and what its socket is answered. */
const ORIGINS: [who: string, origin: () => string, mayRead: boolean, socket: number][] = [
  ["a front end that is allowed", () => FRONT, true, 101],
  ["a second one, with a port", () => "http://localhost:5173", true, 101],
  ["the origin of the redirect address", redirect, true, 101],
  // A browser asks its own origin nothing beforehand, and reads without being allowed to.
  ["the service's own origin", own, false, 101],
  ["a foreign origin", () => "https://evil.example", false, 403],
  ["another scheme of an allowed one", () => "http://front.example", false, 403],
  ["another port of an allowed one", () => `${FRONT}:8443`, false, 403],
  ["a host that begins with an allowed one", () => `${FRONT}.evil.example`, false, 403],
  ["a host below an allowed one", () => "https://a.front.example", false, 403],
  ["an allowed one with an end slash", () => `${FRONT}/`, false, 403],
  ["a frame without an origin", () => "null", false, 403],
  ["an origin that is a star", () => "*", false, 403],
];

describe.each(ORIGINS)("%s", (_who, originOf, mayRead, socket) => {
  const allowed = () => (mayRead ? originOf() : undefined);
  const expectAnswer = ({ headers }: Awaited<ReturnType<typeof send>>) => {
    expect(headers["access-control-allow-origin"]).toBe(allowed());
    expect(headers).not.toHaveProperty("access-control-allow-credentials");
    expect(headers.vary).toContain("Origin");
  };

  test.each(["POST", "GET", "PUT", "DELETE"])("asks beforehand whether it may %s", async (method) => {
    const answer = await preflight(originOf(), method);
    expectAnswer(answer);
    expect([answer.status, answer.text]).toEqual([204, ""]);
    expect(answer.headers["access-control-allow-methods"]).toBe("POST");
    // Seen red: a front end that traces its requests, or tells Apollo's name, could send nothing.
    expect(answer.headers["access-control-allow-headers"]).toBe(HEADERS);
  });

  test("sends an operation with a token, with and without cookies", async () => {
    const headers = await withToken();
    for (const more of [{}, { cookie: "session=1" }]) {
      const answer = await send({ origin: originOf(), body: QUERY, headers: { ...headers, ...more } });
      expect([answer.status, JSON.parse(answer.text)]).toEqual([200, { data: { viewer: { userId: "anna" } } }]);
      expectAnswer(answer);
    }
  });

  test("reads refusals as it reads answers", async () => {
    expectAnswer(await send({ origin: originOf(), body: QUERY, headers: json }));
    expectAnswer(await send({ origin: originOf(), body: "{", headers: json }));
    expectAnswer(await send({ origin: originOf(), body: QUERY, headers: { "content-type": "text/plain" } }));
  });

  test("opens a socket", async () => {
    expect(await upgrade(originOf())).toBe(socket);
  });
});

test("a client that is no browser has no origin, and is let in by its token alone", async () => {
  const answer = await send({ body: QUERY, headers: await withToken() });
  expect([answer.status, answer.headers["access-control-allow-origin"]]).toEqual([200, undefined]);
  expect(await upgrade(undefined)).toBe(101);
});

test.each(["/healthz", "/", "/schema.graphql", "/elsewhere"])("%s is for no other origin", async (path) => {
  const asked = await preflight(FRONT, "GET", path);
  const read = await send({ method: "GET", path, origin: FRONT });
  expect(asked.status).toBe(404);
  for (const { headers } of [asked, read]) expect(headers).not.toHaveProperty("access-control-allow-origin");
});

const FORMS = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", undefined];

test.each(FORMS)("what a form can send as %s is no operation, whatever cookies come with it", async (type) => {
  const { authorization } = await withToken();
  const cookie = `token=${authorization.slice("Bearer ".length)}`;
  for (const more of [{ cookie }, { cookie, authorization }]) {
    const answer = await send({
      origin: FRONT,
      body: QUERY,
      headers: { ...more, ...(type !== undefined && { "content-type": type }) },
    });
    expect([answer.status, answer.text.includes('"data"')]).toEqual([415, false]);
  }
});

test("a token counts in the Authorization header alone: not in a cookie, the address or the body", async () => {
  const token = await tokenFor();
  const path = `/graphql?token=${token}&access_token=${token}`;
  const body = JSON.stringify({ ...JSON.parse(QUERY), token, authorization: `Bearer ${token}` });
  const headers = { ...json, cookie: `token=${token}; authorization=Bearer ${token}` };
  const answer = await send({ path, body, headers });
  expect(answer.status).toBe(401);
  expect(answer.text).toContain("UNAUTHENTICATED");
});

test("no answer sets a cookie", async () => {
  const answers = [await send({ body: QUERY, headers: await withToken() }), await send({ method: "GET", path: "/" })];
  for (const { headers } of answers) expect(headers).not.toHaveProperty("set-cookie");
});

test("GET / says where things are, to a program as JSON and to a browser as a page that loads nothing", async () => {
  const told = await send({ method: "GET", path: "/" });
  const { places } = JSON.parse(told.text) as { places: Record<string, string> };
  expect(Object.keys(places).sort()).toEqual(["/graphql", "/healthz", "/readyz", "/schema.graphql"]);
  const page = await send({ method: "GET", path: "/", headers: { accept: "text/html,*/*;q=0.8" } });
  expect(page.headers["content-type"]).toContain("text/html");
  expect(page.headers["content-security-policy"]).toContain("default-src 'none'");
  for (const place of Object.keys(places)) expect(page.text).toContain(`href="${place}"`);
});

test("GET /schema.graphql is the schema that is served", async () => {
  const { status, text, headers } = await send({ method: "GET", path: "/schema.graphql" });
  expect([status, headers["content-type"]]).toEqual([200, "text/plain; charset=utf-8"]);
  expect(text).toContain("\ntype Query {\n");
});
