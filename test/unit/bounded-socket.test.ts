import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { type ExecutionResult, GraphQLError } from "graphql";
import { WebSocket, WebSocketServer } from "ws";
import { StateStream } from "../../src/platform/streams";
import { Allowance, BoundedSocket } from "../../src/server/bounded-socket";
import { type EndReason, MAX_UNREAD_BYTES } from "../../src/server/bounds";
import { SharedAnswer } from "../../src/server/subscriptions";
import { RawPeer } from "../support/frames";

// Planted and seen red: nothing asked before a write.

/** A write of which the kernel soon takes no more. */
const PIECE = "x".repeat(64 * 1024);
/** What the kernel may take for a peer that does not read, and much more. */
const WRITES = 4_000;

let server: Server;
const sockets = new WebSocketServer({ noServer: true, WebSocket: BoundedSocket, autoPong: false });
let url: string;

beforeAll(async () => {
  server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => server.close());

/** Our end of the next socket that is opened. */
const nextOpened = (reasons: EndReason[] = []) =>
  new Promise<BoundedSocket>((resolve) => {
    server.once("upgrade", (request, raw, head) => {
      sockets.handleUpgrade(request, raw, head, (socket) => {
        socket.watch(raw, (reason) => reasons.push(reason));
        resolve(socket);
      });
    });
  });

/** A socket of ours whose peer takes nothing, and why it was ended. */
async function unread(): Promise<{ socket: BoundedSocket; peer: RawPeer; reasons: EndReason[] }> {
  const reasons: EndReason[] = [];
  const opened = nextOpened(reasons);
  const peer = await RawPeer.upgraded(url);
  peer.socket.pause();
  return { socket: await opened, peer, reasons };
}

/** A socket of ours whose peer reads by the protocol. */
async function read(): Promise<{ socket: BoundedSocket; client: WebSocket }> {
  const opened = nextOpened();
  const client = new WebSocket(url.replace("http", "ws"));
  await once(client, "open");
  return { socket: await opened, client };
}

test.each<[string, (socket: BoundedSocket) => unknown]>([
  ["answers", (socket) => socket.deliver(PIECE)],
  ["pings", (socket) => socket.ping("x".repeat(125))],
  ["pongs", (socket) => socket.pong("x".repeat(125))],
])(
  "of %s to a peer that reads nothing no more than the limit and one of them wait; then it is cut",
  async (_title, write) => {
    const { socket, peer, reasons } = await unread();
    // The kernel's share first, so that small frames need not fill it.
    let most = 0;
    while (socket.bufferedAmount === 0) {
      void socket.deliver(PIECE);
      await turn();
    }
    for (let count = 0; count < WRITES && socket.readyState === socket.OPEN; count += 1) {
      write(socket);
      most = Math.max(most, socket.bufferedAmount);
    }
    expect(socket.readyState).not.toBe(socket.OPEN);
    expect([most > MAX_UNREAD_BYTES, most <= MAX_UNREAD_BYTES + PIECE.length + 100]).toEqual([true, true]);
    await once(socket, "close");
    expect(reasons).toEqual(["unread"]);
    peer.end();
  },
);

test("a close frame is not put behind what nobody reads: the socket is cut", async () => {
  const { socket, peer, reasons } = await unread();
  while (socket.bufferedAmount <= MAX_UNREAD_BYTES) void socket.deliver(PIECE);
  socket.close(4403, "Forbidden");
  await once(socket, "close");
  expect(reasons).toEqual(["unread"]);
  peer.end();
});

test("one event of any size goes to a peer that reads", async () => {
  const { socket, peer, reasons } = await unread();
  peer.socket.resume();
  await socket.deliver("x".repeat(8 * MAX_UNREAD_BYTES));
  await socket.deliver("the end");
  await peer.told("the end");
  expect([reasons, socket.readyState]).toEqual([[], socket.OPEN]);
  socket.terminate();
});

// Planted and seen red: a length in characters, 126 bytes told in one, the mark of a frame that others follow.
test("messages of all lengths come as they were sent, one for one and in their order", async () => {
  const { socket, client } = await read();
  const texts = [0, 1, 125, 126, 127, 65_535, 65_536, 300_000].flatMap((length) => [
    "x".repeat(length),
    "ü".repeat(length / 2),
  ]);
  const came: string[] = [];
  client.on("message", (data, isBinary) => came.push(isBinary ? "binary" : String(data)));
  for (const text of texts) await socket.deliver(text);
  socket.close(4403, "Forbidden");
  expect((await once(client, "close"))[0]).toBe(4403);
  expect(came).toEqual(texts);
});

/** As the protocol's library does it. */
const message = (id: string, payload: object) => JSON.stringify({ id, type: "next", payload });

/** One answer after the other, each when it is asked for. */
async function* answersOf(results: readonly ExecutionResult[]): AsyncGenerator<SharedAnswer> {
  for (const result of results) yield new SharedAnswer(result);
}

// Planted and seen red: a length in characters; the id not written as JSON; no answer after the first.
test("an answer that many share comes as if it had been written for each, under each one's id", async () => {
  const results: ExecutionResult[] = [1, 60, 126, 65_500, 300_000].map((length) => ({
    data: { name: `0}"ü${"x".repeat(length)}` },
  }));
  results.push({ errors: [new GraphQLError("no")], data: null });
  for (const id of ["ü", `"\\'}`]) {
    const { socket, client } = await read();
    const came: string[] = [];
    client.on("message", (data) => came.push(String(data)));
    const sending = socket.sending(id, answersOf(results));
    expect(await sending.next()).toEqual({ done: true, value: undefined });
    socket.close(4403, "Forbidden");
    await once(client, "close");
    // To a socket that is closed none is sent, and it ends likewise.
    expect((await socket.sending(id, answersOf(results)).next()).done).toBe(true);
    expect(came).toEqual(results.map((result) => message(id, result)));
  }
});

// Planted and seen red: they were not told, and what was asked for waited on.
test("whoever ends what is sent ends its answers", async () => {
  const { socket, client } = await read();
  let isHeard = true;
  const answers = new StateStream<SharedAnswer>(
    () => () => {
      isHeard = false;
    },
    async () => new SharedAnswer({ data: null }),
  )[Symbol.asyncIterator]();
  const sending = socket.sending("1", answers);
  const ends = sending.next();
  await once(client, "message");
  expect(await sending.return?.()).toEqual(await ends);
  expect(isHeard).toBe(false);
  socket.terminate();
});

// Planted and seen red: the first held its id until it was read, and was sent then under the second's.
test("an id may come again once it is ended, whatever its first waits for, and not before", async () => {
  const { socket, client } = await read();
  const came: string[] = [];
  client.on("message", (data) => came.push(String(data)));
  let answer = (_one: SharedAnswer) => {};
  const slow = () =>
    new Promise<SharedAnswer>((resolve) => {
      answer = resolve;
    });
  const first = socket.sending("1", new StateStream(() => () => undefined, slow)[Symbol.asyncIterator]());
  const over = first.next();
  await first.return?.();
  await over;
  await turn();
  const again = { data: { is: "again" } };
  const second = new StateStream(
    () => () => undefined,
    async () => new SharedAnswer(again),
  );
  void socket.sending("1", second[Symbol.asyncIterator]()).next();
  answer(new SharedAnswer({ data: { is: "late" } }));
  await once(client, "message");
  await turn();
  expect(came).toEqual([message("1", again)]);
  expect((await socket.sending("1", answersOf([again])).next()).done).toBe(true);
  expect((await once(client, "close"))[0]).toBe(4409);
});

test("what waits to be delivered to a socket that was cut is at its end too", async () => {
  const { socket, peer } = await unread();
  const waiting: (Promise<void> | undefined)[] = [];
  for (let count = 0; count < WRITES; count += 1) waiting.push(socket.deliver(PIECE));
  await Promise.all(waiting);
  await socket.deliver(PIECE);
  peer.end();
});

test("an allowance gives so many at once, and as many again in a minute", () => {
  let now = 0;
  const allowance = new Allowance(60, () => now);
  expect([allowance.take(60), allowance.take(1)]).toEqual([true, false]);
  now += 10_000;
  expect([allowance.take(11), allowance.take(10), allowance.take(1)]).toEqual([false, true, false]);
  now += 3_600_000;
  expect([allowance.take(61), allowance.take(60)]).toEqual([false, true]);
});
