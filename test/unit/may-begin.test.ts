import { createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { CrmError } from "../../src/crm/errors";
import { CrmHttp } from "../../src/crm/http";
import { HOUR_MS, timeLimit } from "../../src/platform/clock";
import { ServiceError } from "../../src/platform/errors";

// Seen red with the look before the request is handed to the client.

/** As many as one process opens to the CRM. */
const SOCKETS = 128;
const ANSWER = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";

class LostError extends ServiceError {
  readonly code = "LOST";
}

let requests = 0;
const sockets: Socket[] = [];
const server = createServer((socket) => {
  sockets.push(socket);
  socket.on("error", () => undefined);
  socket.on("data", () => {
    requests += 1;
  });
});
let url = "";
let http: CrmHttp;

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  url = `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}/`;
});
beforeEach(() => {
  requests = 0;
  sockets.length = 0;
  http = new CrmHttp();
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  await http.close();
});
afterAll(() => new Promise((resolve) => server.close(resolve)));

const send = (mayBegin?: () => void) => http.send({ method: "GET", url, headers: {}, mayBegin });

test("what may no longer be sent when its socket has come is not sent, and says why", async () => {
  let connections = 0;
  const lost = new LostError("the lease has run out");
  const sending = send(() => {
    connections = sockets.length;
    throw lost;
  });
  await expect(sending).rejects.toBe(lost);
  expect([connections, requests]).toEqual([1, 0]);
});

test("what was stopped before it is sent is not sent", async () => {
  const sending = http.send({ method: "GET", url, headers: {}, stop: AbortSignal.abort() });
  await expect(sending).rejects.toMatchObject({ code: "UNAVAILABLE" });
  while (sockets.length === 0) await new Promise(setImmediate);
  await sleep(50);
  expect(requests).toBe(0);
});

/** What ends calls at their time is heard when it is told to; all else goes on. */
function faked(): void {
  jest.useFakeTimers({
    doNotFake: ["Date", "nextTick", "performance", "queueMicrotask", "setImmediate", "setInterval"],
  });
}

// Planted and seen red: it went on for as long as something came, and whoever had asked waited.
test("an answer that comes in drips ends half a minute after it was asked for", async () => {
  faked();
  let ended: unknown = null;
  send().catch((error: unknown) => {
    ended = error;
  });
  while (requests === 0) await new Promise(setImmediate);
  sockets[0]?.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n");
  const drip = async (seconds: number) => {
    for (let second = 0; second < seconds; second += 1) {
      sockets[0]?.write(" ");
      await sleep(5);
      jest.advanceTimersByTime(1_000);
    }
    await sleep(5);
  };
  try {
    await drip(29);
    expect(ended).toBeNull();
    await drip(2);
    expect(ended).toMatchObject({ code: "UNAVAILABLE", detail: { tooSlow: true } });
  } finally {
    jest.useRealTimers();
  }
});

// Planted and seen red: it waited on, and was sent when those before it had ended.
test("a call that waits for a socket is given up half a minute after it was asked for, and is never sent", async () => {
  faked();
  try {
    const told: unknown[] = [];
    const tell = ({ code, detail }: CrmError) => told.push([code, detail.neverSent]);
    const others = Array.from({ length: SOCKETS }, () => send().catch(tell));
    const waiting = send().catch(tell);
    while (requests < SOCKETS) await new Promise(setImmediate);
    jest.advanceTimersByTime(29_000);
    await sleep(5);
    expect(told).toEqual([]);
    jest.advanceTimersByTime(1_000);
    await Promise.all([...others, waiting]);
    expect(told.filter((one) => isDeepStrictEqual(one, ["UNAVAILABLE", true]))).toHaveLength(1);
    expect(told).toHaveLength(SOCKETS + 1);
    await sleep(50);
    expect(requests).toBe(SOCKETS);
  } finally {
    jest.useRealTimers();
  }
});

test("what waits for a free socket is looked at when one comes free", async () => {
  const others = Array.from({ length: SOCKETS }, () => send());
  while (requests < SOCKETS) await new Promise(setImmediate);
  let isOurs = true;
  let looks = 0;
  const waiting = send(() => {
    looks += 1;
    if (!isOurs) throw new LostError("another process has it");
  });
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(looks).toBe(0);
  isOurs = false;
  for (const socket of sockets) socket.write(ANSWER);
  await expect(waiting).rejects.toBeInstanceOf(LostError);
  await Promise.all(others);
  expect([looks, requests]).toEqual([1, SOCKETS]);
});

// Planted and seen red: it was called off and said never to have been sent, and whoever wrote it again had it twice.
test("what a look that began before the request was written comes to ends no request that is under way", async () => {
  const others = Array.from({ length: SOCKETS }, () => send());
  while (requests < SOCKETS) await new Promise(setImmediate);
  let end = (_: Error) => {};
  const lost = new Promise<void>((_, reject) => {
    end = reject;
  });
  let looks = 0;
  const mayWait = () => {
    looks += 1;
    return lost;
  };
  const waiting = http.send({ method: "POST", url, headers: {}, mayWait });
  while (looks === 0) await sleep(10);
  for (const socket of sockets) socket.write(ANSWER);
  while (requests === SOCKETS) await sleep(10);
  end(new LostError("it is another's by now"));
  await sleep(10);
  for (const socket of sockets) if (!socket.destroyed) socket.write(ANSWER);
  await expect(waiting).resolves.toMatchObject({ status: 200 });
  await Promise.all(others);
});

// Seen red by the clock of the wall alone: whoever was frozen while that was put back had time left.
test("time is over by the clock of the wall, and where that was put back meanwhile all the same", async () => {
  let putBackMs = 0;
  const clock = () => new Date(Date.now() - putBackMs);
  // Seen red: what had begun before had its whole time anew by the steady clock.
  const isAlmostOver = timeLimit(clock, HOUR_MS, new Date(clock().getTime() - HOUR_MS + 50));
  const isOver = [timeLimit(clock, HOUR_MS), timeLimit(clock, 50), isAlmostOver];
  expect(isOver.map((is) => is())).toEqual([false, false, false]);
  putBackMs = HOUR_MS;
  await sleep(60);
  expect(isOver.map((is) => is())).toEqual([false, true, true]);
  putBackMs = -HOUR_MS;
  expect(isOver.map((is) => is())).toEqual([true, true, true]);
});
