import { mkdtempSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTestDatabase, type TestDatabase } from "../support/database";
import { type Program, startProgram } from "../support/processes";
import { environmentFor } from "../support/service";

const CRM = {
  url: "http://127.0.0.1:9",
  clientId: "app",
  clientSecret: "secret",
  redirectUrl: "http://127.0.0.1/callback",
};
let database: TestDatabase;
let environment: Record<string, string>;

beforeAll(async () => {
  database = await createTestDatabase();
  environment = { ...environmentFor(CRM), LOG_LEVEL: "info", DATABASE_URL: database.url.reveal() };
});
afterAll(() => database.drop());

async function failureOf(changes: Record<string, string>): Promise<string> {
  const program = startProgram("src/main.js", { ...environment, ...changes });
  expect(await program.ended).toBe(1);
  return program.output();
}

const STACK = /\n\s+at .+:\d+:\d+/;

test("a bad configuration ends the start with every fault named, and no stack", async () => {
  const text = await failureOf({ PORT: "many", CRM_CLIENT_ID: "", ENCRYPTION_KEYS: "x" });
  expect(text).toMatch(/3 fault/);
  for (const name of ["PORT", "CRM_CLIENT_ID", "ENCRYPTION_KEYS"]) expect(text).toContain(name);
  expect(text).not.toMatch(STACK);
});

test("an unreachable database is named without its password, and with what to check", async () => {
  const text = await failureOf({ DATABASE_URL: "postgresql://crm:hunter2@127.0.0.1:9/crm" });
  expect(text).toMatch(/database crm at 127\.0\.0\.1:9 cannot be reached.*Check DATABASE_URL/s);
  expect(text).not.toContain("hunter2");
  expect(text).not.toMatch(STACK);
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
    expect(text).not.toMatch(STACK);
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
