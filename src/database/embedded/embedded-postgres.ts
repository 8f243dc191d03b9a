import { type ChildProcess, execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { Client } from "pg";
import { messageOf } from "../../platform/errors";
import { Secret } from "../../platform/keyring";
import { type Binaries, EmbeddedPostgresError, findBinaries, freePort, isAlive, unprivileged } from "./programs";

const START_TIMEOUT_MS = 30_000;
const SMART_STOP_MS = 1_000;
const STOP_TIMEOUT_MS = 10_000;
const POLL_MS = 25;
/** Another process may take the port between our choice and PostgreSQL's bind. */
const PORT_TRIES = 5;
const KEPT_LOG_LINES = 20;

export interface EmbeddedPostgres {
  url: Secret;
  stop(): Promise<void>;
}

export interface EmbeddedOptions {
  /** Holds the data, its password and the owner's process id; made where it is missing. */
  directory: string;
  /** False gives up durability for speed: for data that is thrown away. */
  durable: boolean;
}

/**
 * Starts PostgreSQL in `directory` on a free loopback port and waits until it answers.
 * @throws EmbeddedPostgresError with what to do
 */
export async function startEmbeddedPostgres(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const directory = resolve(options.directory);
  const binaries = findBinaries();
  try {
    mkdirSync(directory, { recursive: true });
    await takeOwnership(directory);
  } catch (cause) {
    if (cause instanceof EmbeddedPostgresError) throw cause;
    const todo = "Start it in a folder that it may write to, or set DATABASE_URL.";
    throw new EmbeddedPostgresError(`No database can be kept in ${directory}: ${messageOf(cause)}. ${todo}`, { cause });
  }
  const password = passwordOf(directory);
  if (!existsSync(join(directory, "data"))) await initialize(binaries, directory);
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePort();
    const server = launch(binaries, directory, port, options.durable);
    const url = `postgresql://postgres:${password}@127.0.0.1:${port}/postgres`;
    try {
      await untilReady(server, url);
      return { url: new Secret(url), stop: () => stop(server, directory) };
    } catch (error) {
      await stop(server, directory);
      if (attempt === PORT_TRIES || !messageOf(error).includes("Address already in use")) throw error;
      writeFileSync(join(directory, "owner.pid"), String(process.pid));
    }
  }
}

/** One process owns the directory. A server that outlived a killed owner is stopped first. */
async function takeOwnership(directory: string): Promise<void> {
  const file = join(directory, "owner.pid");
  const owner = existsSync(file) ? Number(readFileSync(file, "utf8")) : 0;
  if (owner && owner !== process.pid && isAlive(owner)) {
    throw new EmbeddedPostgresError(
      `The embedded database in ${directory} is in use by process ${owner}. Stop that process, or set DATABASE_URL.`,
    );
  }
  const lock = join(directory, "data", "postmaster.pid");
  const orphan = existsSync(lock) ? Number(readFileSync(lock, "utf8").split("\n")[0]) : 0;
  if (owner && orphan && isAlive(orphan)) {
    process.kill(orphan, "SIGINT");
    for (let waited = 0; isAlive(orphan) && waited < STOP_TIMEOUT_MS; waited += POLL_MS) await sleep(POLL_MS);
  }
  writeFileSync(file, String(process.pid));
}

function passwordOf(directory: string): string {
  const file = join(directory, "password");
  if (!existsSync(file)) writeFileSync(file, randomBytes(24).toString("hex"), { mode: 0o600 });
  return readFileSync(file, "utf8");
}

/** Made aside and renamed: a killed initdb leaves nothing that looks like a database. */
async function initialize(binaries: Binaries, directory: string): Promise<void> {
  const fresh = join(directory, "initializing");
  const passwordFile = join(fresh, "..", "password");
  rmSync(fresh, { recursive: true, force: true });
  mkdirSync(fresh, { mode: 0o700 });
  const args = ["--pgdata", fresh, "--username=postgres", "--auth=scram-sha-256", `--pwfile=${passwordFile}`];
  args.push("--encoding=UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C", "--no-sync");
  const { command, args: full, uid, gid } = unprivileged(binaries.initdb, args, fresh, false);
  if (uid !== undefined) chmodSync(passwordFile, 0o644);
  try {
    await promisify(execFile)(command, full, { uid, gid, cwd: directory });
  } catch (cause) {
    throw new EmbeddedPostgresError(`The embedded PostgreSQL could not be set up: ${messageOf(cause)}`, { cause });
  } finally {
    chmodSync(passwordFile, 0o600);
  }
  renameSync(fresh, join(directory, "data"));
}

interface Server {
  process: ChildProcess;
  log: string[];
}

function launch(binaries: Binaries, directory: string, port: number, durable: boolean): Server {
  const data = join(directory, "data");
  const settings = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=200"];
  if (!durable) settings.push("fsync=off", "synchronous_commit=off", "full_page_writes=off");
  const args = ["-D", data, "-p", String(port), ...settings.flatMap((setting) => ["-c", setting])];
  const { command, args: full, uid, gid } = unprivileged(binaries.postgres, args, data, true);
  // In a session of its own: Ctrl-C is for this process, which stops the server when it has finished with it.
  const child = spawn(command, full, { uid, gid, cwd: directory, detached: true, stdio: ["ignore", "ignore", "pipe"] });
  const log: string[] = [];
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    log.push(...text.split("\n").filter(Boolean));
    log.splice(0, log.length - KEPT_LOG_LINES);
  });
  child.on("error", (error) => log.push(messageOf(error)));
  return { process: child, log };
}

async function untilReady(server: Server, url: string): Promise<void> {
  for (let waited = 0; waited < START_TIMEOUT_MS; waited += POLL_MS) {
    if (hasEnded(server)) break;
    const client = new Client({ connectionString: url });
    try {
      await client.connect();
      await client.end();
      return;
    } catch {
      await sleep(POLL_MS);
    }
  }
  throw new EmbeddedPostgresError(`The embedded PostgreSQL did not start:\n${server.log.join("\n")}`);
}

function hasEnded({ process: child }: Server): boolean {
  return child.exitCode !== null || child.signalCode !== null || child.pid === undefined;
}

/** PostgreSQL's smart shutdown lets sessions that are just leaving go; the fast one ends those that stay. */
async function stop(server: Server, directory: string): Promise<void> {
  if (!hasEnded(server)) {
    const ended = new Promise((resolve) => server.process.once("exit", resolve));
    server.process.kill("SIGTERM");
    const fast = setTimeout(() => server.process.kill("SIGINT"), SMART_STOP_MS);
    const forced = setTimeout(() => server.process.kill("SIGKILL"), STOP_TIMEOUT_MS);
    await ended;
    clearTimeout(fast);
    clearTimeout(forced);
  }
  rmSync(join(directory, "owner.pid"), { force: true });
}
