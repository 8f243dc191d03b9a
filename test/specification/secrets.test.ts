import { randomBytes } from "node:crypto";
import { SignJWT } from "jose";
import { Client } from "pg";
import { Credentials } from "../../src/connections/credentials";
import { CONNECTION_CHANGED } from "../../src/database/between-processes";
import type { Database } from "../../src/database/database";
import { Keyring } from "../../src/platform/keyring";
import { enqueueRun } from "../../src/sync/schedule-rows";
import type { ActorClaims } from "../support/actors";
import { onServer } from "../support/database";
import { dumpDatabase, leaked } from "../support/dump";
import { post } from "../support/http";
import { type Program, startProgram } from "../support/processes";
import type { GraphQLAnswer, Service } from "../support/service";
import { completeConsent, dataOf, recordMeeting, startConsent, syncEnds, until } from "../support/stories";
import { useCrm } from "../support/world";

// Seen red with: the token, the code, the state, the client's credentials or the actor's bearer token in the log; the
// token endpoint's answer in an error's message; a token in a job's payload, in a notification, or unsealed in a row for
// a moment only; the place left out of the seal; the seal's tag not checked.

const canary = (name: string) => `canary-${name}-${randomBytes(16).toString("hex")}`;
const CLIENT_SECRET = canary("client");
const JWT_SECRET = canary("jwt-secret-of-32-bytes");
const PASSWORD = canary("password");
const ROLE = `crm_${randomBytes(6).toString("hex")}`;
const [FIRST, SECOND] = [randomBytes(32), randomBytes(32)];
const KEYS = `k1:${FIRST.toString("base64")},k2:${SECOND.toString("base64")}`;
const ROTATED = `k2:${SECOND.toString("base64")},k1:${FIRST.toString("base64")}`;

/** What must be seen nowhere: in no output, answer, row, job or notification. */
const secrets = new Set([CLIENT_SECRET, JWT_SECRET, PASSWORD]);
for (const key of [FIRST, SECOND])
  for (const form of ["base64", "hex", "latin1"] as const) secrets.add(key.toString(form));
/** The browser has to see these; nothing else has. */
const states = new Set<string>();

let db: Database;
let program: Program;
let service: Service;
let listener: Client;
let environment: Record<string, string>;
const outputs: string[] = [];
const bodies: string[] = [];
const notifications: string[] = [];

/** Every row that is ever written, also one that is gone again when the tables are read: on the node where it is written. */
const WITNESSED = "CREATE TABLE public.witnessed (text text); GRANT INSERT ON public.witnessed TO PUBLIC";
const WITNESS = `
  CREATE FUNCTION public.witness() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO public.witnessed VALUES (TG_TABLE_NAME || ' ' || to_jsonb(NEW)); RETURN NEW; END $$`;
const WITNESS_ALL = `
  DO $$ DECLARE name text; BEGIN
    FOR name IN SELECT format('%I.%I', schemaname, tablename) FROM pg_tables
      WHERE schemaname IN ('public', 'graphile_worker') AND tablename <> 'witnessed'
    LOOP EXECUTE 'CREATE TRIGGER witness AFTER INSERT OR UPDATE ON ' || name || ' FOR EACH ROW EXECUTE FUNCTION public.witness()';
    END LOOP; END $$`;

const { world, simulator, database } = useCrm({ deals: 10, clientSecret: CLIENT_SECRET });
beforeAll(async () => {
  await onServer(`CREATE ROLE ${ROLE} LOGIN SUPERUSER PASSWORD '${PASSWORD}'`);
  await database.queryNodes(WITNESSED);
  for (const sql of [WITNESS, WITNESS_ALL]) await database.query(sql);
  db = database.opened();
  const url = new URL(database.url.reveal());
  [url.username, url.password] = [ROLE, PASSWORD];
  listener = new Client({ connectionString: database.url.reveal() });
  await listener.connect();
  world.cleanup(() => listener.end());
  listener.on("notification", ({ channel, payload }) => notifications.push(`${channel} ${payload}`));
  for (const channel of [CONNECTION_CHANGED, "jobs:insert"]) await listener.query(`LISTEN "${channel}"`);
  const own = { DATABASE_URL: url.href, AUTH_JWT_SECRET: JWT_SECRET, ENCRYPTION_KEYS: KEYS, LOG_LEVEL: "trace" };
  environment = { ...world.environment, ...own };
  const started = await world.startProcess(own);
  program = started.program;
  service = {
    ...started.service,
    ask: (query, variables, as = {}) => ask(service.url, query, variables, "token" in as ? {} : as),
  };
});
// The database is gone by then.
afterAll(() => onServer(`DROP ROLE ${ROLE}`));
afterEach(() => simulator.control.clearFaults());

