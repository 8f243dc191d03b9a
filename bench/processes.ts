import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Stall } from "./heap-probe";

const DIST = join(__dirname, "..");
const { scripts } = JSON.parse(readFileSync(join(DIST, "../package.json"), "utf8")) as { scripts: { start: string } };
/** Node's own, as `npm start` gives them, so that what is measured is what runs. */
const SERVICE_FLAGS = scripts.start.split(" ").filter((word) => word.startsWith("--"));
/** A large company takes the simulator some seconds to make up. */
const START_TIMEOUT_MS = 120_000;
/** As compose.yaml gives a process to end: what is in hand is finished first. */
const STOP_TIMEOUT_MS = 75_000;
/** Linux counts a process's CPU time in hundredths of a second. */
const CLOCK_TICKS_PER_SECOND = 100;

/** The environment that `simulator` prints, by which others know it as their CRM. */
export type CrmEnvironment = Record<
  "CRM_BASE_URL" | "CRM_AUTH_URL" | "CRM_CLIENT_ID" | "CRM_CLIENT_SECRET" | "CRM_REDIRECT_URL",
  string
>;

export interface Started {
  child: ChildProcess;
  pid: number;
  /** What it said when it was ready. */
  line: string;
  stop(): Promise<void>;
}

export interface RunningCrm {
  crm: CrmEnvironment;
  pid: number;
  stop(): Promise<void>;
}

export async function startCrm(deals: number): Promise<RunningCrm> {
  const simulator = await start([join(DIST, "simulator/main.js"), "--deals", String(deals)], {}, "simulated CRM at");
  const settings = [...simulator.line.matchAll(/(CRM_[A-Z_]+)=(\S+)/g)].map(([, name, value]) => [name, value]);
  return { crm: Object.fromEntries(settings) as CrmEnvironment, pid: simulator.pid, stop: simulator.stop };
}

export interface RunningService extends Started {
  url: string;
  jwtSecret: string;
  /** Bytes that survive a full garbage collection. */
  liveHeap(): Promise<number>;
  /** For how many milliseconds its event loop has stood still at the longest, since this was asked before. */
  longestStall(): Promise<Stall>;
}

/** What processes of one deployment share. */
export interface Keys {
  jwtSecret: string;
  encryptionKeys: string;
}

export function makeKeys(): Keys {
  const key = randomBytes(32);
  return { jwtSecret: randomBytes(32).toString("base64url"), encryptionKeys: `bench:${key.toString("base64")}` };
}

export interface ServiceOptions {
  crm: CrmEnvironment;
  databaseUrl: string;
  roles?: "api,worker" | "api" | "worker";
  keys?: Keys;
  /** Node's own. */
  flags?: readonly string[];
  /** Another checkout of the service, built; this one without it. */
  checkout?: string;
  /** More of the service's settings. */
  settings?: Record<string, string>;
}

/** The service in a process of its own: API and worker, or one of them. */
export async function startService(options: ServiceOptions): Promise<RunningService> {
  const { crm, databaseUrl, roles = "api,worker", keys = makeKeys(), flags = [], checkout, settings } = options;
  const environment = {
    ...crm,
    PORT: "0",
    ROLES: roles,
    DATABASE_URL: databaseUrl,
    AUTH_JWT_SECRET: keys.jwtSecret,
    ENCRYPTION_KEYS: keys.encryptionKeys,
    LOG_LEVEL: "info",
    ...settings,
  };
  const dist = checkout === undefined ? DIST : resolve(checkout, "dist");
  const probe = ["--expose-gc", "--require", join(DIST, "bench/heap-probe.js")];
  const args = [...SERVICE_FLAGS, ...flags, ...probe, join(dist, "src/main.js")];
  const service = await start(args, environment, '"the service is up"');
  const { address } = JSON.parse(service.line) as { address: string | null };
  const probed = async <T>(what: "live heap" | "longest stall"): Promise<T> => {
    const answer = once(service.child, "message");
    service.child.send(what);
    return ((await answer) as [T])[0];
  };
  return {
    ...service,
    url: address ?? "",
    jwtSecret: keys.jwtSecret,
    liveHeap: () => probed("live heap"),
    longestStall: () => probed("longest stall"),
  };
}

/** Runs one of the benchmark's own programs to its end. @returns the last line that it printed */
export async function runToEnd(program: string, environment: Record<string, string>): Promise<string> {
  const child = launch([...SERVICE_FLAGS, join(DIST, "bench", program)], environment);
  let printed = "";
  child.stdout?.on("data", (chunk: Buffer) => {
    printed += chunk;
  });
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`${program} ended with ${code}: ${printed}`);
  return printed.trimEnd().split("\n").at(-1) ?? "";
}

function launch(args: readonly string[], environment: Record<string, string>): ChildProcess {
  const { PATH } = process.env;
  return spawn(process.execPath, args, {
    env: { PATH, ...environment },
    stdio: ["ignore", "pipe", "inherit", "ipc"],
  });
}

/** One of the benchmark's own servers, which prints the address it listens at. */
export async function startServer(program: string, environment: Record<string, string>, flags: readonly string[] = []) {
  const args = [...SERVICE_FLAGS, ...flags, join(DIST, "bench", program)];
  const server = await start(args, { NODE_ENV: "production", ...environment }, "listening at");
  return { ...server, url: `http://127.0.0.1:${/"port":(\d+)/.exec(server.line)?.[1]}` };
}

/** Waits for the line that says it is ready, and reads on so that the pipe never fills. */
function start(args: readonly string[], environment: Record<string, string>, readyWhen: string): Promise<Started> {
  const child = launch(args, environment);
  return new Promise((resolve, reject) => {
    const timeout = setTimeout(() => reject(new Error(`${args.at(-1)} did not start`)), START_TIMEOUT_MS).unref();
    let unread = "";
    child.once("exit", (code) => reject(new Error(`it ended with ${code} before it was ready: ${args.join(" ")}`)));
    child.stdout?.on("data", (chunk: Buffer) => {
      const lines = (unread + chunk).split("\n");
      unread = lines.pop() ?? "";
      const line = lines.find((text) => text.includes(readyWhen));
      if (line === undefined) return;
      clearTimeout(timeout);
      resolve({ child, pid: child.pid ?? 0, line, stop: () => stop(child) });
    });
  });
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  const force = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
  await ended;
  clearTimeout(force);
}

/** From /proc, so on Linux only. */
export const residentBytes = (pid: number) =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;

export interface ProcessUse {
  /** The most resident memory that the process ever had. */
  peakBytes: number;
  cpuSeconds: number;
}

/** From /proc, so on Linux only. */
export function useOf(pid: number | "self"): ProcessUse {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const afterName = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ") ?? [];
  const ticks = Number(afterName[11]) + Number(afterName[12]);
  return {
    peakBytes: Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) * 1024,
    cpuSeconds: ticks / CLOCK_TICKS_PER_SECOND,
  };
}
