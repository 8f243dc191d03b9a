import { randomBytes } from "node:crypto";
import { type AddressInfo, createServer, type Server } from "node:net";
import { Client } from "pg";
import { resumeCrm, stopCrm } from "../../src/connections/crm-stops";
import { lineOf } from "../../src/operator/checks";
import { examine } from "../../src/operator/doctor";
import { readConfig } from "../../src/platform/config";
import { Keyring, Secret } from "../../src/platform/keyring";
import { readQueueState } from "../../src/sync/run-history";
import { createTestDatabase, type TestDatabase } from "../support/database";
import { dumpDatabase, leaked } from "../support/dump";
import { openGate } from "../support/gate";
import { makeKey, startKeyServer, withBody, withKeys } from "../support/key-server";
import { startProgram } from "../support/processes";
import { useCrm } from "../support/world";

let environment: Record<string, string>;

jest.setTimeout(60_000);
const { world, simulator, database } = useCrm({ deals: 10 });
beforeAll(async () => {
  environment = { ...world.environment, NODE_ENV: "production" };
  await (await world.startService({ connected: ["acme"] })).stop();
});
beforeEach(() => world.beginAnew());

/** What doctor says, a line each, in this environment. */
async function lines(changes: Record<string, string> = {}): Promise<string> {
  const findings = await examine(() => readConfig({ ...environment, ...changes }));
  return findings.map(lineOf).join("\n");
}

test("a service that is well gets ok in every line and the exit code 0, and nothing is changed", async () => {
  const before = await dumpDatabase(database);
  const program = startProgram("src/main.js", environment, ["doctor"]);
  expect(await program.ended).toBe(0);
  const text = program.output();
  expect(text).toMatch(/^(ok .*\n)+$/);
  for (const what of [
    "configuration",
    "database: PostgreSQL 1",
    "migrations",
    "row policies",
    "keys",
    "queue",
    "consent page",
  ]) {
    expect(text).toContain(what);
  }
  // Seen red: what went over the network in clear was told nowhere.
  expect(text).toMatch(/^ok +database: PostgreSQL .*, without TLS/m);
  expect(await dumpDatabase(database)).toEqual(before);
  expect(
    simulator.log
      .all()
      .map(({ method, path }) => `${method} ${path}`)
      .sort(),
  ).toEqual(["GET /api/v1/users/me", "GET /oauth/authorize"]);
  const { password } = new URL(environment.DATABASE_URL ?? "");
  const secrets = [environment.CRM_CLIENT_SECRET, environment.AUTH_JWT_SECRET, environment.ENCRYPTION_KEYS, password];
  const known = secrets.flatMap((secret) => secret || []);
  expect(leaked(known, [text])).toEqual([]);
});

