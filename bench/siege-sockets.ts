import { fork } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "graphql-ws";
import { SignJWT } from "jose";
import WebSocket from "ws";
import { startEmbeddedPostgres } from "../src/database/embedded/embedded-postgres";
import { NO_CRM } from "./api-filled";
import { load, quantile } from "./api-load";
import { createDatabase } from "./database";
import { megabytes, say, whole } from "./print";
import { type RunningService, residentBytes, startService } from "./processes";
import type { Attack } from "./siege-sockets-client";

const SOCKETS = 2_000;
const HONEST = 100;
const HONEST_USERS = 10;
const SECONDS = 25;
/** The siege is called off where the process has grown so much: it is lost, and other programs run on the machine. */
const LOST_BYTES = 1.5 * 1024 ** 3;
/** An honest client that has not been served within this is not served. */
const PATIENCE_MS = 10_000;
const PROBE_MS = 50;
const WARM_UP_ROUNDS = 6;
const WARM_UP_OF_USER = 40;
const WARM_UP_PAUSE_MS = 300;
const WARM_UP_SECONDS = 5;
const QUERY = "subscription { connectionStatusChanged { state } }";

function tokensFor(service: RunningService, names: readonly string[]): Promise<string[]> {
  const secret = new TextEncoder().encode(service.jwtSecret);
  return Promise.all(
    names.map((name) =>
      new SignJWT({ tenant: name, role: "admin", plan: "sales" })
        .setProtectedHeader({ alg: "HS256" })
        .setSubject(name)
        .setExpirationTime("1h")
        .sign(secret),
    ),
  );
}

interface Honest {
  /** Whether it was shown its state. */
  served: Promise<boolean>;
  stayed(): boolean;
  end(): void;
}

/** One try, as a page makes it. */
function honest(service: RunningService, token: string): Honest {
  let isOpen = true;
  let end: () => void = () => undefined;
  const served = new Promise<boolean>((resolve) => {
    setTimeout(() => resolve(false), PATIENCE_MS).unref();
    const client = createClient({
      url: `${service.url.replace("http", "ws")}/graphql`,
      webSocketImpl: WebSocket,
      connectionParams: { authorization: `Bearer ${token}` },
      retryAttempts: 0,
      on: {
        closed: () => {
          isOpen = false;
          resolve(false);
        },
      },
    });
    end = () => void client.dispose();
    client.subscribe(
      { query: QUERY },
      { next: () => resolve(true), error: () => resolve(false), complete: () => undefined },
    );
  });
  return { served, stayed: () => isOpen, end: () => end() };
}

async function probe(service: RunningService, until: () => boolean): Promise<{ took: number[]; most: number }> {
  const took: number[] = [];
  let most = 0;
  while (!until()) {
    const began = performance.now();
    await fetch(`${service.url}/healthz`, { signal: AbortSignal.timeout(PATIENCE_MS) }).catch(() => null);
    took.push(performance.now() - began);
    most = Math.max(most, residentBytes(service.pid));
    if (most > LOST_BYTES) break;
    await sleep(PROBE_MS);
  }
  return { took: took.sort((a, b) => a - b), most };
}

/** Ordinary sockets and requests come and go, so that what a process takes once is not counted as the siege's. */
async function warmUp(service: RunningService, users: readonly string[]): Promise<void> {
  for (let round = 0; round < WARM_UP_ROUNDS; round += 1) {
    const passing = users.flatMap((token) => Array.from({ length: WARM_UP_OF_USER }, () => honest(service, token)));
    const served = await Promise.all(passing.map((one) => one.served));
    if (!served.every(Boolean)) throw new Error("not everybody is served before the siege");
    for (const one of passing) one.end();
    await sleep(WARM_UP_PAUSE_MS);
  }
  const headers = { "content-type": "application/json", authorization: `Bearer ${users[0]}` };
  const request = () => ({ path: "/graphql", headers, body: '{"query":"{ viewer { userId } }"}' });
  await load({ name: "warm up", url: service.url, request }, WARM_UP_SECONDS);
}

async function attack(service: RunningService): Promise<void> {
  const hostile = await tokensFor(service, ["mallory", "mordred"]);
  const users = await tokensFor(
    service,
    Array.from({ length: HONEST_USERS }, (_, index) => `honest-${index}`),
  );
  const fresh = residentBytes(service.pid);
  await warmUp(service, users);
  const before = residentBytes(service.pid);
  const client = fork(join(__dirname, "siege-sockets-client.js"), { stdio: "inherit" });
  try {
    const orders: Attack = { port: Number(new URL(service.url).port), sockets: SOCKETS, tokens: hostile };
    client.send(orders);
    let over = false;
    const ends = sleep(SECONDS * 1_000).then(() => {
      over = true;
    });
    const probed = probe(service, () => over);
    await sleep(3_000);
    const clients: ReturnType<typeof honest>[] = [];
    while (clients.length < HONEST) {
      clients.push(honest(service, users[clients.length % users.length] ?? ""));
      await sleep(100);
    }
    const served = await Promise.all(clients.map((one) => one.served));
    const { took, most } = await Promise.race([probed, ends.then(() => probed)]);
    const answer = once(client, "message");
    client.send("ended");
    const [ended] = (await answer) as [number];
    say(
      `${whole(SOCKETS)} hostile sockets of one address for ${SECONDS} s; ended and opened anew ${whole(ended)} times`,
    );
    say(
      `  memory grew by ${megabytes(most - before)} at most, from ${megabytes(before)} resident (as it started: ${megabytes(fresh)})${most > LOST_BYTES ? " (called off)" : ""}`,
    );
    say(
      `  /healthz: p50 ${quantile(took, 0.5).toFixed(0)}, p99 ${quantile(took, 0.99).toFixed(0)} ms, ${whole(took.length)} asked`,
    );
    say(
      `  honest sockets served: ${served.filter(Boolean).length} of ${HONEST}; still open: ${clients.filter((one) => one.stayed()).length}`,
    );
  } finally {
    client.kill("SIGKILL");
  }
}

export async function siegeSockets(): Promise<void> {
  const directory = join(".data", `siege-${process.pid}`);
  const postgres = await startEmbeddedPostgres({ directory, durable: false });
  try {
    const databaseUrl = await createDatabase(postgres.url.reveal(), "siege_sockets");
    const service = await startService({ crm: NO_CRM, databaseUrl, roles: "api" });
    try {
      await attack(service);
    } finally {
      await service.stop();
    }
  } finally {
    await postgres.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}
