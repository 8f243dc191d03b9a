import "reflect-metadata";
import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { asApplication } from "../../src/database/application-role";
import { migrate } from "../../src/database/data-source";
import { startEmbeddedPostgres } from "../../src/database/embedded/embedded-postgres";
import { withoutTransactionLimit } from "../../src/database/session-limits";
import { distribute } from "../../src/operator/commands";
import { Secret } from "../../src/platform/keyring";
import { createTemplate, onServer, serverUrl } from "./database";

/** The built program for tests that start processes, one server, and one migrated database that each test file clones. */
export default async function setUp(): Promise<void> {
  process.env.CRM_TEST_RUN = String(process.pid);
  execFileSync(process.execPath, ["node_modules/typescript/bin/tsc"], { stdio: "inherit" });
  if (process.env.TEST_DATABASE_URL) {
    process.env.CRM_TEST_SERVER_URL = process.env.TEST_DATABASE_URL;
  } else {
    const directory = `.data/test-${process.pid}`;
    const server = await startEmbeddedPostgres({ directory, durable: false });
    process.env.CRM_TEST_SERVER_URL = server.url.reveal();
    (globalThis as { stopTestServer?: () => Promise<void> }).stopTestServer = async () => {
      await server.stop();
      rmSync(directory, { recursive: true, force: true });
    };
  }
  const [server] = await onServer("SELECT current_setting('transaction_timeout', true) IS NULL AS is_old");
  // The service finds that out by itself; the pools of tests are told.
  if (server?.is_old) process.env.CRM_TEST_SERVER_URL = withoutTransactionLimit(new Secret(serverUrl())).reveal();
  process.env.CRM_TEST_WORKERS = (await findWorkers()).join();
  await createTemplate(async (url, isCluster) => {
    await migrate(await asApplication(url));
    if (isCluster) await distribute(url);
  });
}

/** Where the server's database is a Citus coordinator's, the whole suite runs on the cluster. */
async function findWorkers(): Promise<unknown[]> {
  const [found] = await onServer("SELECT to_regclass('pg_dist_node') IS NOT NULL AS citus");
  if (!found?.citus) return [];
  const nodes = await onServer(
    "SELECT nodename || ':' || nodeport AS name FROM pg_dist_node WHERE groupid > 0 ORDER BY groupid",
  );
  return nodes.map(({ name }) => name);
}
