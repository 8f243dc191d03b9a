import { rmSync } from "node:fs";
import { join } from "node:path";
import { readVisibility } from "../src/connections/visibility";
import { asApplication } from "../src/database/application-role";
import { createDataSource, migrate } from "../src/database/data-source";
import { Database } from "../src/database/database";
import { startEmbeddedPostgres } from "../src/database/embedded/embedded-postgres";
import { entities } from "../src/entities";
import { Secret } from "../src/platform/keyring";
import { median } from "./api-load";
import { createDatabase } from "./database";
import { failed, say, whole } from "./print";
import { withClient } from "./tenants";

const DEALS = 100_000;
const USERS = 200;
const ROUNDS = 25;

/** A copy of one company; of every twentieth user nothing is seen. */
const COMPANY = [
  "INSERT INTO tenant (id, external_id) VALUES (1, 'large')",
  `INSERT INTO crm_user SELECT 1, 1, g, 'User ' || g, g || '@seller.example', NULL, true FROM generate_series(1, ${USERS}) g`,
  "INSERT INTO pipeline SELECT 1, 1, g, 'Pipeline ' || g, g FROM generate_series(1, 5) g",
  `INSERT INTO organization (tenant_id, copy_id, crm_id, name, owner_id, custom_fields)
   SELECT 1, 1, g, 'Company ' || g, o.id, '{}' FROM generate_series(1, ${DEALS / 5}) g, LATERAL (SELECT g % ${USERS} + (g % 20 = 0)::int AS id) o`,
  `INSERT INTO person (tenant_id, copy_id, crm_id, name, owner_id, emails, phones, custom_fields)
   SELECT 1, 1, g, 'Person ' || g, g % ${USERS} + (g % 20 = 0)::int, '[]', '[]', '{}' FROM generate_series(1, ${DEALS}) g`,
  `INSERT INTO deal (tenant_id, copy_id, crm_id, title, status, owner_id, pipeline_id, participants_due, participants_known, custom_fields)
   SELECT 1, 1, g, 'Deal ' || g, CASE g % 3 WHEN 0 THEN 'won' ELSE 'open' END, g % ${USERS} + (g % 20 = 0)::int, g % 5 + 1, false, true,
     '{"40characterhashforcustomfieldidentifier": "A value of some length, as companies have some of them"}'
   FROM generate_series(1, ${DEALS}) g`,
  "ANALYZE",
];

async function main(): Promise<void> {
  const directory = join(".data", `bench-visibility-${process.pid}`);
  const server = await startEmbeddedPostgres({ directory, durable: false });
  try {
    const owner = new Secret(await createDatabase(server.url.reveal(), "visibility"));
    const url = await asApplication(owner);
    await migrate(url);
    await withClient(owner.reveal(), async (client) => {
      for (const sql of COMPANY) await client.query(sql);
    });
    const dataSource = createDataSource({ url, entities });
    await dataSource.initialize();
    const copy = { ...new Database(dataSource).tenant(1), copyId: 1 };
    const took: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const began = performance.now();
      const { deals, unseenIds } = await readVisibility(copy);
      took.push(performance.now() - began);
      if (deals !== DEALS || unseenIds.length === 0) throw new Error("the report is not what was filled in");
    }
    say(`the report over ${whole(DEALS)} deals, ${whole(DEALS)} persons, ${whole(DEALS / 5)} organizations:`);
    say(`  median ${whole(median(took))} ms, slowest ${whole(Math.max(...took))} ms of ${ROUNDS}`);
    await dataSource.destroy();
  } finally {
    await server.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

main().catch(failed);
