import { Client } from "pg";
import type { DataSource } from "typeorm";
import { DEALS_OF_TENANT, fill, judgeTenants, MEETINGS_OF_TENANT } from "../../bench/briefing-data";
import {
  countMeetings,
  MEETING_ORDERS,
  type MeetingFilter,
  NEWEST_IN_CRM,
  readMeetings,
  readOrganizations,
  readPersons,
} from "../../src/briefing/lists/contact-and-meeting-lists";
import { type DealFilter, dealOrder, readDeals, summarizeDeals } from "../../src/briefing/lists/deal-list";
import { APPLICATION_ROLE } from "../../src/database/application-role";
import { createDataSource } from "../../src/database/data-source";
import { type CopyScope, Database } from "../../src/database/database";
import type { Page } from "../../src/database/keyset";
import { entities } from "../../src/entities";
import { createTestDatabase, type TestDatabase, workers } from "../support/database";
import { countStatements, type Sent, type StatementCounter } from "../support/statements";

/** What a page of a list reads of a tenant with 2,400 matched deals and 800 meetings, beside small tenants. */

const TIMES = 20;
/** With so many small tenants the planner takes each for small. */
const LARGE = 41;
const FIRST = 20;
/** A client that walks a list comes to a page behind so many rows. */
const FAR = 500;
/** Of each of six standings a page, the rows of the page, and what belongs to them. */
const MOST_ROWS = 300;

let database: TestDatabase;
let counter: StatementCounter;
let dataSource: DataSource;
let explaining: Client;
let copy: CopyScope;

// On a cluster the plan is the node's.
const onOneServer = workers().length > 0 ? describe.skip : describe;

