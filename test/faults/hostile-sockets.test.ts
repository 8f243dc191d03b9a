import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../../src/database/embedded/programs";
import { MINUTE_MS } from "../../src/platform/clock";
import {
  MAX_FRAGMENTS,
  MAX_USER_SOCKETS,
  MOVING_BYTES,
  MOVING_OF_ADDRESS,
  SOCKET_MESSAGES_A_MINUTE,
  UNPROVEN_BYTES,
  UNPROVEN_MESSAGES,
  USER_MESSAGES_A_MINUTE,
  WAITING_OF_ADDRESS,
} from "../../src/server/bounds";
import { MAX_DIFFERENT } from "../../src/server/subscriptions";
import { type ActorClaims, tokenFor } from "../support/actors";
import { CONTINUED, frame, message, PING, PONG, RawPeer, TEXT, times, upgrade } from "../support/frames";
import type { Service } from "../support/service";
import { subscribe } from "../support/sockets";
import { until } from "../support/stories";
import { useCrm } from "../support/world";

// Planted and seen red: each limit made a thousand times as large, the payload of a ping allowed, the header of anyone believed,
// requests before the last one is answered let through, the bytes of answers not counted.

const QUERY = "subscription { connectionStatusChanged { state } }";
const PROXIES = ["127.0.0.1"];
const PLAIN_PING = message({ type: "ping" });
const LARGE_PING = message({ type: "ping", payload: { x: "x".repeat(60_000) } });
/** More than any limit of a minute lets through. */
const FLOOD = USER_MESSAGES_A_MINUTE;

/** For peers. It and the one behind a proxy have each counted nothing yet of their addresses and users. */
let service: Service;
let metricsPort: number;
const peers: RawPeer[] = [];

const { world, database, serve } = useCrm({ deals: 10 });
const behindProxy = serve({ roles: ["api"], config: { trustedProxies: PROXIES } });
beforeAll(async () => {
  metricsPort = await freePort();
  service = await world.startService({ roles: ["api"], config: { metricsPort } });
});
afterEach(() => {
  for (const peer of peers.splice(0)) peer.end();
});

/** What a limit of a minute lets through since then: so many at once, and as many again over each minute. */
const withWhatTimeGives = (aMinute: number, began: number) => aMinute * (1 + (performance.now() - began) / MINUTE_MS);

const kept = <P extends RawPeer>(peer: P): P => {
  peers.push(peer);
  return peer;
};
const stranger = async (headers = {}) => kept(await RawPeer.upgraded(service.url, headers));
const known = async (as: ActorClaims) => kept(await RawPeer.known(service.url, await tokenFor(as)));

async function ended(reason: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
  const line = text.split("\n").find((one) => one.startsWith(`connections_ended_total{reason="${reason}"}`));
  return Number(line?.split(" ").at(-1) ?? 0);
}

async function isServed(url = service.url, as: ActorClaims = {}): Promise<boolean> {
  const watching = await subscribe(url, QUERY, { as });
  await until("the honest client is shown its state", async () => watching.results.length > 0);
  await watching.end();
  return true;
}

test.each([["ping"], ["pong"]])(
  "a %s with a payload is a bad request, before and after connection_init",
  async (type) => {
    for (const peer of [await stranger(), await known({ sub: `payload-${type}` })]) {
      peer.socket.write(PLAIN_PING);
      await peer.told('"pong"');
      const before = peer.received.length;
      peer.socket.write(Buffer.concat([message({ type, payload: { x: "secret" } }), PLAIN_PING]));
      await peer.told("Invalid message received");
      // A close frame alone: what comes after it is not answered.
      expect([peer.count('"pong"'), peer.count("secret"), peer.closeCode]).toEqual([1, 0, 4400]);
      expect(peer.received.length - before).toBeLessThan(100);
    }
  },
);

test("a stranger that never reads and sends large pings is cut after its few bytes, and nothing is kept for it", async () => {
  const before = await ended("bytes");
  const peer = await stranger();
  peer.socket.pause();
  for (let sent = 0; sent < 50 && !peer.isClosed; sent += 1) {
    peer.socket.write(LARGE_PING);
    await sleep(1);
  }
  peer.socket.resume();
  await peer.closed;
  expect(peer.count("xxx")).toBe(0);
  expect(await ended("bytes")).toBe(before + 1);
});

