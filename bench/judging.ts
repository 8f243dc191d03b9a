import { rmSync } from "node:fs";
import { join } from "node:path";
import { judgeChanged } from "../src/briefing/quiet/stored-silence";
import { holdCopyToJudge } from "../src/connections/copies";
import type { CrmDeal } from "../src/crm/parsing/records";
import { createDataSource } from "../src/database/data-source";
import { Database, type TenantScope } from "../src/database/database";
import { startEmbeddedPostgres } from "../src/database/embedded/embedded-postgres";
import { entities } from "../src/entities";
import { DealRow } from "../src/entities/deal";
import { Secret } from "../src/platform/keyring";
import { writeDeals } from "../src/sync/writers";
import { NO_CRM } from "./api-filled";
import { median } from "./api-load";
import { fill, judgeTenants } from "./briefing-data";
import { serverCpuSeconds } from "./cpu";
import { createDatabase, dataDirectoriesOf } from "./database";
import { column, failed, ratio, say } from "./print";
import { startService } from "./processes";
import { withClient } from "./tenants";

/** A tenant with 12,000 matched deals. */
const FILLING = { from: 1, to: 1, times: 100 };
/** As many as the CRM gives at once. */
const PAGE = 500;
const PAIRS = 9;

const DAY_MS = 86_400_000;
const text = (instant: Date | null) => instant?.toISOString() ?? null;

/** What somebody changed of each: a value, on which no verdict hangs, or the stage. */
const KINDS = ["value", "stage"] as const;
type Kind = (typeof KINDS)[number];

/** As the CRM would send them after somebody touched each. */
async function changedDeals({ tenantId, entities: read }: TenantScope, round: number, kind: Kind): Promise<CrmDeal[]> {
  const sql = "SELECT t.* FROM deal t WHERE t.tenant_id = $1 AND t.copy_id = $1 ORDER BY crm_id LIMIT $2 OFFSET $3";
  const rows = await read(DealRow, sql, [tenantId, PAGE, (round % 20) * PAGE]);
  return rows.map(({ tenantId: _, copyId, crmId, value, participantsDue, participantsKnown, ...deal }) => ({
    id: crmId,
    ...deal,
    value: String(Number(value) + 1),
    deleted: false,
    stageChangeTime: kind === "stage" ? new Date(Date.now() + round).toISOString() : text(deal.stageChangeTime),
    wonTime: text(deal.wonTime),
    lostTime: text(deal.lostTime),
    closeTime: text(deal.closeTime),
    addTime: text(deal.addTime),
    updateTime: new Date(Date.now() + round * DAY_MS).toISOString(),
  }));
}

/** What the transaction of a page of changed deals takes with their judging and without, in turn. */
async function main(): Promise<void> {
  const directory = join(".data", `bench-${process.pid}`);
  const server = await startEmbeddedPostgres({ directory, durable: true });
  try {
    const databaseUrl = await createDatabase(server.url.reveal(), "judging");
    await (await startService({ crm: NO_CRM, databaseUrl, roles: "api" })).stop();
    await withClient(databaseUrl, async (client) => {
      await fill(client, FILLING);
      // The CRM's instants have no part of a millisecond.
      const instants = ["add_time", "stage_change_time"].map((name) => `${name} = date_trunc('second', ${name})`);
      await client.query(`UPDATE deal SET ${instants}`);
      await client.query("ANALYZE");
    });
    await judgeTenants(databaseUrl, FILLING);
    await withClient(databaseUrl, (client) => client.query("VACUUM ANALYZE"));
    for (const [index, kind] of KINDS.entries())
      await compare(databaseUrl, await dataDirectoriesOf([databaseUrl]), kind, 100 * index);
  } finally {
    await server.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

interface Cost {
  ms: number;
  cpuMs: number;
}

async function compare(
  databaseUrl: string,
  dataDirectories: readonly string[],
  kind: Kind,
  from: number,
): Promise<void> {
  const dataSource = await createDataSource({ url: new Secret(databaseUrl), entities }).initialize();
  const scope = new Database(dataSource).tenant(FILLING.from);
  const cpuMs = () =>
    1000 * dataDirectories.reduce((sum, at) => sum + serverCpuSeconds(at), 0) + process.cpuUsage().user / 1000;
  const page = async (round: number, judges: boolean): Promise<Cost> => {
    const deals = await changedDeals(scope, round, kind);
    const [began, before] = [performance.now(), cpuMs()];
    await scope.transaction(async (transaction) => {
      const copy = { ...transaction, copyId: FILLING.from };
      await holdCopyToJudge(transaction, copy.copyId);
      const { ids } = await writeDeals(deals, 0)(copy);
      if (ids.length !== PAGE) throw new Error("not all deals of the page were written");
      if (judges) await judgeChanged(copy, "DEALS", ids, [], new Date());
    });
    return { ms: performance.now() - began, cpuMs: cpuMs() - before };
  };
  try {
    say(["with", "without", "ratio", "CPU with", "without", "ratio"].map((head) => column(head)).join(""));
    const ratios: Cost[] = [];
    for (let pair = -2; pair < PAIRS; pair += 1) {
      const [one, other] = [
        await page(from + 2 * pair + 10, pair % 2 === 0),
        await page(from + 2 * pair + 11, pair % 2 !== 0),
      ];
      const [withIt, without] = pair % 2 === 0 ? [one, other] : [other, one];
      if (pair < 0) continue;
      const figures = [withIt.ms, without.ms].map((ms) => ms.toFixed(1));
      const cpu = [withIt.cpuMs, without.cpuMs].map((ms) => ms.toFixed(0));
      const row = [...figures, ratio(withIt.ms, without.ms), ...cpu, ratio(withIt.cpuMs, without.cpuMs)];
      say(row.map((figure) => column(figure)).join(""));
      ratios.push({ ms: withIt.ms / without.ms, cpuMs: withIt.cpuMs / without.cpuMs });
    }
    const [ms, cpu] = [median(ratios.map((of) => of.ms)), median(ratios.map((of) => of.cpuMs))];
    say(
      `${PAGE} deals of which the ${kind} changed, median of ${PAIRS} pairs, with judging : without: time ${ms.toFixed(2)}, CPU ${cpu.toFixed(2)}`,
    );
  } finally {
    await dataSource.destroy();
  }
}

main().catch(failed);