onOneServer("of a large tenant", () => {
  beforeAll(async () => {
    database = await createTestDatabase();
    explaining = new Client({ connectionString: database.url.reveal() });
    await explaining.connect();
    for (const filling of [
      { from: 1, to: LARGE - 1, times: 1 },
      { from: LARGE, to: LARGE, times: TIMES },
    ]) {
      await fill(explaining, filling);
      await explaining.query("ANALYZE");
      await judgeTenants(database.url.reveal(), filling);
    }
    const snoozed =
      "UPDATE deal SET snooze_ends_at = now() + interval '9 days' WHERE copy_id = $1 AND crm_id % 100 = 0";
    await explaining.query(snoozed, [LARGE]);
    await explaining.query("ANALYZE");
    // As the sessions of operations are: under row policies an index compares less than without.
    await explaining.query("SET plan_cache_mode = force_generic_plan; SET enable_bitmapscan = off; SET jit = off");
    await explaining.query(`SET ROLE ${APPLICATION_ROLE}`);
    await explaining.query("SELECT set_config('crm.tenant', $1, false)", [String(LARGE)]);
    counter = await countStatements(database.url);
    dataSource = await createDataSource({ url: counter.url, entities }).initialize();
    copy = { ...new Database(dataSource).tenant(LARGE), copyId: LARGE };
  });
  afterAll(async () => {
    await dataSource.destroy();
    await Promise.all([counter.close(), explaining.end()]);
    await database.drop();
  });

  const now = new Date();
  const FILTERS: Record<string, DealFilter> = {
    "no filter": {},
    open: { status: ["open"] },
    "won or lost": { status: ["won", "lost"] },
    "one verdict": { verdict: ["COOLING"] },
    "verdicts of the board": { verdict: ["QUIET", "GHOSTED"] },
    "a pipeline": { pipelineId: 1 },
    "a stage": { stageId: 3 },
    "an owner": { ownerId: 4 },
    "an owner who has none": { ownerId: 999 },
    "the board of a stage": { verdict: ["QUIET", "GHOSTED"], stageId: 3 },
    "open ones of an owner": { status: ["open"], ownerId: 4 },
    "none that is snoozed": { snoozed: false },
    "snoozed ones": { snoozed: true },
  };
  const ORDERS = ["UPDATED_AT_DESC", "VALUE_DESC", "QUIET_DAYS_DESC"] as const;
  const CASES = ORDERS.flatMap((order) => Object.keys(FILTERS).map((filter) => [order, filter] as const));

  // Planted and seen red: without one of the indexes; with a join in place of the LATERAL of late phases.
  test.each(CASES)(
    "a page of deals by %s with %s reads no more rows than it needs, the first, the next and one far behind",
    async (name, filter) => {
      const wanted = FILTERS[filter] ?? {};
      const order = dealOrder(name, wanted);
      await reads((after, first) => readDeals(copy, wanted, { order, first, after }, now));
    },
  );

  const dearest = (part: number) => ({
    currency: "EUR",
    minValue: String(1_000 + (1 - part) * DEALS_OF_TENANT * TIMES),
  });

  test.each(ORDERS)("so does a page by %s of the deals from an amount on, many, few or none", async (name) => {
    for (const wanted of [0.1, 0.002, 0].map(dearest))
      await reads((after, first) => readDeals(copy, wanted, { order: dealOrder(name, wanted), first, after }, now));
  });

  test("so does a page of persons and of organizations, however many meetings each was in", async () => {
    await reads((after, first) => readPersons(copy, null, { order: NEWEST_IN_CRM, first, after }));
    await reads((after, first) => readOrganizations(copy, { order: NEWEST_IN_CRM, first, after }));
  });

  const ANY: MeetingFilter = {
    ...{ from: null, to: null, status: null, ownerEmail: null, search: null },
    includeCancelled: false,
  };
  const MEETINGS: Record<string, Partial<MeetingFilter>> = {
    "no filter": {},
    "cancelled ones too": { includeCancelled: true },
    "an owner": { ownerEmail: "U1@seller.example" },
    "an owner who has none": { ownerEmail: "u2@seller.example" },
    "a status of an owner": { ownerEmail: "u1@seller.example", status: ["MATCHED"] },
    "a status of an owner who has none": { ownerEmail: "u2@seller.example", status: ["MATCHED"] },
    "a status": { status: ["NEEDS_CHOICE"] },
    "two statuses": { status: ["NEEDS_CHOICE", "MATCHED"] },
    "a status that none has": { status: ["PENDING"] },
    "a time": { from: new Date(now.getTime() - 20 * 86_400_000), to: new Date(now.getTime() - 5 * 86_400_000) },
  };
  test.each(Object.keys(MEETINGS))("so does a page of meetings with %s, in both orders", async (filter) => {
    const wanted = { ...ANY, ...MEETINGS[filter] };
    for (const order of Object.values(MEETING_ORDERS))
      await reads((after, first) => readMeetings(copy, wanted, { order, first, after }));
  });

  test("a text is looked for until the page is full, and at most in one row of each meeting", async () => {
    const order = MEETING_ORDERS.STARTS_AT_DESC;
    const wanted = { ...ANY, search: "BUYER" };
    await reads((after, first) => readMeetings(copy, wanted, { order, first, after }));
    const none = { ...ANY, search: "p7@buyer" };
    const sent = await counter.sentDuring(() => readMeetings(copy, none, { order, first: FIRST, after: null }));
    expect(await rowsRead(sent)).toBe(MEETINGS_OF_TENANT * TIMES);
  });

  // Seen red where a status or a verdict was looked for among all entries: PostgreSQL joins the standings with them.
  test("counts and sums read one small entry for each row that fits", async () => {
    const wanted: DealFilter[] = [{ ownerId: 4 }, { status: ["won", "lost"] }, { verdict: ["ACTIVE"] }];
    for (const filter of [...wanted, { verdict: ["QUIET", "GHOSTED"] } as const, { currency: "SEK" }]) {
      let count: number | undefined;
      const walk = { order: dealOrder("UPDATED_AT_DESC", filter), after: null };
      const sent = await counter.sentDuring(async () => {
        count = (await summarizeDeals(copy, filter, walk, now))?.count;
      });
      expect(await rowsRead(sent)).toBeLessThanOrEqual((count ?? 0) + 50);
    }
    expect(await countMeetings(copy, ANY)).toBe(MEETINGS_OF_TENANT * TIMES);
    const choice: MeetingFilter = { ...ANY, status: ["NEEDS_CHOICE"] };
    const some = (MEETINGS_OF_TENANT * TIMES) / 10;
    const sent = await counter.sentDuring(async () => expect(await countMeetings(copy, choice)).toBe(some));
    expect(await rowsRead(sent)).toBeLessThanOrEqual(2 * some + 50);
  });

  /** The first page, the one after it and one far behind, where there are these. */
  async function reads(page: (after: readonly string[] | null, first: number) => Promise<Page<object>>): Promise<void> {
    const endOf = ({ rows, hasMore }: Page<object>) => (hasMore && rows.at(-1)?.position) || null;
    let after: readonly string[] | null = null;
    for (const behind of [FIRST, FAR, 0]) {
      const from: readonly string[] | null = after;
      const sent = await counter.sentDuring(() => page(from, FIRST));
      expect(await rowsRead(sent)).toBeLessThanOrEqual(MOST_ROWS);
      after = behind > 0 ? endOf(await page(null, behind)) : null;
      if (after === null) break;
    }
  }

  /** Of all tables and indexes, by the plan that the statement has in a session. */
  async function rowsRead(sent: readonly Sent[]): Promise<number> {
    expect(sent.length).toBeGreaterThan(0);
    let rows = 0;
    for (const { sql, values } of sent.filter((statement) => /LIMIT/.test(statement.sql))) {
      const literals = values.map((value) => (value === null ? "NULL" : `'${value.replaceAll("'", "''")}'`));
      await explaining.query(`PREPARE page AS ${sql}`);
      const { rows: answer } = await explaining.query<{ "QUERY PLAN": [{ Plan: PlanNode }] }>(
        `EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE page (${literals})`,
      );
      await explaining.query("DEALLOCATE page");
      for (const { "QUERY PLAN": plan } of answer) rows += rowsOf(plan[0].Plan);
    }
    return rows;
  }
});

interface PlanNode {
  "Node Type": string;
  "Actual Rows": number;
  "Actual Loops": number;
  "Rows Removed by Filter"?: number;
  "Rows Removed by Index Recheck"?: number;
  "Relation Name"?: string;
  Plans?: PlanNode[];
}

function rowsOf(node: PlanNode): number {
  const { "Rows Removed by Filter": filtered = 0, "Rows Removed by Index Recheck": rechecked = 0, Plans = [] } = node;
  const own = node["Relation Name"] ? (node["Actual Rows"] + filtered + rechecked) * node["Actual Loops"] : 0;
  return Plans.reduce((sum, plan) => sum + rowsOf(plan), own);
}