test.each([
  ["messages", PLAIN_PING, '{"type":"pong"}'],
  ["WebSocket's own pings", frame(PING, "frame"), "frame"],
  ["pongs that nobody asked for", frame(PONG, "frame"), "never"],
  ["empty messages", frame(TEXT, ""), "Invalid message received"],
])(
  "a flood of %s is answered as often as the limit has it, before and after connection_init",
  async (title, one, answer) => {
    const isBad = answer.startsWith("Invalid");
    const cases: [RawPeer, number][] = [
      [await stranger(), UNPROVEN_MESSAGES],
      [await known({ sub: `flood-${title}` }), SOCKET_MESSAGES_A_MINUTE],
    ];
    for (const [peer, most] of cases) {
      const began = performance.now();
      peer.socket.write(times(FLOOD, one));
      await Promise.race([peer.closed, peer.told(isBad ? answer : "Too many messages in a minute")]);
      expect(peer.count(answer)).toBeLessThanOrEqual(isBad ? 1 : withWhatTimeGives(most, began));
      expect(peer.closeCode).toBe(isBad ? 4400 : 4429);
    }
  },
);

test("many sockets of one user share its messages", async () => {
  const sockets = Math.ceil(USER_MESSAGES_A_MINUTE / SOCKET_MESSAGES_A_MINUTE) + 3;
  const all = await Promise.all(Array.from({ length: sockets }, () => known({ sub: "many" })));
  const began = performance.now();
  for (const peer of all) peer.socket.write(times(SOCKET_MESSAGES_A_MINUTE, PLAIN_PING));
  await until("some of them are told", async () => all.some((peer) => peer.closeCode === 4429));
  await until("the others have their answers", async () =>
    all.every((peer) => peer.closeCode === 4429 || peer.count('"pong"') === SOCKET_MESSAGES_A_MINUTE),
  );
  const answered = all.reduce((sum, peer) => sum + peer.count('"pong"'), 0);
  expect(answered).toBeLessThanOrEqual(withWhatTimeGives(USER_MESSAGES_A_MINUTE, began));
  expect(await isServed(service.url, { sub: "another" })).toBe(true);
});

test.each([
  ["one message in very many frames", times(MAX_FRAGMENTS + 2, frame(CONTINUED, "x", { final: false })), 1008],
  ["one message in empty frames without end", times(5_000, frame(CONTINUED, "", { final: false })), null],
])("%s is no message", async (_title, fragments, code) => {
  const first = frame(TEXT, "x", { final: false });
  for (const peer of [await stranger(), await known({ sub: "fragments" })]) {
    peer.socket.write(Buffer.concat([first, fragments]));
    await peer.closed;
    if (code) expect(peer.closeCode).toBe(code);
  }
});

test("a frame that announces more than a message may have ends the socket before its bytes are there", async () => {
  for (const peer of [await stranger(), await known({ sub: "huge" })]) {
    peer.socket.write(frame(TEXT, "x", { announced: 2 ** 40 }));
    await until("it is told", async () => peer.closeCode === 1009);
    await peer.closed;
  }
});

test("a stranger's message of allowed length is not waited for beyond what connection_init needs", async () => {
  const peer = await stranger();
  peer.socket.write(frame(TEXT, "x".repeat(UNPROVEN_BYTES + 1), { announced: 60_000 }));
  await peer.closed;
  expect(peer.closeCode).toBeNull();
});

test("the sockets of a user have an end, with words, and other users have theirs", async () => {
  const sockets = await Promise.all(Array.from({ length: MAX_USER_SOCKETS }, () => known({ sub: "greedy" })));
  const one = kept(await RawPeer.upgraded(service.url));
  const authorization = `Bearer ${await tokenFor({ sub: "greedy" })}`;
  one.socket.write(message({ type: "connection_init", payload: { authorization } }));
  await one.told("You have too many sockets open");
  expect([one.closeCode, one.count("connection_ack"), await ended("user_sockets")]).toEqual([4429, 0, 1]);
  expect(sockets.filter((peer) => peer.isClosed)).toEqual([]);
  expect(await isServed(service.url, { sub: "modest" })).toBe(true);
  sockets[0]?.end();
  await until("there is room again", async () => !(await known({ sub: "greedy" })).isClosed);
});

