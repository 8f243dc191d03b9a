import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../src/database/embedded/embedded-postgres";
import { findBinaries, isAlive, unprivileged } from "../src/database/embedded/programs";
import { withClient } from "./tenants";

const LOOK_MS = 100;
/** PostgreSQL does not start while sessions of a killed one live, and then reads its log. */
const START_TRIES = 300;

/** A server that keeps a million records in its memory, as one for so many would: PostgreSQL's default is 128 MB. */
export async function startRoomyPostgres(directory: string): Promise<EmbeddedPostgres> {
  const options = { directory, durable: false };
  const first = await startEmbeddedPostgres(options);
  await withClient(first.url.reveal(), (client) => client.query("ALTER SYSTEM SET shared_buffers = '2GB'"));
  await first.stop();
  return startEmbeddedPostgres(options);
}

/** A new, empty database on the benchmark's server. @returns its address */
export async function createDatabase(serverUrl: string, name: string): Promise<string> {
  await withClient(serverUrl, (client) => client.query(`CREATE DATABASE ${name}`));
  return addressOf(serverUrl, name);
}

const addressOf = (serverUrl: string, name: string) => Object.assign(new URL(serverUrl), { pathname: name }).href;

/** The addresses of a server's nodes: its own, and where its database is a Citus coordinator's those of the workers. */
export function nodesOf(serverUrl: string): Promise<string[]> {
  return withClient(serverUrl, async (client) => {
    const citus = await client.query("SELECT FROM pg_extension WHERE extname = 'citus'");
    if (citus.rowCount === 0) return [serverUrl];
    const { rows } = await client.query<{ host: string }>(
      "SELECT nodename || ':' || nodeport AS host FROM pg_dist_node ORDER BY groupid",
    );
    return rows.map(({ host }) => Object.assign(new URL(serverUrl), { host }).href);
  });
}

/** A new, empty database on each of the nodes, which know each other. @returns its address on the first */
export async function createOnNodes(nodes: readonly string[], name: string): Promise<string> {
  const addresses = await Promise.all(nodes.map((node) => createDatabase(node, name)));
  const [coordinator = "", ...workers] = addresses;
  if (workers.length === 0) return coordinator;
  await Promise.all(
    addresses.map((address) => withClient(address, (client) => client.query("CREATE EXTENSION citus"))),
  );
  const { hostname, port } = new URL(coordinator);
  await withClient(coordinator, async (client) => {
    await client.query(`SELECT citus_set_coordinator_host('${hostname}', ${port})`);
    for (const worker of workers.map((address) => new URL(address))) {
      await client.query(`SELECT citus_add_node('${worker.hostname}', ${worker.port})`);
    }
  });
  return coordinator;
}

export async function dropOnNodes(nodes: readonly string[], name: string): Promise<void> {
  for (const node of nodes) {
    await withClient(node, (client) => client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`));
  }
}

/** Where the nodes, all on this machine, keep their data. */
export function dataDirectoriesOf(nodes: readonly string[]): Promise<string[]> {
  return Promise.all(
    nodes.map((node) =>
      withClient(node, async (client) => {
        const { rows } = await client.query<{ data_directory: string }>("SHOW data_directory");
        return rows[0]?.data_directory ?? "";
      }),
    ),
  );
}

const processOf = (directory: string) => {
  const file = join(directory, "data", "postmaster.pid");
  return existsSync(file) ? Number(readFileSync(file, "utf8").split("\n")[0]) : 0;
};

/** Kills the embedded server of the directory as a crash would, and starts it again at the same address. */
export async function crashPostgres(directory: string, databaseUrl: string, awayMs: number): Promise<void> {
  process.kill(processOf(directory), "SIGKILL");
  await sleep(awayMs);
  const data = resolve(directory, "data");
  const settings = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=200"];
  const args = ["-D", data, "-p", new URL(databaseUrl).port, ...settings.flatMap((setting) => ["-c", setting])];
  const { command, args: all, uid, gid } = unprivileged(findBinaries().postgres, args, data, true);
  let ended: Promise<unknown> | null = null;
  for (let tries = 0; tries < START_TRIES; tries += 1) {
    ended ??= once(spawn(command, all, { uid, gid, detached: true, stdio: "ignore" }), "exit");
    if (await withClient(databaseUrl, async () => true).catch(() => false)) return;
    const hasEnded = await Promise.race([sleep(LOOK_MS), ended.then(() => "ended")]);
    if (hasEnded) ended = null;
  }
  throw new Error("PostgreSQL did not start again");
}

/** Ends a server that `crashPostgres` has started. */
export async function endServer(directory: string): Promise<void> {
  const pid = processOf(directory);
  if (pid > 0 && isAlive(pid)) process.kill(pid, "SIGINT");
  for (let tries = 0; tries < START_TRIES && pid > 0 && isAlive(pid); tries += 1) await sleep(LOOK_MS);
}