async function ask<T>(address: string, query: string, variables = {}, as: ActorClaims = {}): Promise<GraphQLAnswer<T>> {
  const token = await new SignJWT({ tenant: "acme", role: "admin", plan: "sales", sub: "anna", ...as })
    .setProtectedHeader({ alg: "HS256" })
    .setExpirationTime("1h")
    .sign(new TextEncoder().encode(JWT_SECRET));
  secrets.add(token);
  const { status, body } = await post(`${address}/graphql`, { query, variables }, { authorization: `Bearer ${token}` });
  bodies.push(JSON.stringify(body));
  return { status, ...(body as Omit<GraphQLAnswer<T>, "status">) };
}

async function authorize(as: ActorClaims) {
  const state = await startConsent(service, as);
  const code = simulator.control.approve();
  states.add(state);
  secrets.add(code);
  return completeConsent(service, { code, state }, as);
}

async function copyOf(tenant: string): Promise<number> {
  const query = "SELECT copy_id FROM connection WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)";
  const [row] = await database.query<{ copy_id: number | null }>(query, [tenant]);
  return row?.copy_id ?? 0;
}

/** Opens what is stored now, and has it looked for. @returns the version of the pair */
async function tokensOf(tenant = "acme"): Promise<{ version: number; access: string; refresh: string }> {
  const held = new Credentials(
    new Keyring([
      { id: "k1", key: FIRST },
      { id: "k2", key: SECOND },
    ]),
  );
  const found = await held.read(db.tenant(await database.tenantId(tenant)), await copyOf(tenant));
  const [access, refresh] = [found?.accessToken.reveal() ?? "", found?.refreshToken.reveal() ?? ""];
  for (const token of [access, refresh]) if (token) secrets.add(token);
  return { version: found?.version ?? 0, access, refresh };
}

async function runAgain(tenant = "acme") {
  const copyId = await copyOf(tenant);
  await db
    .tenant(await database.tenantId(tenant))
    .transaction((scope) => enqueueRun(scope, copyId, "FULL", new Date()));
  return syncEnds(service, { tenant });
}

const bound = () => simulator.company.stories.singleDeal.ownerId;

test("the whole story takes place, with renewals, refusals and failures that repeat tokens", async () => {
  expect(await authorize({})).toMatchObject({ connection: { state: "CONNECTED" } });
  await tokensOf();
  expect(await syncEnds(service)).toMatchObject({ state: "SUCCEEDED" });
  const { id } = await recordMeeting(service, [simulator.company.stories.singleDeal.email]);
  const briefing = "query ($id: ID!) { briefing(meetingId: $id) { deal { title customFields } persons { name } } }";
  expect(JSON.stringify(dataOf(await service.ask(briefing, { id })))).toContain("title");

  simulator.control.killAccessTokens(bound());
  expect(await runAgain()).toMatchObject({ state: "SUCCEEDED" });
  expect(await tokensOf()).toMatchObject({ version: 2 });

  const { access, refresh } = await tokensOf();
  const granted = { access_token: canary("access"), refresh_token: canary("refresh") };
  secrets.add(granted.access_token).add(granted.refresh_token);
  const echo = { success: false, message: `${refresh} ${access}`, ...granted };
  for (const fault of [
    { status: 503, body: echo },
    { status: 400, body: { ...echo, error: "invalid_client" } },
    { status: 200, body: JSON.stringify(granted).slice(0, -1) },
    { status: 302, body: echo, headers: { location: `${simulator.url}/?refresh_token=${refresh}` } },
    { kind: "reset" as const },
    { kind: "garbage" as const },
  ]) {
    const end = simulator.control.fail({ match: "/oauth/token", with: fault });
    simulator.control.killAccessTokens(bound());
    expect(await runAgain()).toMatchObject({ state: "FAILED" });
    end();
  }
  expect(await runAgain()).toMatchObject({ state: "SUCCEEDED" });
  expect(await tokensOf()).toMatchObject({ version: 3 });
});

