import { once } from "node:events";
import { connect as openSocket } from "node:net";
import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import Fastify from "fastify";
import { SECOND_MS } from "../../src/platform/clock";
import { ClientAddresses, Crowds } from "../../src/server/crowds";
import { Draining } from "../../src/server/serving";
import { RawPeer } from "../support/frames";

/** More than the system takes of an answer by itself. */
const MANY_BYTES = 9_000_000;

function drained() {
  const fastify = Fastify({ forceCloseConnections: "idle", return503OnClosing: false });
  const draining = new Draining(fastify);
  const crowds = new Crowds(new ClientAddresses([]), () => undefined);
  crowds.watch(fastify);
  return { fastify, finish: () => draining.finish(SECOND_MS, async () => undefined, crowds) };
}

// Seen red: of 9 MB came 4, which the system had taken.
test.each([
  ["an answer", () => Buffer.alloc(MANY_BYTES)],
  ["a streamed answer", () => Readable.from([Buffer.alloc(MANY_BYTES)])],
])(
  "%s that is on its way out when the listening ends arrives whole, and its connection ends with it",
  async (_what, answer) => {
    const { fastify, finish } = drained();
    fastify.get("/", async (_request, reply) => reply.send(answer()));
    const reader = openSocket(Number(new URL(await fastify.listen({ port: 0 })).port), "127.0.0.1");
    reader.pause().write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    await sleep(500);
    const began = performance.now();
    const finished = finish();
    await sleep(3_000);
    let bytes = 0;
    reader.on("data", (chunk) => {
      bytes += chunk.length;
    });
    reader.resume();
    await Promise.all([once(reader, "close"), finished]);
    expect(bytes).toBeGreaterThan(MANY_BYTES);
    expect(performance.now() - began).toBeLessThan(30_000);
  },
  90_000,
);

// Seen red: a look each second cut three of the four while their next request was on its way.
test("a kept connection whose answer ends during a stop is left the time for a request that is on its way", async () => {
  const { fastify, finish } = drained();
  async function* lasting(ms: number) {
    yield "begun";
    await sleep(ms);
  }
  fastify.get<{ Params: { ms: string } }>("/:ms", async ({ params }, reply) =>
    reply.send(Readable.from(lasting(Number(params.ms)))),
  );
  const url = await fastify.listen({ port: 0 });
  const asked = [1_500, 1_750, 2_000, 2_250].map(async (ms) => {
    const peer = new RawPeer(url);
    await peer.opened;
    peer.socket.write(`GET /${ms} HTTP/1.1\r\nHost: x\r\n\r\n`);
    await peer.told("0\r\n\r\n");
    await sleep(600);
    peer.socket.write("GET /0 HTTP/1.1\r\nHost: x\r\n\r\n");
    await peer.told("connection: close");
    expect([ms, String(peer.received)]).toEqual([ms, expect.stringContaining("connection: close")]);
  });
  await sleep(300);
  await Promise.all([finish(), ...asked]);
}, 60_000);

// Seen red: who had connected just before the listening ended was cut before its request was read, and who waited to be taken was reset.
test("who connects at the last moment before the listening ends is answered", async () => {
  const { fastify, finish } = drained();
  fastify.get("/", async () => "done");
  const url = await fastify.listen({ port: 0 });
  const answers = Array.from({ length: 25 }, async (_, index) => {
    await sleep(SECOND_MS - 60 + 2 * index);
    const peer = new RawPeer(url);
    await peer.opened;
    await sleep(100);
    peer.socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    await peer.closed;
    return String(peer.received).slice(-4);
  });
  const [heard] = await Promise.all([Promise.all(answers), finish()]);
  expect(new Set(heard)).toEqual(new Set(["done"]));
}, 60_000);
