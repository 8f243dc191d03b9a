import { rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { judgeChanged } from "../src/briefing/quiet/stored-silence";
import { holdCopyToJudge } from "../src/connections/copies";
import { CrmApi } from "../src/crm/api";
import { CrmHttp } from "../src/crm/http";
import { createDataSource } from "../src/database/data-source";
import { Database } from "../src/database/database";
import { startEmbeddedPostgres } from "../src/database/embedded/embedded-postgres";
import { entities } from "../src/entities";
import { DealRow } from "../src/entities/deal";
import { ActivityRow, PersonRow } from "../src/entities/records";
import type { SyncResource } from "../src/entities/sync-run";
import { Secret } from "../src/platform/keyring";
import { oneAhead } from "../src/platform/work";
import { type Write, writeActivities, writeDeals, writePersons } from "../src/sync/writers";
import { NO_CRM } from "./api-filled";
import { median } from "./api-load";
import { fill, judgeTenants } from "./briefing-data";
import { serverCpuSeconds } from "./cpu";
import { createDatabase, dataDirectoriesOf } from "./database";
import { accessToken } from "./grant";
import { column, failed, ratio, say } from "./print";
import { startCrm, startService } from "./processes";
import { withClient } from "./tenants";

/** A tenant with 12,000 matched deals. */
const FILLING = { from: 1, to: 1, times: 100 };
/** As many as the CRM gives at once. */
const PAGE = 500;
const PAIRS = 9;
/** Pairs that are not counted: a worker is warm. */
const WARM_UP = 2;
const RUN_PAIRS = 3;
const PAGES_OF_RUN = 10;
/** How long a CRM takes for a page: the simulator on the same machine answers at once. */
const WAITS_MS = [0, 100, 200];
/** So that each list of the CRM fills a page. */
const CRM_DEALS = 1_000;
const DAY_MS = 86_400_000;

const text = (instant: Date | null) => instant?.toISOString() ?? null;

/** A page that comes from the CRM, and in the place of its records those of the copy, which somebody touched. */
interface Kind {
  name: string;
  resource: SyncResource;
  row: new () => object;
  /** @returns writes a page in the place of which these rows were changed, at an instant */
  read(api: CrmApi, rows: readonly object[], at: string): Promise<Write>;
}

const ALL = { cursor: null };
/** Each row beside a record that came. */
const beside = <C, R>(came: readonly C[], rows: readonly R[], merged: (record: C, row: R) => C) =>
  rows.flatMap((row, index) => (came[index] ? [merged(came[index], row)] : []));

const ofDeals = (name: string, isOfStage: boolean): Kind => ({
  name,
  resource: "DEALS",
  row: DealRow,
  async read(api, rows, at) {
    const { records } = await api.deals(ALL);
    const deals = beside(records, rows as DealRow[], (deal, row) => ({
      ...deal,
      id: row.crmId,
      status: row.status,
      personId: row.personId,
      participantsCount: 1,
      pipelineId: row.pipelineId,
      stageId: row.stageId,
      stageChangeTime: isOfStage ? at : text(row.stageChangeTime),
      addTime: text(row.addTime),
      updateTime: at,
    }));
    return writeDeals(deals, 0);
  },
});

const ofActivities = (name: string, doneTime: (row: ActivityRow) => string | null): Kind => ({
  name,
  resource: "ACTIVITIES",
  row: ActivityRow,
  async read(api, rows, at) {
    const { records } = await api.activities(ALL);
    const activities = beside(records, rows as ActivityRow[], (activity, row) => ({
      ...activity,
      id: row.crmId,
      subject: at,
      type: row.type,
      dealId: row.dealId,
      personId: row.personId,
      participantIds: [],
      done: true,
      dueDate: null,
      doneTime: doneTime(row),
      updateTime: at,
    }));
    return writeActivities(activities, 0);
  },
});

const ofPersons = (name: string, lastIncomingMailTime: (row: PersonRow) => string | null): Kind => ({
  name,
  resource: "PERSONS",
  row: PersonRow,
  async read(api, rows, at) {
    const { records } = await api.persons(ALL);
    const persons = beside(records, rows as PersonRow[], (person, row) => ({
      ...person,
      id: row.crmId,
      name: at,
      lastIncomingMailTime: lastIncomingMailTime(row),
      lastOutgoingMailTime: text(row.lastOutgoingMailTime),
      updateTime: at,
    }));
    return writePersons(persons, 0);
  },
});

const KINDS: Kind[] = [
  // No verdict hangs on what a deal is worth.
  ofDeals("deals, their values", false),
  ofDeals("deals, their stages", true),
  ofActivities("activities", () => new Date().toISOString()),
  ofActivities("their subjects", ({ doneAt }) => text(doneAt)),
  ofPersons("persons, their mail", () => new Date().toISOString()),
  ofPersons("their names", ({ lastIncomingMailTime }) => text(lastIncomingMailTime)),
];

interface Cost {
  /** From the request of the page to its commit, and of that the transaction. */
  pageMs: number;
  ms: number;
  /** Of both: the service's and PostgreSQL's. */
  pageCpuMs: number;
  cpuMs: number;
}

class Pages {
  #round = 0;

  constructor(
    private readonly database: Database,
    private readonly api: CrmApi,
    private readonly dataDirectories: readonly string[],
  ) {}

  async commit(kind: Kind, judges: boolean): Promise<Cost> {
    const read = await this.#next(kind);
    const [asked, cpuAsked] = [performance.now(), this.#cpuMs()];
    const write = await read();
    const [began, cpuBegan] = [performance.now(), this.#cpuMs()];
    await this.#write(kind, write, judges);
    const [ended, cpuEnded] = [performance.now(), this.#cpuMs()];
    return { pageMs: ended - asked, ms: ended - began, pageCpuMs: cpuEnded - cpuAsked, cpuMs: cpuEnded - cpuBegan };
  }

  /** Pages as a run takes them: the next is on its way while one is written. @returns milliseconds a page */
  async run(kind: Kind, judges: boolean, waitMs: number): Promise<number> {
    const reads: (() => Promise<Write>)[] = [];
    while (reads.length < PAGES_OF_RUN) reads.push(await this.#next(kind));
    const began = performance.now();
    for await (const write of oneAhead(answered(reads, waitMs))) await this.#write(kind, write, judges);
    return (performance.now() - began) / PAGES_OF_RUN;
  }

  /** Another page of the copy each time, and always later than what stands there. */
  async #next({ row, read }: Kind): Promise<() => Promise<Write>> {
    this.#round += 1;
    const tenant = this.database.tenant(FILLING.from);
    const { tableName } = tenant.metadata(row);
    const sql = `SELECT t.* FROM ${tableName} t WHERE t.tenant_id = $1 AND t.copy_id = $1 ORDER BY crm_id LIMIT $2 OFFSET $3`;
    const rows = await tenant.entities(row, sql, [FILLING.from, PAGE, (this.#round % 20) * PAGE]);
    const at = new Date(Date.now() + this.#round * DAY_MS).toISOString();
    return () => read(this.api, rows, at);
  }

  #write({ resource }: Kind, write: Write, judges: boolean): Promise<void> {
    return this.database.tenant(FILLING.from).transaction(async (scope) => {
      const copy = { ...scope, copyId: FILLING.from };
      await holdCopyToJudge(scope, copy.copyId);
      const { ids, touched, left } = await write({ ...copy, hasMatchedDeals: judges }, new Date());
      if (ids.length !== PAGE) throw new Error(`${ids.length} records of a page of ${PAGE} were written`);
      if (judges) await judgeChanged(copy, resource, touched, left, new Date());
    });
  }

  #cpuMs(): number {
    const { user, system } = process.cpuUsage();
    const server = this.dataDirectories.reduce((sum, at) => sum + serverCpuSeconds(at), 0);
    return 1000 * server + (user + system) / 1000;
  }
}

async function* answered(reads: readonly (() => Promise<Write>)[], waitMs: number): AsyncGenerator<Write> {
  for (const read of reads) {
    await sleep(waitMs);
    yield await read();
  }
}

/** The medians of what was measured of pages that are judged and of such that are not, in turn. */
async function inTurn<T>(pairs: number, measure: (judges: boolean) => Promise<T>, figures: ((found: T) => number)[]) {
  const found: { judged: T[]; not: T[] } = { judged: [], not: [] };
  for (let pair = -WARM_UP; pair < pairs; pair += 1) {
    for (const judges of pair % 2 === 0 ? [true, false] : [false, true]) {
      const one = await measure(judges);
      if (pair >= 0) found[judges ? "judged" : "not"].push(one);
    }
  }
  return figures.map((of) => {
    const [judged, not] = [median(found.judged.map(of)) ?? 0, median(found.not.map(of)) ?? 1];
    return `${column(judged, 8)}${column(not, 8)}${column(ratio(judged, not), 8)}`;
  });
}

/** What a page of changed records takes with its judging and without. */
async function compare(pages: Pages, kind: Kind): Promise<void> {
  const of = (["ms", "pageMs", "cpuMs", "pageCpuMs"] as const).map((name) => (cost: Cost) => cost[name]);
  const figures = await inTurn(PAIRS, (judges) => pages.commit(kind, judges), of);
  say(`${kind.name.padEnd(22)}${figures.join("")}`);
}

/** The same in runs, beside a CRM that takes so long for a page. */
async function compareRuns(pages: Pages, kind: Kind): Promise<void> {
  const figures: string[] = [];
  for (const waitMs of WAITS_MS)
    figures.push(...(await inTurn(RUN_PAIRS, (judges) => pages.run(kind, judges, waitMs), [Number])));
  say(`${kind.name.padEnd(22)}${figures.join("")}`);
}

async function prepare(serverUrl: string): Promise<string> {
  const databaseUrl = await createDatabase(serverUrl, "judging");
  await (await startService({ crm: NO_CRM, databaseUrl, roles: "api" })).stop();
  await withClient(databaseUrl, async (client) => {
    await fill(client, FILLING);
    // The CRM's instants have no part of a millisecond.
    const instants = {
      deal: ["add_time", "stage_change_time"],
      person: ["last_incoming_mail_time", "last_outgoing_mail_time"],
    };
    for (const [table, names] of Object.entries(instants))
      await client.query(`UPDATE ${table} SET ${names.map((name) => `${name} = date_trunc('second', ${name})`)}`);
    // As the pages have them, on which only one thing changes.
    const doneAt = "date_trunc('second', coalesce(done_at, add_time))";
    await client.query(
      `UPDATE activity SET done = true, due_at = NULL, due_has_time = false, done_at = ${doneAt}, happened_at = ${doneAt}`,
    );
    await client.query("ANALYZE");
  });
  await judgeTenants(databaseUrl, FILLING);
  await withClient(databaseUrl, (client) => client.query("VACUUM ANALYZE"));
  return databaseUrl;
}

async function main(): Promise<void> {
  const directory = join(".data", `bench-${process.pid}`);
  const [server, { crm, stop }] = await Promise.all([
    startEmbeddedPostgres({ directory, durable: true }),
    startCrm(CRM_DEALS),
  ]);
  try {
    const databaseUrl = await prepare(server.url.reveal());
    const dataSource = await createDataSource({ url: new Secret(databaseUrl), entities }).initialize();
    const token = new Secret(await accessToken({ ...crm }));
    const tokens = { current: async () => token, renewed: async () => token };
    const api = new CrmApi({ http: new CrmHttp(), baseUrl: crm.CRM_BASE_URL, tokens });
    const pages = new Pages(new Database(dataSource), api, await dataDirectoriesOf([databaseUrl]));
    say(`Medians of ${PAIRS} pages of ${PAGE} changed records, judged and not, milliseconds`);
    const heads = ["transaction", "from request to commit", "CPU of the first", "CPU of the second"];
    say(`${"".padEnd(22)}${heads.map((head) => head.padStart(24)).join("")}`);
    for (const kind of KINDS) await compare(pages, kind);
    say(`\nMedians of ${RUN_PAIRS} runs of ${PAGES_OF_RUN} such pages, milliseconds a page`);
    say(`${"the CRM takes".padEnd(22)}${WAITS_MS.map((ms) => `${ms} ms more`.padStart(24)).join("")}`);
    for (const kind of KINDS) await compareRuns(pages, kind);
    await dataSource.destroy();
  } finally {
    await Promise.all([server.stop(), stop()]);
    rmSync(directory, { recursive: true, force: true });
  }
}

main().catch(failed);
