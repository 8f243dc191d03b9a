import { rmSync } from "node:fs";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { Rematching } from "../src/briefing/rematch";
import { createDataSource } from "../src/database/data-source";
import { Database } from "../src/database/database";
import { entities } from "../src/entities";
import { systemClock } from "../src/platform/clock";
import { Secret } from "../src/platform/keyring";
import { createLogger } from "../src/platform/logger";
import { createUneven, LARGE } from "./api-filled";
import { startRoomyPostgres } from "./database";
import { failed, say } from "./print";
import { withClient } from "./tenants";

const RESOLUTION_MS = 1;
const ROUNDS = 3;
/** Meetings that become town halls, and how many more attend each. */
const [HALLS, MORE] = [100, 490];
const ADDRESS = "'p' || crm_id || '@company' || organization_id || '.example'";

/** All of the tenant's 4,000 meetings were in the last 25 days, and their attendees have addresses that lead to them. */
const LEADS = `
  INSERT INTO person_address (tenant_id, copy_id, person_id, address, mailbox, domain)
    SELECT tenant_id, copy_id, crm_id, ${ADDRESS}, ${ADDRESS}, 'company' || organization_id || '.example' FROM person WHERE tenant_id = ${LARGE};
  UPDATE meeting_attendee SET email = 'p' || person_id || '@company' || organization_id || '.example'
    WHERE tenant_id = ${LARGE} AND person_id IS NOT NULL;
  UPDATE meeting SET starts_at = now() - random() * interval '25 days' WHERE tenant_id = ${LARGE};
  INSERT INTO sync_run (tenant_id, id, copy_id, kind, state, queued_at, finished_at)
    VALUES (${LARGE}, md5('run')::uuid, ${LARGE}, 'INCREMENTAL', 'SUCCEEDED', now(), now());
  INSERT INTO sync_step (tenant_id, run_id, resource, state, written) VALUES (${LARGE}, md5('run')::uuid, 'DEALS', 'SUCCEEDED', 1);
  ANALYZE`;
const TOWN_HALLS = `
  INSERT INTO meeting_attendee (tenant_id, meeting_id, position, email, side, match_status, match_reason, candidate_ids, organization_status)
  SELECT ${LARGE}, m.id, 10 + g, 'p' || p || '@company' || (p - 1) / 3 + 1 || '.example', 'BUYER', 'NONE', '', '{}', 'NONE'
  FROM (SELECT id, row_number() OVER (ORDER BY starts_at DESC) AS n FROM meeting WHERE tenant_id = ${LARGE}) m,
    generate_series(1, ${MORE}) g, LATERAL (SELECT (m.n * 173 + g * 7) % 18000 + 1 AS p) p
  WHERE m.n <= ${HALLS}`;
const DUE = `UPDATE synced_copy SET matched_as_whole = true WHERE tenant_id = ${LARGE};
  UPDATE sync_run SET rematched = false WHERE tenant_id = ${LARGE}`;

/** What looking through 4,000 meetings costs after a sync that changes none, and for how long it holds the process. */
async function main(): Promise<void> {
  const directory = join(".data", `bench-${process.pid}`);
  const server = await startRoomyPostgres(directory);
  try {
    const databaseUrl = await createUneven(server.url.reveal());
    const change = (sql: string) => withClient(databaseUrl, (client) => client.query(sql));
    const dataSource = await createDataSource({ url: new Secret(databaseUrl), entities }).initialize();
    const rematching = new Rematching(new Database(dataSource), systemClock, createLogger("silent"));
    const look = async (name: string) => {
      await change(DUE);
      const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
      const [began, cpuBefore] = [performance.now(), process.cpuUsage()];
      delay.enable();
      await rematching.run(LARGE, new AbortController().signal);
      delay.disable();
      const { user, system } = process.cpuUsage(cpuBefore);
      const took = `${((performance.now() - began) / 1_000).toFixed(1)} s, own CPU ${((user + system) / 1e6).toFixed(1)} s`;
      say(`${name.padEnd(28)} ${took}, longest turn ${(delay.max / 1e6 - RESOLUTION_MS).toFixed(0)} ms`);
    };
    for (const [name, sql] of Object.entries({ "4,000 meetings": LEADS, "100 of them town halls": TOWN_HALLS })) {
      await change(sql);
      await look(`${name}, matched anew`);
      for (let round = 0; round < ROUNDS; round += 1) await look(name);
    }
    await dataSource.destroy();
  } finally {
    await server.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

main().catch(failed);
