import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { Secret } from "../../src/platform/keyring";

export interface StatementCounter {
  /** The database as seen through the counter. */
  url: Secret;
  /**
   * The statements that were sent while `work` ran, as text, in order; on a cluster without what only tells the nodes
   * whose rows are meant (decision 0062), so that what is counted is the same.
   */
  during(work: () => Promise<unknown>): Promise<string[]>;
  /** The same with the values that stand for $1, $2 ... */
  sentDuring(work: () => Promise<unknown>): Promise<Sent[]>;
  close(): Promise<void>;
}

export interface Sent {
  /** Of the session that sent it, so that transactions can be told apart. */
  session: number;
  sql: string;
  values: (string | null)[];
  /** Goes with another statement to tell the nodes of a cluster whose rows it is about. */
  isFraming: boolean;
}

/**
 * Stands between the service and PostgreSQL and reads what the service sends: each Query and each Bind message of the
 * frontend protocol is one statement.
 */
export async function countStatements(database: Secret): Promise<StatementCounter> {
  const target = new URL(database.reveal());
  const seen: Sent[] = [];
  const sockets = new Set<Socket>();
  let sessions = 0;
  const server = createServer((client) => {
    const session = ++sessions;
    const upstream = connect(Number(target.port), target.hostname);
    for (const socket of [client, upstream]) {
      sockets.add(socket.setNoDelay(true));
      socket.on("error", () => socket.destroy());
    }
    const frame = framing();
    const read = statementReader((sql, values) => {
      // A listening session asks whether it is there, whatever else goes on.
      if (sql === "SELECT 1") return;
      const sent = { session, sql, values, isFraming: false };
      seen.push(sent);
      frame(sent);
    });
    client.on("data", (bytes) => {
      read(bytes);
      upstream.write(bytes);
    });
    client.on("close", () => upstream.destroy());
    upstream.pipe(client);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = new URL(target);
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const sentDuring = async (work: () => Promise<unknown>) => {
    const before = seen.length;
    await work();
    return seen.slice(before);
  };
  return {
    url: new Secret(url.href),
    sentDuring,
    during: async (work) => {
      const sent = await sentDuring(work);
      return sent.filter(({ isFraming }) => !isFraming).map(({ sql }) => sql);
    },
    close: async () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** The statements between BEGIN and COMMIT; a session's being told its tenant belongs to the BEGIN. */
export function transactions(sent: readonly Sent[]): Sent[][] {
  const done: Sent[][] = [];
  const open = new Map<number, Sent[]>();
  for (const statement of sent) {
    const { session, sql } = statement;
    if (/^(BEGIN|START TRANSACTION)/i.test(sql)) open.set(session, []);
    else if (/^(COMMIT|ROLLBACK)/i.test(sql)) {
      done.push(open.get(session) ?? []);
      open.delete(session);
    } else if (!statement.isFraming && !sql.includes("set_config")) open.get(session)?.push(statement);
  }
  return done;
}

/** Marks, of one session, what sets a transaction to its tenant, and the transaction too where it is made for one statement. */
function framing(): (sent: Sent) => void {
  let open: Sent[] = [];
  return (sent) => {
    if (sent.sql.startsWith("START TRANSACTION")) open = [sent];
    else if (open.length > 0) open.push(sent);
    const [begun, setting, ...asked] = open;
    if (!begun || !setting?.sql.startsWith("SET LOCAL crm.tenant")) return;
    setting.isFraming = true;
    if (sent.sql !== "COMMIT" || asked.length !== 2) return;
    begun.isFraming = true;
    sent.isFraming = true;
  };
}

/** PostgreSQL's frontend messages: a type, a length that counts itself, a body. The first one has no type. */
function statementReader(tell: (sql: string, values: (string | null)[]) => void): (bytes: Buffer) => void {
  let unread = Buffer.alloc(0);
  let started = false;
  const prepared = new Map<string, string>();
  return (bytes) => {
    unread = Buffer.concat([unread, bytes]);
    for (;;) {
      const head = started ? 1 : 0;
      if (unread.length < head + 4) return;
      const end = head + unread.readUInt32BE(head);
      if (unread.length < end) return;
      const type = started ? unread.toString("latin1", 0, 1) : "";
      const [first = "", second = ""] = unread.toString("utf8", head + 4, end).split("\0");
      if (type === "Q") tell(first, []);
      if (type === "P") prepared.set(first, second);
      if (type === "B") tell(prepared.get(second) ?? second, boundValues(unread.subarray(head + 4, end)));
      started = true;
      unread = unread.subarray(end);
    }
  };
}

/** Of a Bind message: two names, the formats, the values; the driver sends all of them as text. */
function boundValues(body: Buffer): (string | null)[] {
  let at = body.indexOf(0, body.indexOf(0) + 1) + 1;
  at += 2 + 2 * body.readUInt16BE(at);
  const count = body.readUInt16BE(at);
  at += 2;
  return Array.from({ length: count }, () => {
    const length = body.readInt32BE(at);
    const from = at + 4;
    at = from + Math.max(length, 0);
    return length < 0 ? null : body.toString("utf8", from, at);
  });
}