/** One subscription of many, each of another document. */
const begins = (index: number) =>
  message({
    id: "x",
    type: "subscribe",
    payload: { query: `subscription { s${index}: connectionStatusChanged { state } }` },
  });
const ends = message({ id: "x", type: "complete" });

// Seen red: what the library did not know any more was told for ever, and soon the organization could open no other; an id
// so long that the close could not name it.
test("a subscription whose id comes again before it is begun closes its socket, and is told no longer", async () => {
  const as = { tenant: "again", role: "owner" } as const;
  for (let index = 0; index < MAX_DIFFERENT; index += 1) {
    const peer = await known(as);
    peer.socket.write(Buffer.concat([begins(index), ends, begins(index)]));
    await peer.told("Two subscriptions with one id");
    expect(peer.closeCode).toBe(4409);
    peer.end();
  }
  const longest = await known(as);
  const begun = message({ id: "ü".repeat(45), type: "subscribe", payload: { query: QUERY } });
  longest.socket.write(Buffer.concat([begun, begun]));
  await longest.told("already exists");
  expect(longest.closeCode).toBe(4409);
  await until("others have room", async () => {
    const { results, end } = await subscribe<{ state?: string }>(service.url, QUERY, { as });
    await until("it is answered", async () => results.length > 0);
    await end();
    return !JSON.stringify(results).includes("TOO_MANY");
  });
});

/** The first to come; and as many more than the limit come later. */
const FIRST = 50;
/** Connections that are opened at the same time: the first ones, and then quickly, before their time is over anyway. */
const BATCHES = [FIRST, ...Array<number>(4).fill(WAITING_OF_ADDRESS / 4), FIRST];

/** On a busy machine their time may be over first. */
const TRIES = 5;

/** @returns how many connections gave way; 0 where one of the oldest was told that its time is over */
async function cutOf(first: (port: number, index: number) => string): Promise<number> {
  for (const peer of peers.splice(0)) peer.end();
  const before = await ended("crowded");
  const port = Number(new URL(service.url).port);
  const all: RawPeer[] = [];
  for (const batch of BATCHES) {
    const some = Array.from({ length: batch }, () => kept(new RawPeer(service.url)));
    await Promise.all(some.map((peer) => peer.opened));
    for (const peer of some) peer.socket.write(first(port, all.push(peer) - 1));
  }
  const oldest = all.slice(0, FIRST);
  await until("the oldest have given way", async () => oldest.every((peer) => peer.isClosed));
  return oldest.every(({ closeCode }) => closeCode === null) ? (await ended("crowded")) - before : 0;
}

test.each<[string, (port: number, index: number) => string]>([
  ["connections that say nothing", () => ""],
  ["half-sent upgrades", (port) => upgrade(port, {}, true)],
  ["sockets that never say connection_init", (port, index) => (index < FIRST ? upgrade(port) : "")],
])(
  "of too many %s from one address the oldest give way, and honest ones are served before and after",
  async (_title, first) => {
    const honest = await subscribe<object>(service.url, QUERY, { as: { tenant: "honest" } });
    await until("it is shown its state", async () => honest.results.length > 0);
    let cut = 0;
    for (let tries = 0; tries < TRIES && cut < FIRST; tries += 1) cut = await cutOf(first);
    expect(cut).toBeGreaterThanOrEqual(FIRST);
    expect(await isServed()).toBe(true);
    const seen = honest.results.length;
    await database.query("SELECT pg_notify('connection_changed', id::text) FROM tenant WHERE external_id = 'honest'");
    await until("the one that was there first is told a change", async () => honest.results.length > seen);
    await honest.end();
  },
);

