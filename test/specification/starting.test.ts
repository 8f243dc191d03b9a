import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { tokenFor } from "../support/actors";
import { createTestDatabase } from "../support/database";
import { type Program, startProgram } from "../support/processes";
import { environmentFor } from "../support/service";
import { useDatabase } from "../support/world";

const CRM = {
  url: "http://127.0.0.1:9",
  clientId: "app",
  clientSecret: "secret",
  redirectUrl: "http://127.0.0.1/callback",
};
let environment: Record<string, string>;

const database = useDatabase();
beforeAll(() => {
  environment = { ...environmentFor(CRM), LOG_LEVEL: "info", DATABASE_URL: database.url.reveal() };
});

const STACK = /\n\s+at .+:\d+:\d+/;

/** What an operator is told, and no stack. */
async function failureOf(changes: Record<string, string>): Promise<string> {
  const program = startProgram("src/main.js", { ...environment, ...changes });
  expect(await program.ended).toBe(1);
  expect(program.output()).not.toMatch(STACK);
  return program.output();
}

test("a bad configuration ends the start with every fault named, and no stack", async () => {
  const text = await failureOf({ PORT: "many", CRM_CLIENT_ID: "", ENCRYPTION_KEYS: "x" });
  expect(text).toMatch(/3 fault/);
  for (const name of ["PORT", "CRM_CLIENT_ID", "ENCRYPTION_KEYS"]) expect(text).toContain(name);
});

// Seen red: it began, doctor found nothing, and every write was told as a bug of ours; or rows stayed whose connection was gone.
test("a database that takes no writes, keeps no foreign key, or has no place for every name, is told at the start and by doctor", async () => {
  const set = await createTestDatabase();
  const name = new URL(set.url.reveal()).pathname.slice(1);
  const latin = `${name}_latin`;
  await database.query(`CREATE DATABASE "${latin}" ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0`);
  const { href: latinUrl } = Object.assign(new URL(set.url.reveal()), { pathname: latin });
  try {
    for (const [url, setting, what] of [
      [set.url.reveal(), "default_transaction_read_only = on", "default_transaction_read_only is on"],
      [set.url.reveal(), "session_replication_role = replica", "session_replication_role is replica"],
      [latinUrl, null, "its encoding is LATIN1"],
    ] as const) {
      if (setting) await database.query(`ALTER DATABASE "${name}" RESET ALL; ALTER DATABASE "${name}" SET ${setting}`);
      const text = await failureOf({ DATABASE_URL: url });
      expect(text).toContain(`The database cannot be used: ${what}`);
      const doctor = startProgram("src/main.js", { ...environment, DATABASE_URL: url }, ["doctor"]);
      expect(await doctor.ended).toBe(1);
      expect(doctor.output()).toContain(`fault    database: ${what}`);
    }
  } finally {
    await database.query(`ALTER DATABASE "${name}" RESET ALL`);
    await database.query(`DROP DATABASE "${latin}" WITH (FORCE)`);
    await set.drop();
  }
});

test("an unreachable database is named without its password, and with what to check", async () => {
  const text = await failureOf({ DATABASE_URL: "postgresql://crm:hunter2@127.0.0.1:9/crm" });
  expect(text).toMatch(/database crm at 127\.0\.0\.1:9 cannot be reached.*Check DATABASE_URL/s);
  expect(text).not.toContain("hunter2");
});

test("something that takes connections and never speaks is given up as a database, at the start and by a command", async () => {
  const mute = createServer((socket) => socket.resume().on("error", () => undefined));
  await new Promise<void>((resolve) => mute.listen(0, "127.0.0.1", resolve));
  const { port } = mute.address() as AddressInfo;
  const DATABASE_URL = `postgresql://crm:hunter2@127.0.0.1:${port}/crm`;
  const command = startProgram("src/main.js", { ...environment, DATABASE_URL }, ["crm-resume"]);
  expect(await failureOf({ DATABASE_URL })).toMatch(/cannot be reached.*Check DATABASE_URL/s);
  expect(await command.ended).toBe(1);
  mute.close();
}, 60_000);

test("a certificate that DATABASE_URL names and nobody can read is told without a stack", async () => {
  const address = new URL(environment.DATABASE_URL ?? "");
  address.searchParams.set("sslrootcert", "/nowhere/ca.pem");
  const text = await failureOf({ DATABASE_URL: address.href });
  expect(text).toMatch(/cannot be reached: .*\/nowhere\/ca\.pem.*Check DATABASE_URL/);
});

/** A user without any attribute of its own, in a database of its own; `granted`: an administrator has run what the handbook says. */
async function asPlainUser(granted: boolean, work: (url: string, name: string) => Promise<void>): Promise<void> {
  const name = `plain_${randomBytes(4).toString("hex")}`;
  const empty = await createTestDatabase({ empty: true });
  const url = new URL(empty.url.reveal());
  await empty.query(`CREATE ROLE ${name} LOGIN PASSWORD 'hunter2'`);
  const handbook = readFileSync("docs/operations.md", "utf8");
  const [, roles = ""] = /## Roles\n.*?```sql\n(.*?)```/s.exec(handbook) ?? [];
  try {
    if (granted) {
      const commands = roles
        .replaceAll("service_user", name)
        .replace("DATABASE crm ", `DATABASE ${url.pathname.slice(1)} `);
      // The server has the roles already, from every other database.
      await empty.query(commands.replace(/CREATE ROLE.*;\n/g, ""));
    }
    Object.assign(url, { username: name, password: "hunter2" });
    await work(url.href, name);
  } finally {
    await empty.query(`REVOKE crm_connection, crm_connection_across FROM ${name}; DROP ROLE ${name}`);
    await empty.drop();
  }
}

