import { createConnection, type Socket } from "node:net";
import { CONTINUED, frame, message, PING, TEXT, times, upgrade } from "../test/support/frames";

/** Between two attacks of one socket, and before one that was ended comes back. */
const AGAIN_MS = 1_000;
const ATTACK_BYTES = 60 * 1024;

export interface Attack {
  port: number;
  sockets: number;
  /** Of users whom the service knows, for floods after connection_init. */
  tokens: string[];
}

const filled = (bytes: Buffer) => times(Math.ceil(ATTACK_BYTES / bytes.length), bytes);
const subscribe = (query: string) => message({ id: "1", type: "subscribe", payload: { query } });

const LARGE_PING = message({ type: "ping", payload: { x: "x".repeat(ATTACK_BYTES) } });
const PINGS = filled(frame(PING, "x".repeat(125)));
const MESSAGES = filled(message({ type: "ping" }));
const FRAGMENTS = filled(frame(CONTINUED, "x", { final: false }));
const FLOOD = filled(Buffer.concat([subscribe("subscription { no }"), message({ id: "1", type: "complete" })]));
const HUGE = frame(TEXT, "x".repeat(ATTACK_BYTES), { announced: 2 ** 40 });
const UNSENT = frame(TEXT, "x", { announced: 60_000 });

interface Kind {
  first?: Buffer;
  again: Buffer;
  afterInit?: boolean;
  neverReads?: boolean;
  halfSent?: boolean;
}

/** In turn, so that each has the same share but the last ones, of which there are 100 in 2,000. */
const KINDS: readonly Kind[] = [
  { again: LARGE_PING },
  { again: PINGS },
  { again: MESSAGES },
  { first: frame(TEXT, "", { final: false }), again: FRAGMENTS },
  { again: HUGE },
  { first: UNSENT, again: Buffer.from("x") },
  { again: Buffer.from("x-more: x\r\n"), halfSent: true },
  { again: FLOOD, afterInit: true },
  { again: PINGS, afterInit: true },
];
const NEVER_READS: readonly Kind[] = [
  { again: LARGE_PING, neverReads: true },
  { again: LARGE_PING, neverReads: true, afterInit: true },
  { again: FLOOD, neverReads: true, afterInit: true },
];
const NEVER_READS_ONE_IN = 20;

function kindOf(index: number): Kind {
  const kinds = index % NEVER_READS_ONE_IN === 0 ? NEVER_READS : KINDS;
  return kinds[Math.floor(index / (kinds === KINDS ? 1 : NEVER_READS_ONE_IN)) % kinds.length] as Kind;
}

let ended = 0;

function besiege(attack: Attack, index: number): void {
  const kind = kindOf(index);
  const socket: Socket = createConnection(attack.port, "127.0.0.1");
  socket.on("error", () => undefined);
  socket.on("connect", () => {
    socket.write(upgrade(attack.port, {}, kind.halfSent));
    if (kind.neverReads) socket.pause();
    else socket.resume();
    if (kind.afterInit) {
      const authorization = `Bearer ${attack.tokens[index % attack.tokens.length]}`;
      socket.write(message({ type: "connection_init", payload: { authorization } }));
    }
    if (kind.first) socket.write(kind.first);
  });
  // No more than the peer takes, so that it is not this process that grows.
  const timer = setInterval(() => socket.writableNeedDrain || socket.write(kind.again), AGAIN_MS);
  socket.on("close", () => {
    ended += 1;
    clearInterval(timer);
    setTimeout(() => besiege(attack, index), AGAIN_MS);
  });
}

process.on("message", (asked: Attack | "ended") => {
  if (asked === "ended") return process.send?.(ended);
  // Spread over the pause, so that the sockets do not attack all in one moment.
  for (let index = 0; index < asked.sockets; index += 1) {
    setTimeout(() => besiege(asked, index), (index * AGAIN_MS) / asked.sockets);
  }
});
