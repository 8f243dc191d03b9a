import { rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { holdCopyToJudge } from "../src/connections/copies";
import { CrmApi } from "../src/crm/api";
import { CrmHttp } from "../src/crm/http";
import type { CrmDeal } from "../src/crm/parsing/records";
import { startEmbeddedPostgres } from "../src/database/embedded/embedded-postgres";
import { Secret } from "../src/platform/keyring";
import { NO_CRM } from "./api-filled";
import { median } from "./api-load";
import { serverCpuSeconds } from "./cpu";
import { createDatabase, dataDirectoriesOf } from "./database";
import { accessToken } from "./grant";
import { column, failed, ratio, say } from "./print";
import { startCrm, startService } from "./processes";
import { withClient } from "./tenants";

/** As many as the CRM gives at once. */
const PAGE = 500;
const PAIRS = 21;
/** Pairs that are not counted: a process is warm. */
const WARM_UP = 3;
const CRM_DEALS = 1_000;
const [TENANT, COPY] = [1, 1];

/** What a version writes pages of deals with. */
type Version = Pick<typeof import("../src/sync/writers"), "writeDeals"> &
  Pick<typeof import("../src/entities"), "entities"> &
  Pick<typeof import("../src/database/data-source"), "createDataSource"> &
  Pick<typeof import("../src/database/database"), "Database">;

const PROGRAMS = ["sync/writers.js", "entities/index.js", "database/data-source.js", "database/database.js"];

async function versionOf(checkout: string): Promise<Version> {
  const addresses = PROGRAMS.map((name) => pathToFileURL(resolve(checkout, "dist/src", name)).href);
  return Object.assign({}, ...(await Promise.all(addresses.map((address) => import(address)))));
}

/** What became of each deal of a page since it was last read. */
const KINDS: Record<string, (deal: CrmDeal, round: number) => Partial<CrmDeal>> = {
  nothing: () => ({}),
  "a field that the journal leaves out": (_, round) => ({ customFields: { field: `${round}` } }),
  "its stage": (_, round) => ({ stageId: (round % 5) + 1 }),
  "title, value, stage and owner": (_, round) => ({
    title: `Deal ${round}`,
    value: `${round}.5`,
    stageId: (round % 5) + 1,
    ownerId: round,
  }),
};

/** @returns commits a page, and says what that took: milliseconds, and CPU of the service and PostgreSQL */
async function committer({ writeDeals, Database, createDataSource, entities }: Version, databaseUrl: string) {
  const dataSource = await createDataSource({ url: new Secret(databaseUrl), entities }).initialize();
  const directories = await dataDirectoriesOf([databaseUrl]);
  const cpuMs = () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000 + 1_000 * directories.reduce((sum, at) => sum + serverCpuSeconds(at), 0);
  };
  const commit = async (read: () => Promise<CrmDeal[]>) => {
    const [asked, cpuAsked] = [performance.now(), cpuMs()];
    const write = writeDeals(await read(), 0);
    await new Database(dataSource).tenant(TENANT).transaction(async (scope) => {
      const copy = { ...scope, copyId: COPY };
      await holdCopyToJudge(scope, COPY);
      await write(copy, new Date());
    });
    return { ms: performance.now() - asked, cpuMs: cpuMs() - cpuAsked };
  };
  return { commit, end: () => dataSource.destroy() };
}

async function prepare(serverUrl: string): Promise<string> {
  const databaseUrl = await createDatabase(serverUrl, "journal");
  await (await startService({ crm: NO_CRM, databaseUrl, roles: "api" })).stop();
  await withClient(databaseUrl, async (client) => {
    await client.query("INSERT INTO tenant (id, external_id) VALUES (1, 'journal')");
    await client.query(
      "INSERT INTO synced_copy (tenant_id, id, crm_company_id, crm_user_id, state, created_at) VALUES ($1, $2, 1, 1, 'LIVE', now())",
      [TENANT, COPY],
    );
  });
  return databaseUrl;
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { checkout: { type: "string", default: "." } } });
  const directory = join(".data", `bench-${process.pid}`);
  const [server, { crm, stop }] = await Promise.all([
    startEmbeddedPostgres({ directory, durable: true }),
    startCrm(CRM_DEALS),
  ]);
  try {
    const databaseUrl = await prepare(server.url.reveal());
    const token = new Secret(await accessToken({ ...crm }));
    const tokens = { current: async () => token, renewed: async () => token };
    const api = new CrmApi({ http: new CrmHttp(), baseUrl: crm.CRM_BASE_URL, tokens });
    const [ours, theirs] = await Promise.all(
      [".", values.checkout].map(async (checkout) => committer(await versionOf(checkout), databaseUrl)),
    );
    if (!ours || !theirs) throw new Error("there is nothing to compare");
    say(`Medians of ${PAIRS} pages of ${PAGE} deals from request to commit, this version and ${values.checkout}`);
    say(`${"".padEnd(40)}${["ms", "", "ratio", "CPU, ms", "", "ratio"].map((head) => column(head, 9)).join("")}`);
    let round = 0;
    for (const [name, change] of Object.entries(KINDS)) {
      const costs = { ours: [] as { ms: number; cpuMs: number }[], theirs: [] as { ms: number; cpuMs: number }[] };
      for (let pair = -WARM_UP; pair < PAIRS; pair += 1) {
        for (const side of pair % 2 === 0 ? (["ours", "theirs"] as const) : (["theirs", "ours"] as const)) {
          round += 1;
          const page = async () => {
            const { records } = await api.deals({ cursor: null });
            return records
              .slice(0, PAGE)
              .map((deal) => ({ ...deal, ...change(deal, round), updateTime: "2030-01-01T00:00:00Z" }));
          };
          const cost = await { ours, theirs }[side].commit(page);
          if (pair >= 0) costs[side].push(cost);
        }
      }
      const figures = (["ms", "cpuMs"] as const).flatMap((of) => {
        const [our, their] = [costs.ours, costs.theirs].map((found) => median(found.map((cost) => cost[of])));
        return [column(our ?? 0, 9), column(their ?? 0, 9), column(ratio(our ?? 0, their ?? 1), 9)];
      });
      say(`${name.padEnd(40)}${figures.join("")}`);
    }
    await Promise.all([ours.end(), theirs.end()]);
  } finally {
    await Promise.all([server.stop(), stop()]);
    rmSync(directory, { recursive: true, force: true });
  }
}

main().catch(failed);