test("calls whose answers echo their token, and connects that fail", async () => {
  const { access } = await tokensOf();
  for (const status of [200, 403, 500]) {
    // Seen red: of the header as much was logged as a shorter token has.
    const headers = { "x-correlation-id": access };
    secrets.add(access.slice(0, 90));
    const end = simulator.control.fail({
      match: "/api/v2/persons",
      with: { status, body: `{"error":"Bearer ${access}"}`, headers },
    });
    expect(await runAgain()).toMatchObject({ state: "FAILED" });
    end();
  }
  const granted = { access_token: canary("access"), refresh_token: canary("refresh") };
  secrets.add(granted.access_token).add(granted.refresh_token);
  const refused = { tenant: "refused" };
  for (const [grant, me] of [
    [
      { status: 200, body: granted },
      { status: 403, body: { error: granted.access_token } },
    ],
    [{ status: 200, body: { ...granted, access_token: `${granted.access_token}\n` } }, { status: 200 }],
    [{ status: 400, body: { ...granted, error: "invalid_client" } }, { status: 200 }],
    [{ status: 503, body: granted }, { status: 200 }],
  ] as const) {
    simulator.control.fail({ match: "/oauth/token", with: grant });
    simulator.control.fail({ match: "/api/v1/users/me", with: me });
    expect((await authorize(refused)).code).toMatch(/^(AUTHORIZATION_REJECTED|CRM_UNAVAILABLE)$/);
    simulator.control.clearFaults();
  }
  expect(
    (await completeConsent(service, { code: simulator.control.approve(), state: "forged" }, refused)).code,
  ).toBeDefined();
});

test("rotating the keys names none, and the service reads what was sealed anew", async () => {
  const { version } = await tokensOf();
  const rotation = startProgram("src/main.js", { ...environment, ENCRYPTION_KEYS: ROTATED }, ["rotate-keys"]);
  expect(await rotation.ended).toBe(0);
  outputs.push(rotation.output());
  expect(rotation.output()).toMatch(/Secrets of 1 tenant\(s\) sealed/);
  const query = "SELECT encode(substring(access_token FROM 3 FOR 2), 'escape') AS key FROM credential";
  expect(await database.query(query)).toEqual([{ key: "k2" }]);
  expect(await runAgain()).toMatchObject({ state: "SUCCEEDED" });
  expect(await tokensOf()).toMatchObject({ version });
});

test("a program that cannot start names its fault and no secret", async () => {
  const url = new URL(environment.DATABASE_URL ?? "");
  url.port = "9";
  const changes: Record<string, string>[] = [
    { DATABASE_URL: url.href },
    { PORT: "many" },
    { AUTH_JWKS_URL: "https://login.example.com/keys" },
  ];
  const failed = changes.map((change) => startProgram("src/main.js", { ...environment, ...change }));
  expect(await Promise.all(failed.map(({ ended }) => ended))).toEqual([1, 1, 1]);
  outputs.push(...failed.map(({ output }) => output()));
});

const flipped = (column: string, index: string) => `set_byte(${column}, ${index}, get_byte(${column}, ${index}) # 1)`;
const last = (column: string) => `length(${column}) - 1`;

async function othersTokens(): Promise<string> {
  const [held] = await database.query(
    `SELECT access_token::text AS access, refresh_token::text AS refresh
     FROM credential WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = 'other')`,
  );
  return `access_token = '${held?.access}', refresh_token = '${held?.refresh}'`;
}