test("a database user without rights of its own is refused with who has to do what", () =>
  asPlainUser(false, async (url) => {
    const text = await failureOf({ DATABASE_URL: url });
    expect(text).toMatch(
      /may not act as crm_connection and crm_connection_across: .*docs\/operations.md lists under Roles/,
    );
    expect(text).not.toContain("hunter2");
  }));

test("the same user runs the service once an administrator has run what the handbook says, and sees no tenant's rows by it", () =>
  asPlainUser(true, async (url) => {
    const program = startProgram("src/main.js", { ...environment, DATABASE_URL: url });
    const address = await addressOf(program);
    expect((await fetch(`${address}/readyz`)).status).toBe(200);
    const seen = await fetch(`${address}/graphql`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${await tokenFor()}` },
      body: JSON.stringify({ query: "{ connection { state } }" }),
    });
    expect(await seen.json()).toEqual({ data: { connection: { state: "NOT_CONNECTED" } } });
    program.child.kill("SIGTERM");
    expect(await program.ended).toBe(0);
  }));

// Seen red: one that was restored by half was served, without row policies and constraints.
test.each([
  [
    "that an earlier version made",
    "UPDATE migration SET name = 'Initial1763640000000'",
    /^The database cannot be used: its tables were made by Initial1763640000000, .*give DATABASE_URL an empty/m,
  ],
  [
    "whose tables an earlier version made as another user",
    "ALTER TABLE migration OWNER TO CURRENT_USER",
    /^The database cannot be used: its tables belong to another role; give DATABASE_URL an empty database, or run the version that made this one\.$/m,
  ],
  [
    "into which a backup was restored by half",
    "ALTER TABLE tenant DISABLE ROW LEVEL SECURITY",
    /^The database cannot be used: a backup was restored into it by half; restore it into an empty database\.$/m,
  ],
])("a database %s is refused in one sentence", async (_, made, words) => {
  const old = await createTestDatabase();
  await old.query(made);
  const text = await failureOf({ DATABASE_URL: old.url.reveal() });
  expect(text).toMatch(words);
  await old.drop();
});

test("an address that is not this machine's ends the start with the variables to look at", async () => {
  const text = await failureOf({ HOST: "192.0.2.1" });
  expect(text).toMatch(/cannot listen on 192\.0\.2\.1:.*HOST must be an address of this machine, PORT a port/);
});

describe("with its port in use", () => {
  let other: Server;
  beforeAll(() => {
    other = createServer();
    return new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  });
  afterAll(() => new Promise((resolve) => other.close(resolve)));

  test("the start ends with the port and what to do", async () => {
    const { port } = other.address() as AddressInfo;
    const text = await failureOf({ PORT: String(port) });
    expect(text).toContain(`Port ${port} on 127.0.0.1 is in use`);
  });
});

async function addressOf(program: Program): Promise<string> {
  const [, address = ""] = await program.says(/"address":"([^"]+)"/);
  return address;
}

test("the built service answers health checks and ends cleanly on SIGTERM", async () => {
  const program = startProgram("src/main.js", environment);
  const address = await addressOf(program);
  expect((await fetch(`${address}/healthz`)).status).toBe(200);
  expect((await fetch(`${address}/readyz`)).status).toBe(200);
  program.child.kill("SIGTERM");
  expect(await program.ended).toBe(0);
});

test("a start that waits for another one's changes of the tables says so, and comes up after them", async () => {
  const other = new Client({ connectionString: database.url.reveal() });
  await other.connect();
  await other.query("SELECT pg_advisory_lock(7302518)");
  const program = startProgram("src/main.js", environment);
  await program.says(/another process changes the tables/);
  await other.end();
  await addressOf(program);
  program.child.kill("SIGTERM");
  expect(await program.ended).toBe(0);
}, 60_000);

// Seen red: it was told at the end alone, which took twelve seconds.
test("a collector of traces that is away is told, and neither fails the end nor holds it up", async () => {
  const program = startProgram("src/main.js", { ...environment, OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9" });
  const address = await addressOf(program);
  await program.says(/^{"level":40.*traces are lost/m);
  expect((await fetch(`${address}/readyz`)).status).toBe(200);
  const toldAt = performance.now();
  program.child.kill("SIGTERM");
  expect(await program.ended).toBe(0);
  expect(performance.now() - toldAt).toBeLessThan(8_000);
  expect(program.output()).toContain("the last traces could not be sent");
});

test("without DATABASE_URL the service runs on an embedded PostgreSQL that survives being killed with it", async () => {
  const folder = mkdtempSync(join(tmpdir(), "crm-"));
  const { DATABASE_URL, ...alone } = environment;
  try {
    const first = startProgram("src/main.js", alone, [], folder);
    await addressOf(first);
    first.child.kill("SIGKILL");
    await first.ended;
    const second = startProgram("src/main.js", alone, [], folder);
    expect((await fetch(`${await addressOf(second)}/readyz`)).status).toBe(200);
    const third = startProgram("src/main.js", alone, [], folder);
    expect(await third.ended).toBe(1);
    expect(third.output()).toMatch(/in use by process \d+/);
    second.child.kill("SIGTERM");
    expect(await second.ended).toBe(0);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