/** A request of which the body does not come. */
function slowBody(headers: Record<string, string> = {}): string {
  const all = { Host: "x", "Content-Type": "application/json", "Content-Length": "400000", ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `POST /graphql HTTP/1.1\r\n${lines.join("")}\r\n${"x".repeat(1_000)}`;
}

async function slowPeer(url: string, headers?: Record<string, string>): Promise<RawPeer> {
  const peer = kept(new RawPeer(url));
  await peer.opened;
  peer.socket.write(slowBody(headers));
  return peer;
}

test("of too many bodies that never come whole the oldest are cut, and a whole one is answered", async () => {
  const slow: RawPeer[] = [];
  while (slow.length < MOVING_OF_ADDRESS + 20) slow.push(await slowPeer(service.url));
  await until("the oldest are cut", async () => slow.filter((peer) => peer.isClosed).length === 20);
  expect(slow.slice(0, 20).every((peer) => peer.isClosed)).toBe(true);
  expect((await service.ask("{ viewer { userId } }")).status).toBe(200);
});

test("behind a trusted proxy each client is counted by itself, and the proxy's other connections are left alone", async () => {
  const quiet = kept(new RawPeer(behindProxy.url));
  await quiet.opened;
  const neighbour = await slowPeer(behindProxy.url, { "X-Forwarded-For": "203.0.113.9" });
  const crowd: RawPeer[] = [];
  while (crowd.length < MOVING_OF_ADDRESS + 20) {
    // Each names an address of its own making; the proxy adds the true one, of one IPv6 network.
    const told = `198.51.100.${crowd.length}, 2001:db8:1:2::${crowd.length.toString(16)}`;
    crowd.push(await slowPeer(behindProxy.url, { "X-Forwarded-For": told }));
  }
  await until("those beyond the limit are cut", async () => crowd.filter((peer) => peer.isClosed).length === 20);
  expect(crowd.slice(0, 20).every((peer) => peer.isClosed)).toBe(true);
  expect([neighbour.isClosed, quiet.isClosed]).toEqual([false, false]);
});

function asking(query = "{ viewer { userId } }", token?: string): string {
  const body = JSON.stringify({ query });
  const known = token ? `Authorization: Bearer ${token}\r\n` : "";
  const headers = `Host: x\r\nContent-Type: application/json\r\n${known}Content-Length: ${body.length}\r\n`;
  return `POST /graphql HTTP/1.1\r\n${headers}\r\n${body}`;
}

test("a request that comes before the last one is answered ends its connection, and one after the other is answered", async () => {
  const before = await ended("pipelined");
  const peer = kept(new RawPeer(service.url));
  await peer.opened;
  for (const answers of [1, 2, 3]) {
    peer.socket.write(asking());
    await until("it is answered", async () => peer.count("UNAUTHENTICATED") === answers);
  }
  peer.socket.write(asking().repeat(500));
  await peer.closed;
  expect(peer.count("UNAUTHENTICATED")).toBeLessThanOrEqual(4);
  expect(await ended("pipelined")).toBe(before + 1);
});

const LARGE_ANSWER = 8 * 1024 * 1024;
const ALIASES = 8;

test("of large answers that nobody reads only so many bytes are kept: the oldest are cut, and others are answered", async () => {
  const tenant = "unread";
  await database.query(
    `INSERT INTO connection (tenant_id, state, state_changed_at, trouble_code, trouble_message, trouble_since, trouble_last_seen_at)
     VALUES (${await database.tenantId(tenant)}, 'NOT_CONNECTED', now(), 'CRM_UNAVAILABLE', repeat('x', ${LARGE_ANSWER / ALIASES}), now(), now())`,
  );
  const aliases = Array.from({ length: ALIASES }, (_, index) => `trouble${index}: trouble { message }`);
  const query = `{ connection { ${aliases.join(" ")} } }`;
  const token = await tokenFor({ tenant });
  const most = Math.floor(MOVING_BYTES / LARGE_ANSWER);
  const before = await ended("crowded");
  for (let count = 0; count < most + 4; count += 1) {
    const peer = kept(new RawPeer(service.url));
    await peer.opened;
    peer.socket.write(asking(query, token));
    await peer.told("HTTP/1.1 200 OK");
    peer.socket.pause();
  }
  await until("the oldest are cut", async () => (await ended("crowded")) - before >= 4);
  expect((await ended("crowded")) - before).toBeLessThanOrEqual(5);
  const reader = kept(new RawPeer(service.url));
  await reader.opened;
  reader.socket.write(asking(query, token));
  await until("a whole one is read", async () => reader.received.length > LARGE_ANSWER);
  expect(reader.isClosed).toBe(false);
  expect((await service.ask("{ viewer { userId } }")).status).toBe(200);
});
