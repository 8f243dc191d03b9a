import { rmSync } from "node:fs";
import { pino } from "pino";
import { createDataSource, openPool } from "../../src/database/data-source";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../src/database/embedded/embedded-postgres";
import { on } from "../support/database";
import { until } from "../support/stories";

// Commits wait for a standby that is not there, and PostgreSQL lets none of them go: neither for its limits nor because its
// client has left. Seen red, each: it kept the row's lock and its session; one for each tenant that wrote, and after some minutes
// the server had no session left, also for reads.

const DIRECTORY = `.data/standby-away-${process.pid}`;
const LIMITS = { statement: 500, lock: 500, idleInTransaction: 500, transaction: 30_000 };

let postgres: EmbeddedPostgres;
const query = (sql: string) => on(postgres.url.reveal(), sql);
const standby = async (name: string) => {
  await query(`ALTER SYSTEM SET synchronous_standby_names = '${name}'`);
  await query("SELECT pg_reload_conf()");
};
beforeAll(async () => {
  postgres = await startEmbeddedPostgres({ directory: DIRECTORY, durable: true });
  await query("CREATE TABLE held (id integer PRIMARY KEY, n integer); INSERT INTO held VALUES (1, 0)");
  await standby("s1");
}, 60_000);
afterAll(async () => {
  await postgres?.stop();
  rmSync(DIRECTORY, { recursive: true, force: true });
});

const WRITE = "UPDATE held SET n = n + 1 WHERE id = 1";
/** In the session of another process, which may wait for nothing. */
const isFree = async () =>
  query("BEGIN; SELECT 1 FROM held WHERE id = 1 FOR UPDATE NOWAIT; ROLLBACK").then(
    () => true,
    () => false,
  );
const waiting = () => query("SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'");

test.each<[string, () => Promise<{ write: () => Promise<unknown>; end: () => Promise<unknown> }>]>([
  [
    "of the pool",
    async () => {
      const source = await createDataSource({ url: postgres.url, entities: [], limits: LIMITS }).initialize();
      return { write: () => source.transaction((orm) => orm.query(WRITE)), end: () => source.destroy() };
    },
  ],
  [
    "of jobs",
    async () => {
      const pool = openPool(postgres.url, LIMITS, {}, pino({ level: "silent" }), "ended");
      return { write: () => pool.query(WRITE), end: () => pool.end() };
    },
  ],
])(
  "a commit %s that is not answered keeps neither its locks nor its session",
  async (_whose, open) => {
    const { write, end } = await open();
    const writing = write().catch((error: unknown) => error);
    await until("it waits", async () => (await waiting()).length === 1);
    expect(await isFree()).toBe(false);
    expect(await writing).toMatchObject({ message: expect.stringContaining("did not answer in time") });
    await until("nothing waits", async () => (await waiting()).length === 0);
    expect(await isFree()).toBe(true);
    await end();
  },
  60_000,
);
