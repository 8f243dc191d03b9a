import { createConnection } from "node:net";
import { tokenFor } from "../support/actors";
import { END_LISTENERS } from "../support/database";
import { type Subscription, subscribe, subscribeBriefly } from "../support/sockets";
import { addRunJobs, connect, dataOf, recordMeeting, syncAgain, syncEnds, until } from "../support/stories";
import { useService } from "../support/world";

// Seen red with: an upgrade's address parsed outside of every request; missed events told to nobody; all told so by a stop.

const { simulator, database, service, serve } = useService({ deals: 10 });
const other = serve({ roles: ["api"] });

const STATUS = "subscription { connectionStatusChanged { state boundEmail reauthorizationReason trouble { code } } }";
interface Status {
  connectionStatusChanged: {
    state: string;
    boundEmail: string | null;
    reauthorizationReason: string | null;
    trouble: { code: string } | null;
  };
}
const statesOf = ({ results }: Subscription<Status>) =>
  results.map(({ connectionStatusChanged }) => connectionStatusChanged.state);
const watch = (tenant: string, at = other) => subscribe<Status>(at.url, STATUS, { as: { tenant, role: "member" } });
const DISCONNECT = "mutation { disconnect { ... on DisconnectSuccess { connection { state } } } }";

test("the present state comes first, then every change, from another process than the one that changes it", async () => {
  const watching = await watch("watched");
  await until("the present state arrives", async () => watching.results.length === 1);
  expect(watching.results[0]).toEqual({
    connectionStatusChanged: { state: "NOT_CONNECTED", boundEmail: null, reauthorizationReason: null, trouble: null },
  });
  await connect(service, simulator, { tenant: "watched" });
  await until("the connection is seen", async () => statesOf(watching).at(-1) === "CONNECTED");
  await syncEnds(service, { tenant: "watched" });
  dataOf(await service.ask(DISCONNECT, {}, { tenant: "watched" }));
  await until("the end is seen", async () => statesOf(watching).at(-1) === "NOT_CONNECTED");
  await watching.end();
});

// Seen red: what was said at the consent stayed for as long as the connection.
test("the user who authorized is shown as the CRM names that user by now, and who watches is told", async () => {
  const as = { tenant: "renamed" };
  await connect(service, simulator, as);
  await syncEnds(service, as);
  const watching = await watch(as.tenant);
  const userId = simulator.company.stories.singleDeal.ownerId;
  const { name, email } = { ...simulator.company.users.get(userId) };
  simulator.control.change("user", userId, { name: "Wilhelmine Neu", email: "wilhelmine@neu.example" });
  await syncAgain(service, database, as);
  await until("the address is told", async () => {
    const { connectionStatusChanged: told } = watching.results.at(-1) ?? {};
    return told?.boundEmail === "wilhelmine@neu.example";
  });
  const { connection } = dataOf(await service.ask("{ connection { boundUserName } }", {}, as));
  expect(connection).toEqual({ boundUserName: "Wilhelmine Neu" });
  simulator.control.change("user", userId, { name, email });
  await watching.end();
});

// Seen red: links into the CRM led to an address that was no longer the company's, until somebody authorized again.
test("the company is shown, and its records linked to, as the CRM calls it by now, and who watches is told", async () => {
  const as = { tenant: "moved" };
  await connect(service, simulator, as);
  await syncEnds(service, as);
  const watching = await subscribe<{ connectionStatusChanged: object }>(
    other.url,
    "subscription { connectionStatusChanged { companyName companyDomain } }",
    { as },
  );
  const userId = simulator.company.stories.singleDeal.ownerId;
  const moved = { id: simulator.company.id, name: "Southwind", domain: "southwind" };
  simulator.control.mistake(userId, { userId, company: moved }, "living");
  await syncAgain(service, database, as);
  const told = { companyName: "Southwind", companyDomain: "southwind" };
  await until("the name is told", async () => watching.results.length > 1);
  expect(watching.results.map((result) => result.connectionStatusChanged)).toContainEqual(told);
  const links = "{ connection { companyName companyDomain } deals(first: 1) { nodes { crmUrl } } }";
  const { connection, deals } = dataOf(
    await service.ask<{ connection: object; deals: { nodes: { crmUrl: string }[] } }>(links, {}, as),
  );
  expect(connection).toEqual(told);
  expect(deals.nodes.every(({ crmUrl }) => crmUrl.startsWith("https://southwind.pipedrive.com/"))).toBe(true);
  simulator.control.mistake(userId, { userId }, "living");
  await watching.end();
});

