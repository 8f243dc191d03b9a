import { readFileSync } from "node:fs";
import WebSocket from "ws";
import { tokenFor } from "../support/actors";
import type { Program } from "../support/processes";
import type { Service } from "../support/service";
import { subscribe } from "../support/sockets";
import { until } from "../support/stories";
import { useCrm } from "../support/world";

// Planted and seen red: results sent without waiting until the socket took the one before; what was read of each event kept
// for a second (deep set).

const EVENTS = process.env.DEEP ? 20_000 : 2_000;
/** Between two events, so that a reader is served a good part of them one by one. */
const PAUSE_SECONDS = 0.001;
/** Each message is large, so that what the kernel's buffers hold for a stalled reader is little beside all of them. */
const ALIASES = 30;
/** What the healthy reader's events read from the database is small. */
const MESSAGE_BYTES = 1_200;
/** All messages together are more than twice as much. */
const MOST_GROWTH_BYTES = 60 * 1024 * 1024;

let program: Program;
let service: Service;
let busy: number;

const { world, database } = useCrm({ deals: 10 });
beforeAll(async () => {
  busy = await database.tenantId("busy");
  await database.query(
    `INSERT INTO connection (tenant_id, state, state_changed_at, trouble_code, trouble_message, trouble_since, trouble_last_seen_at)
     VALUES ($1, 'NOT_CONNECTED', now(), 'CRM_UNAVAILABLE', repeat('x', ${MESSAGE_BYTES}), now(), now())`,
    [busy],
  );
  // Otherwise what is young, and held by nobody, takes 70 MB in Node 24 before it is looked at, and 200 MB later.
  ({ program, service } = await world.startProcess({ ROLES: "api", NODE_OPTIONS: "--max-semi-space-size=16" }));
});

const large = Array.from({ length: ALIASES }, (_, index) => `trouble${index}: trouble { message }`).join(" ");
const LARGE = `subscription { connectionStatusChanged { ${large} } }`;

/** Subscribes, takes the first message and then reads nothing more. */
async function stalledReader(): Promise<WebSocket> {
  const init = { type: "connection_init", payload: { authorization: `Bearer ${await tokenFor({ tenant: "busy" })}` } };
  // Nothing is awaited between the socket and its listeners: it could open meanwhile, and nobody would hear.
  const socket = new WebSocket(`${service.url.replace("http", "ws")}/graphql`, "graphql-transport-ws");
  await new Promise<void>((resolve, reject) => {
    socket.on("error", reject);
    socket.on("close", (code) => reject(new Error(`the socket was closed with ${code}`)));
    socket.on("open", () => socket.send(JSON.stringify(init)));
    socket.on("message", (data) => {
      const { type } = JSON.parse(String(data));
      if (type === "connection_ack")
        socket.send(JSON.stringify({ id: "1", type: "subscribe", payload: { query: LARGE } }));
      if (type === "next") resolve();
    });
  });
  socket.pause();
  return socket;
}

function residentBytes(): number {
  const status = readFileSync(`/proc/${program.child.pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
}

test("a reader that stops reading while thousands of events pass costs nothing, and others are served", async () => {
  const query = "subscription { connectionStatusChanged { state trouble { code } } }";
  const healthy = await subscribe<object>(service.url, query, { as: { tenant: "busy" } });
  await until("the healthy reader sees the present state", async () => healthy.results.length > 0);
  const stalled = await stalledReader();
  const before = residentBytes();
  await database.query(`DO $$ BEGIN FOR i IN 1..${EVENTS} LOOP
    PERFORM pg_notify('connection_changed', '${busy}'); COMMIT; PERFORM pg_sleep(${PAUSE_SECONDS}); END LOOP; END $$`);
  const seen = healthy.results.length;
  await database.query(`SELECT pg_notify('connection_changed', '${busy}')`);
  await until("the healthy reader sees a later change", async () => healthy.results.length > seen);
  const growth = residentBytes() - before;
  process.stdout.write(
    `[slow subscriber] the process grew by ${Math.round(growth / 1024 / 1024)} MB; the healthy reader got ${healthy.results.length} messages\n`,
  );
  expect(growth).toBeLessThan(MOST_GROWTH_BYTES);
  expect((await fetch(`${service.url}/readyz`)).status).toBe(200);
  stalled.terminate();
  await healthy.end();
}, 120_000);
