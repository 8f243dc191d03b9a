import { Client } from "pg";
import { asApplication } from "../../src/database/application-role";
import { openGate } from "../support/gate";
import { openPooler } from "../support/pooler";
import { startProgram } from "../support/processes";
import { environmentFor } from "../support/service";
import { useDatabase } from "../support/world";

const CRM = {
  url: "http://127.0.0.1:9",
  clientId: "app",
  clientSecret: "secret",
  redirectUrl: "http://127.0.0.1/back",
};
const database = useDatabase();
const LOCKS = `SELECT objid FROM pg_locks WHERE locktype = 'advisory'
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;

const portOfServer = () => Number(new URL(database.url.reveal()).port);

/** What the service says, which does not begin, and then doctor. */
async function saidOf(DATABASE_URL: string): Promise<string[]> {
  const said = [[], ["doctor"]].map(async (words) => {
    const program = startProgram("src/main.js", { ...environmentFor(CRM), DATABASE_URL }, words);
    expect(await program.ended).toBe(1);
    return program.output();
  });
  return Promise.all(said);
}

// Seen red: it began, /readyz was well, and tenants were shown as not connected; or, for ever and without a word, it waited
// for the lock that a start before had left in the pooler's session.
test("a pooler that gives a session to one after the other is told at the start and by doctor, and nothing stays in its sessions", async () => {
  const pooler = await openPooler(database.url);
  const [start, doctor] = await saidOf(pooler.url.reveal());
  await pooler.close();
  const what = "a pooler stands before it, which gives a session to one client after the other";
  expect(start?.trim()).toBe(
    `The database cannot be used: ${what}; give DATABASE_URL the address of PostgreSQL itself.`,
  );
  expect(doctor).toContain(`fault    database: ${what}`);
  expect(await database.query(LOCKS)).toEqual([]);
}, 120_000);

// Seen red: it began as the user of DATABASE_URL, made its tables as that user's, and failed at each of them.
test("a pooler that drops what sessions begin with is told at the start and by doctor", async () => {
  const dropping = await openGate(portOfServer, async (said) => said.replaceAll("-c crm.tenant=0", "-c crm.nobody=0"));
  const [start, doctor] = await saidOf(dropping.urlOf(database.url).reveal());
  await dropping.close();
  const what = "a pooler stands before it, which drops what a session begins with";
  expect(start).toContain(`The database cannot be used: ${what}`);
  expect(doctor).toContain(`fault    database: ${what}`);
}, 120_000);

// Seen red: with a third, which each start and each of the operator's commands waited for.
test("two sessions show that no pooler stands there, and one of them that the roles do", async () => {
  let begun = 0;
  const gate = await openGate(portOfServer, async (said) => {
    if (said.includes("user\0")) begun += 1;
    return said;
  });
  await asApplication(gate.urlOf(database.url));
  await gate.close();
  expect(begun).toBe(2);
});

// Seen red: a lock that a start before had left in a pooler's session kept every later one waiting, and nothing said so.
test("a start waits for nobody who makes the roles where they are there", async () => {
  await asApplication(database.url);
  const holder = new Client({ connectionString: database.url.reveal() });
  await holder.connect();
  await holder.query("SELECT pg_advisory_lock(7302520)");
  await asApplication(database.url);
  await holder.end();
}, 20_000);