test("another tenant's changes wake nobody", async () => {
  const watching = await watch("quiet-tenant");
  await until("the present state arrives", async () => watching.results.length === 1);
  const witness = await watch("loud-tenant");
  await connect(service, simulator, { tenant: "loud-tenant" });
  await until("the other tenant's change is seen by its own", async () => statesOf(witness).at(-1) === "CONNECTED");
  expect(watching.results).toHaveLength(1);
  await Promise.all([watching.end(), witness.end()]);
});

test("a change while the listening session is down is seen after it is back", async () => {
  const watching = await watch("outage");
  await until("the present state arrives", async () => watching.results.length === 1);
  await database.query(END_LISTENERS);
  await connect(service, simulator, { tenant: "outage" });
  await until("the change is seen all the same", async () => statesOf(watching).at(-1) === "CONNECTED");
  await watching.end();
});

const EVENTS = ["meetingMatched { id }", "silenceChanged { id }", "writeSettled { __typename }"];
const STATES = ["connectionStatusChanged { id state }", "syncProgressed { id state }"];
const listenTo = (fields: readonly string[]) =>
  Promise.all(fields.map((field) => subscribe<unknown>(other.url, `subscription { ${field} }`)));

test("who may have missed events is told so and hears what comes, states come again; a stop of the calls misses none", async () => {
  await connect(service, simulator, {});
  await syncEnds(service, {});
  const listening = await listenTo(EVENTS);
  await Promise.all(listening.map((one) => one.listens()));
  await database.query("SELECT pg_notify('crm_stop_changed', '')");
  await Promise.all(listening.map((one) => one.listens()));
  for (const { results } of listening) expect(results).toEqual([]);
  const states = await listenTo(STATES);
  await until("the present state of each comes", async () => states.every(({ results }) => results.length > 0));
  const before = states.map(({ results }) => results.length);
  await database.query(END_LISTENERS);
  await until("each is told", async () => listening.every(({ results }) => results.length > 0));
  for (const { results } of listening) expect(results).toMatchObject([[{ extensions: { code: "EVENTS_MISSED" } }]]);
  await until("each state comes again", async () =>
    states.every(({ results }, at) => results.length > (before[at] ?? 0)),
  );
  for (const { results } of states) expect(results).toEqual(results.map(() => results[0]));
  await recordMeeting(service, [simulator.company.stories.singleDeal.email]);
  await until("what comes is told", async () => listening.some(({ results }) => results.length > 1));
  await Promise.all([...listening, ...states].map((one) => one.end()));
});

// Seen red: a fault of our own, to each subscriber and in the log for somebody to act on; of a write nobody was told anything.
test("an event that another release tells of in other words is one that was missed", async () => {
  const listening = await listenTo(EVENTS);
  await Promise.all(listening.map((one) => one.listens()));
  const told = `${await database.tenantId("acme")} {"id":7}`;
  for (const channel of ["meeting_matched", "silence_changed", "write_settled"])
    await database.query("SELECT pg_notify($1, $2)", [channel, told]);
  await until("each is told", async () => listening.every(({ results }) => results.length > 0));
  for (const { results } of listening) expect(results).toMatchObject([[{ extensions: { code: "EVENTS_MISSED" } }]]);
  await Promise.all(listening.map((one) => one.end()));
});

