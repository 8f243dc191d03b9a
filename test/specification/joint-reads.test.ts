import { Client } from "pg";
import { createDataSource } from "../../src/database/data-source";
import type { Database } from "../../src/database/database";
import { JointReads } from "../../src/database/joint-reads";
import { NamedIds, type Read, rowLayoutOf } from "../../src/database/rows";
import { entities } from "../../src/entities";
import { openOn, workers } from "../support/database";
import { useDatabase } from "../support/world";

// Planted and seen red: a joint statement without the condition on its session; a failure that only the first read hears;
// a copy that is taken for that of the read before because both once had the same.

const database = useDatabase();
const ids = new Map<string, number>();
const idOf = (tenant: string) => ids.get(tenant) ?? 0;
const COPIES = { acme: [1, 2], globex: [3] };

beforeAll(async () => {
  for (const [tenant, copies] of Object.entries(COPIES)) {
    const tenantId = await database.tenantId(tenant);
    ids.set(tenant, tenantId);
    for (const copyId of copies) {
      await database.query(
        `INSERT INTO synced_copy (tenant_id, id, crm_company_id, crm_user_id, state, created_at)
         OVERRIDING SYSTEM VALUE VALUES ($1, $2, $2, 1, 'RETIRED', now())`,
        [tenantId, copyId],
      );
      await database.query(
        `INSERT INTO crm_user SELECT $1, $2, g, 'User ' || g || ' of ' || $2::bigint, 'u@x.example', 'u@x.example', true FROM generate_series(1, 3) g`,
        [tenantId, copyId],
      );
    }
  }
});

const USERS = "SELECT crm_id AS id, name FROM crm_user WHERE tenant_id = $1 AND copy_id = $2 AND crm_id = ANY ($3)";
const layout = rowLayoutOf({ id: "number", name: "text" });
const users = (tenant: string, copyId: number, of: unknown = [1]) => ({
  sql: USERS,
  parameters: [idOf(tenant), copyId, of],
  layout,
});

// A cluster is told the tenant by another statement.
const onOneServer = workers().length > 0 ? describe.skip : describe;
onOneServer("in a session that its reader has not set,", () => {
  /** Of the owner of the tables, whom no row policy holds. */
  let session: Client;
  let reads: JointReads;
  beforeAll(async () => {
    session = new Client({ connectionString: database.url.reveal() });
    await session.connect();
    reads = new JointReads(async (sql, values) => (await session.query(sql, [...values])).rows, false);
  });
  afterAll(() => session.end());
  const setTo = (tenant: string | null) =>
    session.query("SELECT set_config('crm.tenant', $1, false)", [tenant === null ? "" : String(idOf(tenant))]);

  /** One that stands alone, one that others take ids from, and one that takes them. */
  async function readAll(tenant: string, copyId: number): Promise<unknown[]> {
    const source: { read: Read | null; done: Promise<unknown[]> } = reads.within(
      () => reads.rows(users(tenant, copyId, [1, 2])),
      null,
    );
    if (!source.read) throw new Error("nothing was asked for");
    const named = reads.rows(users(tenant, copyId, new NamedIds([[source.read, "id"]])));
    return (await Promise.all([reads.rows(users(tenant, copyId)), source.done, named])).map((rows) => rows.length);
  }

  test("a statement of several reads gives its own tenant's rows, and of a session of another tenant or of none nothing at all", async () => {
    await setTo("acme");
    expect(await readAll("acme", 1)).toEqual([1, 2, 2]);
    for (const other of ["globex", null]) {
      await setTo(other);
      // Neither what it names nor what the session could see.
      expect(await readAll("acme", 1)).toEqual([0, 0, 0]);
      expect(await readAll("acme", 3)).toEqual([0, 0, 0]);
    }
  });

  test("reads of two copies each give their own, also where the same two were of one copy before", async () => {
    await setTo("acme");
    const namesOf = async (...copies: number[]) =>
      (await Promise.all(copies.map((copyId) => reads.rows(users("acme", copyId))))).map(([row]) => row?.name);
    for (const copies of [
      [1, 1],
      [1, 2],
      [2, 1],
      [2, 2],
    ])
      expect(await namesOf(...copies)).toEqual(copies.map((copyId) => `User 1 of ${copyId}`));
  });
});

describe("of one operation,", () => {
  const unhandled: unknown[] = [];
  const hear = (error: unknown) => void unhandled.push(error);
  let db: Database;
  beforeAll(async () => {
    process.on("unhandledRejection", hear);
    const dataSource = await createDataSource({ url: database.url, entities }).initialize();
    db = openOn(dataSource);
    ends.push(() => dataSource.destroy());
  });
  const ends: (() => unknown)[] = [];
  afterAll(async () => {
    process.off("unhandledRejection", hear);
    for (const end of ends) await end();
  });

  test("reads of which one fails all say so, those that nobody waits for harm nobody, and the next ones are answered", async () => {
    const scope = db.tenant(idOf("acme"), AbortSignal.timeout(30_000));
    const read = (sql: string) => scope.rows<{ id: number }>(sql, [idOf("acme"), 1, [1]], { id: "number" });
    const good = USERS.replace(", name", "");
    const failing = USERS.replace("crm_id AS id, name", "1 / (crm_id - crm_id) AS id");
    const { done, read: begun } = scope.within(() => read(good), null);
    if (!begun) throw new Error("nothing was asked for");
    const ahead = scope.within(
      () => scope.rows<{ id: number }>(good, [idOf("acme"), 1, new NamedIds([[begun, "id"]])], { id: "number" }),
      () => unhandled.push("told of what was never found"),
    );
    // As a look-up does whose turn may never come.
    ahead.done.catch(() => undefined);
    const all = await Promise.allSettled([done, read(failing), ahead.done]);
    expect(all.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    for (const one of all) expect(String(one.status === "rejected" && one.reason)).toMatch(/division by zero/);
    expect(await read(good)).toEqual([{ id: 1 }]);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(unhandled).toEqual([]);
  });
});
