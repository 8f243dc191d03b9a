import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { Client } from "pg";
import { Secret } from "../../src/platform/keyring";

/** Logged in, with a number by which a statement could be called off, and ready. */
const WELCOME = Buffer.from("5200000008000000004b0000000c00000001000000015a0000000549", "hex");
/** At the end of what the server says to a message: no transaction is open. */
const IDLE = Buffer.from("5a0000000549", "hex");
const TERMINATE = 0x58;
const ROLLBACK = Buffer.from("510000000d524f4c4c4241434b00", "hex");

/** A pooler in transaction mode, as PgBouncer that was told to ignore the options of sessions: its one session serves all in turn. */
export async function openPooler(database: Secret): Promise<{ url: Secret; close(): Promise<void> }> {
  const session = new Client({ connectionString: database.reveal() }).on("error", () => undefined);
  await session.connect();
  const { stream } = session.connection;
  const waiting: { client: Socket; said: Buffer }[] = [];
  let served: Socket | null = null;
  const serve = () => {
    const at = waiting.findIndex(({ client }) => served === null || client === served);
    const [next] = at < 0 ? [] : waiting.splice(at, 1);
    if (!next) return;
    served = next.client;
    stream.write(next.said);
  };
  stream.removeAllListeners("data").on("data", (answer: Buffer) => {
    if (served?.writable) served.write(answer);
    if (answer.subarray(-IDLE.length).equals(IDLE)) served = null;
    serve();
  });
  const server = createServer((client) => {
    client.on("error", () => undefined);
    client.once("close", () => served === client && stream.write(ROLLBACK));
    client.once("data", () => {
      client.write(WELCOME);
      client.on("data", (said) => {
        if (said[0] === TERMINATE) return;
        waiting.push({ client, said });
        serve();
      });
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const url = new URL(database.reveal());
  url.port = String((server.address() as AddressInfo).port);
  const close = async () => {
    server.close();
    stream.destroy();
  };
  return { url: new Secret(url.href), close };
}
