import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { Secret } from "../../src/platform/keyring";

/** One address for a database that comes back on another port, or of which nothing comes any more. */
export interface Gate {
  /** The database's address through the gate. */
  urlOf(database: Secret): Secret;
  /** From now on nothing comes through, and nobody is told: a network or a server that is frozen. */
  silence(): void;
  /** The same for the sessions that are open; later ones come through, as where another host has taken over. */
  silenceOpen(): void;
  close(): Promise<void>;
}

/**
 * @param pass what the server is sent in place of what a session says
 * @param answer what a session hears in place of what the server says
 */
export async function openGate(
  portNow: () => number,
  pass = async (said: string) => said,
  answer = (said: string) => said,
): Promise<Gate> {
  const open = new Set<Socket>();
  const silent = new WeakSet<Socket>();
  let isClosed = false;
  const server = createServer((inward) => {
    open.add(inward);
    if (isClosed) return void silent.add(inward.pause());
    const outward = connect(portNow(), "127.0.0.1");
    for (const [one, other] of [
      [inward, outward],
      [outward, inward],
    ] as const) {
      const end = () => (one === outward && silent.has(inward)) || other.destroy();
      one.on("error", end);
      one.on("close", end);
    }
    inward.once("close", () => open.delete(inward));
    inward.on("data", async (chunk) => {
      if (!silent.has(inward)) outward.write(await pass(chunk.toString("latin1")), "latin1");
    });
    outward.on("data", (chunk) => silent.has(inward) || inward.write(answer(chunk.toString("latin1")), "latin1"));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const silenceOpen = () => {
    for (const socket of open) silent.add(socket);
  };
  return {
    urlOf(database) {
      const url = new URL(database.reveal());
      url.port = String((server.address() as AddressInfo).port);
      return new Secret(url.href);
    },
    silenceOpen,
    silence() {
      isClosed = true;
      silenceOpen();
    },
    async close() {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}
