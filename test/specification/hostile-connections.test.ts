import { once } from "node:events";
import { connect as dial, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { tokenFor } from "../support/actors";
import { RawPeer } from "../support/frames";
import { until } from "../support/stories";
import { useService } from "../support/world";

const { service } = useService({ deals: 10, roles: ["api"] });

/** Asks for a socket from a foreign page; the caller sees to the rest. */
async function upgrade(path: string): Promise<Socket> {
  const { hostname, port } = new URL(service.url);
  const socket = dial(Number(port), hostname);
  socket.on("error", () => undefined);
  await once(socket, "connect");
  const headers = [
    `Host: ${hostname}:${port}`,
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Origin: https://evil.example",
  ];
  socket.write(`GET ${path} HTTP/1.1\r\n${headers.join("\r\n")}\r\n\r\n`);
  return socket;
}

test("a peer that cuts off its socket while it is refused does not end the process", async () => {
  for (let tries = 0; tries < 300; tries += 1) {
    const socket = await upgrade(tries % 2 ? "/elsewhere" : "/graphql");
    socket.resetAndDestroy();
  }
  const answer = await fetch(`${service.url}/healthz`);
  expect(answer.status).toBe(200);
});

// Seen red: the connection was reset, the proxy in front told 502 for it, and sent nobody to this process for ten seconds.
test.each([
  ["too large", "POST /graphql", "", 413],
  ["compressed", "POST /graphql", "Content-Encoding: gzip\r\n", 415],
  ["sent by another method", "PUT /graphql", "", 405],
  ["sent to nowhere", "POST /nowhere", "", 413],
])("what is %s is heard out before it is refused", async (_what, line, header, status) => {
  const peer = new RawPeer(service.url);
  await peer.opened;
  const body = "x".repeat(900_000);
  const type = "Content-Type: application/json\r\n";
  peer.socket.write(`${line} HTTP/1.0\r\n${type}${header}Content-Length: ${body.length}\r\n\r\n`);
  peer.socket.write(body.slice(0, 100_000));
  await sleep(300);
  expect([peer.isClosed, peer.received.length]).toEqual([false, 0]);
  peer.socket.write(body.slice(100_000));
  await peer.closed;
  expect(String(peer.received).split(" ")[1]).toBe(String(status));
});

// Seen red: 405 without a word of ours, and 404 for what is there, to all that Java sends where it is told no version.
test("who offers HTTP/2 is answered in HTTP/1.1, one request after the other", async () => {
  const peer = new RawPeer(service.url);
  await peer.opened;
  const offer = "Host: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAA\r\n";
  const body = JSON.stringify({ query: "{ viewer { userId } }" });
  const known = `Authorization: Bearer ${await tokenFor()}\r\nContent-Type: application/json\r\n`;
  for (const times of [1, 2]) {
    peer.socket.write(`GET /readyz HTTP/1.1\r\n${offer}\r\n`);
    await until("it is answered", async () => peer.count('"ready"') === times);
    peer.socket.write(`POST /graphql HTTP/1.1\r\n${offer}${known}Content-Length: ${body.length}\r\n\r\n${body}`);
    await until("it is answered too", async () => peer.count('{"data":{"viewer":{"userId":"anna"}}}') === times);
  }
  peer.end();
});

// Seen red with Fastify's 72 s: Caddy keeps a connection for two minutes, Google's balancer for ten, and what they send as it ends is lost.
test("a connection without a request is kept for longer than proxies keep theirs", async () => {
  const { headers } = await fetch(`${service.url}/healthz`);
  expect(headers.get("keep-alive")).toBe("timeout=660");
});

// Seen red: it was read for a minute, as fast as it came.
test("what has no end is heard out for some megabytes, and no longer", async () => {
  const peer = new RawPeer(service.url);
  await peer.opened;
  peer.socket.write("POST /nowhere HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  const piece = `10000\r\n${"x".repeat(0x10000)}\r\n`;
  for (let sent = 0; sent < 500 && !peer.isClosed && peer.received.length === 0; sent += 1) {
    peer.socket.write(piece);
    await sleep(5);
  }
  expect(String(peer.received)).toMatch(/^HTTP\/1.1 4/);
});
