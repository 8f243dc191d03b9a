import "reflect-metadata";
import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { asApplication } from "../../src/database/application-role";
import { startEmbeddedPostgres } from "../../src/database/embedded/embedded-postgres";
import { migrate } from "../../src/database/migrate";
import { Secret } from "../../src/platform/secret";
import { onServer, serverUrl, TEMPLATE } from "./database";

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
  await onServer(`DROP DATABASE IF EXISTS ${TEMPLATE} WITH (FORCE)`);
  await onServer(`CREATE DATABASE ${TEMPLATE}`);
  const url = await asApplication(new Secret(serverUrl(TEMPLATE)));
  await migrate(url);
}