// Seen red: doctor said that it takes writes; and asked for room on the disk whatever was missing.
test.each([
  ["a full disk", "No space left on device", "disk_full", "give its disk room"],
  ["a full memory", "out of memory", "out_of_memory", "give its machine memory"],
  ["a disk that fails", "could not read block", "io_error", "see what PostgreSQL's own log says"],
  ["a right that is missing", "permission denied", "insufficient_privilege", "give its user back its rights"],
])("%s of the database is told", async (_what, words, code, todo) => {
  const url = new Secret(environment.DATABASE_URL ?? "");
  const raise = `DO $$BEGIN RAISE '${words}' USING ERRCODE = '${code}'; END$$`;
  const gate = await openGate(
    () => Number(new URL(url.reveal()).port),
    async (said) => said.replace(/SELECT count\(\*\) FROM \(SELECT n .* sorted/, ({ length }) => raise.padEnd(length)),
  );
  const told = await lines({ DATABASE_URL: gate.urlOf(url).reveal() });
  await gate.close();
  expect(told).toMatch(new RegExp(`^fault +database: ${words} {2}-> ${todo}`, "m"));
});

// Seen red: a service whose user had ten sessions was well, and most of what it was asked was TEMPORARILY_UNAVAILABLE.
test("a user or database with fewer sessions than the processes want is told", async () => {
  const { pathname } = new URL(environment.DATABASE_URL ?? "");
  expect(await lines()).toMatch(
    /^ok +database: it may have \d+ sessions, and 1 process\(es\) of the service want up to 39$/m,
  );
  await database.query(`ALTER DATABASE "${pathname.slice(1)}" CONNECTION LIMIT 38`);
  expect(await lines()).toMatch(/^warning +database: it may have 38 sessions, .* {2}-> raise max_connections/m);
  await database.query(`ALTER DATABASE "${pathname.slice(1)}" CONNECTION LIMIT -1`);
});

// Seen red: while nobody could read a deal, every line was ok.
test("a session that keeps everybody from a table is named", async () => {
  const holder = new Client({ connectionString: database.url.reveal() });
  await holder.connect();
  await holder.query("BEGIN; LOCK TABLE deal IN ACCESS EXCLUSIVE MODE");
  const told = await lines();
  await holder.end();
  expect(told).toMatch(/^warning +database: session \d+ of \w+ keeps everybody from deal {2}-> wait/m);
});

test("companies that are short of the CRM's tokens are named", async () => {
  const { company } = simulator;
  expect(await lines()).toContain("ok       tokens of the CRM: no company is short today");
  const mark = (change: string) => database.query(`UPDATE crm_budget SET ${change}`);
  await mark("daily_limit = 30000, remaining = 2999, told_at = now(), day_began_at = now() - interval '1 hour'");
  expect(await lines()).toMatch(
    new RegExp(`^warning +tokens of the CRM: ${company.name} .\\d+. has 2999 of 30000 left today  -> .*`, "m"),
  );
  await mark("remaining = 25000, limited_at = now()");
  expect(await lines()).toMatch(/ has 25000 of 30000 left today, and is refused since 20\d\d-\S+Z {2}-> /);
  await mark("day_began_at = now() - interval '25 hours'");
  expect(await lines()).toContain("no company is short today");
});

test("every fault of the configuration is a line, and the exit code is 1", async () => {
  const program = startProgram("src/main.js", { ...environment, PORT: "many", ENCRYPTION_KEYS: "x" }, ["doctor"]);
  expect(await program.ended).toBe(1);
  expect(program.output()).toMatch(/^fault +configuration: PORT .*-> .*$/m);
  expect(program.output()).toMatch(/^fault +configuration: ENCRYPTION_KEYS .*-> .*$/m);
});

test("a database that does not answer is a fault without its password, and the CRM is looked at all the same", async () => {
  const text = await lines({ DATABASE_URL: "postgresql://crm:hunter2@127.0.0.1:9/crm" });
  expect(text).toMatch(/^fault +database: The database crm at 127\.0\.0\.1:9 cannot be reached/m);
  expect(text).not.toContain("hunter2");
  expect(text).toMatch(/^ok +the CRM shows its consent page/m);
});

describe("an empty database", () => {
  let empty: TestDatabase;
  beforeAll(async () => {
    empty = await createTestDatabase({ empty: true });
  });
  afterAll(() => empty.drop());

  test("gets the migrations that are to be applied, and stays empty", async () => {
    const text = await lines({ DATABASE_URL: empty.url.reveal() });
    expect(text).toMatch(
      /^warning +migrations: (\d+) of \1 are to be applied \(Initial_[0-9a-f]+_\d+.*next start applies them/m,
    );
    expect(
      await empty.query("SELECT 1 FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"),
    ).toEqual([]);
  });
});

test("a database of a newer version is said so", async () => {
  await database.query("INSERT INTO migration (timestamp, name) VALUES (1895219200000, 'Later9')");
  const told = await lines();
  await database.query("DELETE FROM migration WHERE name = 'Later9'");
  expect(told).toMatch(/^warning +migrations: the database knows 1 .*\(Later9\)/m);
});

// Seen red: every line was ok.
test("a job queue that a newer version has changed is a fault", async () => {
  await database.query("INSERT INTO graphile_worker.migrations (id, breaking) VALUES (99, true)");
  expect(await lines()).toMatch(/^fault +migrations: its job queue is of revision 99, .* -> run the newer version/m);
  // Seen red: of a change that leaves it usable every line was ok.
  await database.query("UPDATE graphile_worker.migrations SET breaking = false WHERE id = 99");
  expect(await lines()).toMatch(/^warning +migrations: its job queue is of revision 99, .* -> run the newer version/m);
  await database.query("DELETE FROM graphile_worker.migrations WHERE id = 99");
});

test("a table whose policy is not forced is a fault", async () => {
  await database.query("ALTER TABLE deal NO FORCE ROW LEVEL SECURITY");
  try {
    expect(await lines()).toMatch(/^fault +row policies: not forced on deal /m);
  } finally {
    await database.query("ALTER TABLE deal FORCE ROW LEVEL SECURITY");
  }
});

test("tables of another version are a fault", async () => {
  await database.query("INSERT INTO migration (timestamp, name) VALUES (9, 'Earlier9')");
  try {
    expect(await lines()).toMatch(
      /^fault +migrations: its tables were made by Earlier9.*-> give DATABASE_URL an empty/m,
    );
  } finally {
    await database.query("DELETE FROM migration WHERE name = 'Earlier9'");
  }
});

test("a user who cannot act as the service's roles is a fault", async () => {
  const name = `passes_${randomBytes(4).toString("hex")}`;
  await database.query(`CREATE ROLE ${name} LOGIN BYPASSRLS PASSWORD 'x'`);
  try {
    const url = new URL(database.url.reveal());
    url.username = name;
    url.password = "x";
    expect(await lines({ DATABASE_URL: url.href })).toMatch(
      /^fault +row policies: passes_\w+ may not act as the roles/m,
    );
  } finally {
    await database.query(`DROP ROLE ${name}`);
  }
});

describe("keys", () => {
  const otherKey = (id: string) => `${id}:${randomBytes(32).toString("base64")}`;

  test("one that seals a credential and is no longer configured is a fault", async () => {
    expect(await lines({ ENCRYPTION_KEYS: otherKey("new") })).toMatch(
      /^fault +keys: 1 tenant\(s\) have secrets sealed under "test", which is not in ENCRYPTION_KEYS .* disconnect and connect again/m,
    );
  });

  test("one that is no longer the first is a warning, with the command to rotate", async () => {
    const keys = `${otherKey("new")},${environment.ENCRYPTION_KEYS}`;
    expect(await lines({ ENCRYPTION_KEYS: keys })).toMatch(/^warning +keys: 1 .*"test".*npm run keys:rotate/m);
  });

  test("another one under the same name is a fault", async () => {
    expect(await lines({ ENCRYPTION_KEYS: otherKey("test") })).toMatch(
      /^fault +keys: .*"test", but the key of that name/m,
    );
  });

  // Seen red with one secret tried of each name: all was well, where a process with another key of that name had connected some.
  test("of several tenants, those whose secrets another key of that name has sealed are named", async () => {
    const keyring = new Keyring(readConfig({ ...environment, ENCRYPTION_KEYS: otherKey("test") }).encryptionKeys);
    const globex = await database.tenantId("globex");
    const [copy] = await database.query<{ id: number }>(
      `INSERT INTO synced_copy (tenant_id, crm_company_id, crm_user_id, state, created_at)
       VALUES ($1, 2, 2, 'RETIRED', now()) RETURNING id`,
      [globex],
    );
    const sealed = (part: string) => keyring.seal("token", [String(globex), String(copy?.id), part]);
    await database.query(
      `INSERT INTO credential (tenant_id, copy_id, version, access_token, refresh_token, access_token_asked_at)
       VALUES ($1, $2, 1, $3, $4, now())`,
      [globex, copy?.id, sealed("access_token"), sealed("refresh_token")],
    );
    expect(await lines()).toMatch(
      new RegExp(`^fault +keys: 2 .*"test", but .* does not open those of 1 \\(tenantId ${globex}\\)`, "m"),
    );
    for (const table of ["credential", "synced_copy"])
      await database.query(`DELETE FROM ${table} WHERE tenant_id = $1`, [globex]);
    expect(await lines()).toMatch(/^ok +keys: 1 /m);
  });
});

describe("the CRM", () => {
  test("a redirect address or client id that is not the registration's is a fault", async () => {
    const wrong = await lines({ CRM_REDIRECT_URL: "https://app.example.com/else" });
    expect(wrong).toMatch(/^fault .*answered 400: it does not accept CRM_REDIRECT_URL {2}-> /m);
    expect(await lines({ CRM_CLIENT_ID: "unknown" })).toMatch(
      /^fault .*does not accept CRM_CLIENT_ID or CRM_REDIRECT_URL/m,
    );
  });

  test("a sign-in in between is a warning, because nothing is then known of the registration", async () => {
    simulator.control.fail({
      match: "/oauth/authorize",
      with: { status: 302, headers: { location: "https://app.pipedrive.com/auth/login" } },
    });
    expect(await lines()).toMatch(/^warning +the CRM asks to sign in first/m);
  });

  // Seen red: the line above was wiped out, and one that says ok stood in its place.
  test("what a customer or the CRM says is shown, and no command to the operator's terminal", async () => {
    const forged = "\u001b[1A\u001b[2K\rok       all is well\n\u009b31m\u202e\u2028";
    await database.query(
      "UPDATE crm_budget SET daily_limit = 30000, remaining = 1, limited_at = NULL, told_at = now(), day_began_at = now() - interval '1 hour'",
    );
    await database.query("UPDATE connection SET company_name = $1", [`Acme${forged}`]);
    const location = `${environment.CRM_REDIRECT_URL}?error=${encodeURIComponent(forged)}`;
    simulator.control.fail({ match: "/oauth/authorize", with: { status: 302, headers: { location } } });
    const text = await lines();
    await database.query("UPDATE crm_budget SET day_began_at = now() - interval '25 hours'");
    expect(text).toMatch(/^warning +tokens of the CRM: Acme.*all is well.* \(\d+\) has 1 of/m);
    expect(text).toMatch(/^fault +the CRM sent the browser back to CRM_REDIRECT_URL with ".*all is well/m);
    expect(text.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Bidi_Control}\u2028]/u);
    expect(text).not.toMatch(/^ok +all is well/m);
  });

  test("an address where nothing listens is a fault with the variable's name", async () => {
    const text = await lines({ CRM_BASE_URL: "http://127.0.0.1:9", CRM_AUTH_URL: "http://127.0.0.1:9" });
    expect(text).toMatch(/^fault +the CRM at http:\/\/127\.0\.0\.1:9 cannot be reached: .*-> check CRM_BASE_URL/m);
    expect(text).toMatch(/^fault +the CRM at http:\/\/127\.0\.0\.1:9 cannot be reached: .*-> check CRM_AUTH_URL/m);
  });

  test("a proxy's page in the API's place is a fault, an outage a warning", async () => {
    simulator.control.fail({ match: "/api/", times: 1, with: { kind: "html", status: 403 } });
    expect(await lines()).toMatch(/^fault +the CRM's API at .* answered 403 with an HTML page/m);
    simulator.control.fail({ match: "/api/", times: 1, with: { status: 503 } });
    expect(await lines()).toMatch(/^warning +the CRM's API at .* answered 503/m);
  });

  test("a clock that is far from this machine's is a fault", async () => {
    simulator.control.fail({
      match: "/api/",
      with: { status: 401, body: { success: false }, headers: { date: new Date(Date.now() - 600_000).toUTCString() } },
    });
    expect(await lines()).toMatch(/^fault +the CRM: its clock is \d+\.\d s behind this machine's/m);
  });

  test("is not asked while its calls are stopped", async () => {
    const db = database.opened();
    await stopCrm(db, "We look into it.", new Date());
    try {
      expect(await lines()).toMatch(
        /^warning +the CRM: all calls are stopped since .*: We look into it\..*npm run crm:resume/m,
      );
      expect(simulator.log.all()).toEqual([]);
    } finally {
      await resumeCrm(db, new Date());
    }
  });
});

test("a connection that needs re-authorization, and one that our registration keeps from working, are told", async () => {
  const set = (change: string) => database.query(`UPDATE connection SET ${change}`);
  await set("state = 'NEEDS_REAUTHORIZATION'");
  try {
    expect(await lines()).toMatch(/^warning +connections: 1 need re-authorization/m);
    await set(
      "state = 'CONNECTED', trouble_code = 'SERVICE_MISCONFIGURED', trouble_message = '', trouble_since = now(), trouble_last_seen_at = now()",
    );
    expect(await lines()).toMatch(/^fault +connections: 1 are in trouble, SERVICE_MISCONFIGURED/m);
  } finally {
    await set(
      "state = 'CONNECTED', trouble_code = NULL, trouble_message = NULL, trouble_since = NULL, trouble_last_seen_at = NULL",
    );
  }
});

test("jobs that are late, do not end, are held by a dead worker, or given up are told by their task", async () => {
  const waiting = async () => (await readQueueState(database.opened())).waiting;
  const before = await waiting();
  const add = (key: string, runAt: string) =>
    database.query(`SELECT graphile_worker.add_job($1, '{}', job_key => $1, run_at => now() - interval '${runAt}')`, [
      key,
    ]);
  for (const task of ["late_task", "endless_task", "stuck_task", "gone_task"])
    await add(task, /late|endless/.test(task) ? "1 hour" : "0");
  const change = (task: string, set: string) =>
    database.query(
      `UPDATE graphile_worker._private_jobs SET ${set} WHERE task_id =
         (SELECT id FROM graphile_worker._private_tasks WHERE identifier = $1)`,
      [task],
    );
  // Seen red: no job was late, stuck or given up.
  await change("endless_task", "locked_at = now(), locked_by = 'alive'");
  await change("stuck_task", "locked_at = now() - interval '1 hour', locked_by = 'dead'");
  await change("gone_task", "attempts = max_attempts");
  try {
    const text = await lines();
    expect(text).toMatch(/^warning +queue: 1 job\(s\) late_task wait for more than/m);
    expect(text).toMatch(/^warning +queue: 1 job\(s\) endless_task do not end for/m);
    expect(text).toMatch(/^warning +queue: 1 job\(s\) stuck_task are held for more than/m);
    expect(text).toMatch(/^fault +queue: 1 job\(s\) gone_task were given up/m);
    // The late one, and the one that a dead worker holds.
    expect(await waiting()).toBe(before + 2);
  } finally {
    await database.query("DELETE FROM graphile_worker._private_jobs");
  }
});

describe("something that takes connections and never speaks", () => {
  let mute: Server;
  beforeAll(() => {
    mute = createServer((socket) => socket.resume().on("error", () => undefined));
    return new Promise<void>((resolve) => mute.listen(0, "127.0.0.1", resolve));
  });
  afterAll(() => new Promise((resolve) => mute.close(resolve)));

  test("is given up, as a database and as a CRM", async () => {
    const { port } = mute.address() as AddressInfo;
    const url = `http://127.0.0.1:${port}`;
    const text = await lines({
      DATABASE_URL: new Secret(`postgresql://x:y@127.0.0.1:${port}/crm`).reveal(),
      CRM_BASE_URL: url,
      CRM_AUTH_URL: url,
    });
    expect(text.match(/^fault .*cannot be reached/gm)).toHaveLength(3);
  });
});

test("the keys of callers are fetched as the service would, and a key server that is down is a fault", async () => {
  const server = await startKeyServer();
  const key = await makeKey("k", () => new Date());
  const said = (more = {}) => lines({ AUTH_JWT_SECRET: "", AUTH_JWKS_URL: server.url.href, ...more });
  server.answer = withKeys(key.jwk, { ...key.jwk, use: "enc" });
  expect(await said()).toMatch(/warning +callers: AUTH_AUDIENCE is not set: .* another application .*-> set it/);
  expect(await said({ AUTH_AUDIENCE: "crm" })).not.toContain("AUTH_AUDIENCE");
  expect(await said()).toContain("has 1 key(s) that tokens are proven with; 1 more are not for proving tokens");
  server.answer = withBody(503, "down");
  expect(await said()).toMatch(/fault +callers: their keys cannot be fetched .* status 503\. +-> check AUTH_JWKS_URL/);
  expect(server.requests).toBe(4);
  await server.stop();
});
