import { once } from "node:events";
import { connect as dial, type Socket } from "node:net";
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