test.each<[how: string, change: string | (() => Promise<string>)]>([
  ["another tenant's", othersTokens],
  ["the other column's", "access_token = refresh_token, refresh_token = access_token"],
  ["cut by a byte", `access_token = substring(access_token FROM 1 FOR ${last("access_token")}::int)`],
  ["cut within its tag", "access_token = substring(access_token FROM 1 FOR 20)"],
  ["empty", "access_token = ''"],
  ["longer by a byte", "access_token = access_token || '\\x00'"],
  ["flipped in its last bit", `access_token = ${flipped("access_token", last("access_token"))}`],
  ["flipped in its nonce", `access_token = ${flipped("access_token", "5")}`],
  ["flipped in its tag", `access_token = ${flipped("access_token", "20")}`],
  ["flipped in its key's id", `access_token = ${flipped("access_token", "3")}`],
  ["of another format", `access_token = ${flipped("access_token", "0")}`],
  ["plain", "access_token = 'v1u:plain'"],
])("a sealed token that is %s is refused: the run fails, and the CRM is sent nothing", async (_how, change) => {
  if ((await copyOf("other")) === 0) {
    await authorize({ tenant: "other" });
    await syncEnds(service, { tenant: "other" });
    await tokensOf("other");
  }
  const [kept] = await database.query<object>(
    "SELECT access_token, refresh_token FROM credential WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = 'acme')",
  );
  const set = typeof change === "string" ? change : await change();
  await database.query(
    `UPDATE credential SET ${set} WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = 'acme')`,
  );
  simulator.log.clear();
  const before = program.output().length;
  expect(await runAgain()).toMatchObject({ state: "FAILED", error: { code: "INTERNAL" } });
  expect(simulator.log.all()).toEqual([]);
  const said = () => program.output().slice(before);
  await until("the log says why", async () => said().includes("UnsealError"));
  expect(leaked(secrets, [said()])).toEqual([]);
  await database.query(
    "UPDATE credential SET access_token = $1, refresh_token = $2 WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = 'acme')",
    Object.values(kept ?? {}),
  );
});

test("a grant that the CRM has ended, another authorization, and the disconnect", async () => {
  expect(await runAgain()).toMatchObject({ state: "SUCCEEDED" });
  simulator.control.revoke(bound());
  expect(await runAgain()).toMatchObject({ state: "FAILED", error: { code: "NEEDS_REAUTHORIZATION" } });
  expect(await authorize({})).toMatchObject({ connection: { state: "CONNECTED" } });
  await tokensOf();
  await syncEnds(service);
  const forged = await new SignJWT({ sub: "eve", tenant: "acme", role: "owner", plan: "sales" })
    .setProtectedHeader({ alg: "HS256" })
    .setExpirationTime("1h")
    .sign(randomBytes(32));
  secrets.add(forged);
  const { status, body } = await post(
    `${service.url}/graphql`,
    { query: "{ viewer { plan } }" },
    { authorization: `Bearer ${forged}` },
  );
  expect(status).toBe(401);
  bodies.push(JSON.stringify(body));
  const copyId = await copyOf("acme");
  const disconnect = "mutation { disconnect { ... on DisconnectSuccess { remainsInCrm connection { state } } } }";
  expect(dataOf(await service.ask(disconnect))).toMatchObject({
    disconnect: { connection: { state: "NOT_CONNECTED" } },
  });
  await until("the copy is purged", async () => {
    return (await database.query("SELECT 1 FROM synced_copy WHERE id = $1", [copyId])).length === 0;
  });
  program.child.kill("SIGTERM");
  expect(await program.ended).toBe(0);
  outputs.push(program.output());
});

test("in all of this no secret was in an output, an answer, a row, a job or a notification", async () => {
  const written = (await database.queryNodes("SELECT text FROM public.witnessed")).map(({ text }) => String(text));
  const witnessed = new Set(written.map((text) => /^(\w+?)(_\d+)? /.exec(text)?.[1]));
  for (const table of ["credential", "connection", "sync_run", "_private_jobs"]) expect(witnessed).toContain(table);
  const rows = [...(await dumpDatabase(database)).map(({ text }) => text), ...written];
  expect(secrets.size).toBeGreaterThan(25);
  // What is looked for would be found: the browser's states are in the answers, and their users in the rows.
  expect(leaked(states, bodies)).toEqual([...states]);
  expect(leaked(["northwind-sales"], rows)).toHaveLength(1);
  for (const [where, texts] of Object.entries({ outputs, bodies, rows, notifications })) {
    expect(texts.length).toBeGreaterThan(0);
    expect({ where, leaked: leaked(secrets, texts) }).toEqual({ where, leaked: [] });
  }
  for (const texts of [outputs, rows, notifications]) expect(leaked(states, texts)).toEqual([]);
});