test("a deactivated user stops the syncing, keeps the copy, and the subscriber learns why", async () => {
  const tenant = "deactivated";
  const userId = simulator.company.stories.singleDeal.ownerId;
  await connect(service, simulator, { tenant });
  await syncEnds(service, { tenant });
  const before = await database.query(
    "SELECT count(*) AS n FROM deal d JOIN connection c USING (tenant_id, copy_id) WHERE c.tenant_id = (SELECT id FROM tenant WHERE external_id = $1)",
    [tenant],
  );
  const watching = await watch(tenant);
  simulator.control.change("user", userId, { active_flag: false });
  try {
    await database.query(
      `WITH old AS (SELECT * FROM sync_run WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1))
       UPDATE sync_run r SET state = 'QUEUED', finished_at = NULL FROM old WHERE r.id = old.id AND r.tenant_id = (SELECT id FROM tenant WHERE external_id = $1)`,
      [tenant],
    );
    await addRunJobs(database);
    await until("the state changes", async () => statesOf(watching).at(-1) === "NEEDS_REAUTHORIZATION");
  } finally {
    simulator.control.change("user", userId, { active_flag: true });
  }
  expect(watching.results.at(-1)?.connectionStatusChanged.reauthorizationReason).toBe("GRANT_REVOKED");
  const run = await syncEnds(service, { tenant });
  expect(run).toMatchObject({ state: "FAILED", error: { code: "NEEDS_REAUTHORIZATION" } });
  expect(
    await database.query(
      "SELECT count(*) AS n FROM deal d JOIN connection c USING (tenant_id, copy_id) WHERE c.tenant_id = (SELECT id FROM tenant WHERE external_id = $1)",
      [tenant],
    ),
  ).toEqual(before);
  await watching.end();
});

test.each([
  ["no token", "", undefined, 4403],
  ["a token that has ended", "ended", undefined, 4403],
  ["a foreign origin", "", "https://evil.example", 1006],
])("a socket with %s is refused", async (_case, kind, origin, code) => {
  const token = origin ? await tokenFor() : kind ? await tokenFor({}, Math.floor(Date.now() / 1000) - 60) : "none";
  const { closed, results } = await subscribe<Status>(service.url, STATUS, { token, origin });
  expect((await closed).code).toBe(code);
  expect(results).toEqual([]);
});

test.each(["the service's own", "that of the app's redirect address"])(
  "a browser's origin is accepted where it is %s",
  async (which) => {
    const origin = which.startsWith("the") ? service.url : new URL(simulator.redirectUrl).origin;
    const watching = await subscribe<Status>(service.url, STATUS, { origin });
    await until("the present state arrives", async () => watching.results.length === 1);
    await watching.end();
  },
);

test("a socket ends with its token: 4403", async () => {
  const watching = await subscribeBriefly<Status>(service.url, STATUS);
  expect((await watching.closed).code).toBe(4403);
});

test.each(["{ viewer { userId } }", "mutation { disconnect { __typename } }", "{ __schema { types { name } } }"])(
  "a socket serves subscriptions only, not %s",
  async (document) => {
    const { closed, results } = await subscribe<Status>(service.url, document);
    expect((await closed).reason).toContain("Send queries and mutations by POST");
    expect(results).toEqual([]);
  },
);

test.each(["//", "/elsewhere", "/graphql/..", "*"])("an upgrade of %s is refused and harms nobody", async (path) => {
  const { hostname, port } = new URL(service.url);
  const socket = createConnection({ host: hostname, port: Number(port) });
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
  const answer = await new Promise((resolve) => socket.once("data", (data) => resolve(String(data).split("\r\n")[0])));
  expect(answer).toBe("HTTP/1.1 404 Not Found");
  socket.destroy();
  expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
});

test("a page's own socket behind a proxy that drops the port from Host is refused with what the proxy must do", async () => {
  const { hostname, port } = new URL(service.url);
  const socket = createConnection({ host: hostname, port: Number(port) });
  const upgrade = "Connection: Upgrade\r\nUpgrade: websocket";
  socket.write(`GET /graphql HTTP/1.1\r\nHost: ${hostname}\r\nOrigin: ${service.url}\r\n${upgrade}\r\n\r\n`);
  const parts: string[] = [];
  for await (const part of socket.setEncoding("utf8")) parts.push(part);
  expect(parts.join("")).toMatch(/^HTTP\/1\.1 403 Forbidden\r\n.*must pass Host on as it comes\.\n$/s);
});

test("a document with faults is a clear error on the socket, without a stack", async () => {
  const { closed } = await subscribe<Status>(service.url, "subscription { nothingOfTheKind }");
  expect((await closed).reason).toContain("nothingOfTheKind");
});
