import type { Duplex } from "node:stream";
import { CloseCode } from "graphql-ws";
import { LRUCache } from "lru-cache";
import { WebSocket } from "ws";
import type { Actor } from "../auth/actor";
import { MINUTE_MS } from "../platform/clock";
import { DONE } from "../platform/streams";
import {
  type EndReason,
  MAX_UNREAD_BYTES,
  MAX_USERS_REMEMBERED,
  SOCKET_BYTES_A_MINUTE,
  SOCKET_MESSAGES_A_MINUTE,
  UNPROVEN_BYTES,
  UNPROVEN_MESSAGES,
  USER_MESSAGES_A_MINUTE,
} from "./bounds";
import { CLOSE } from "./errors";
import { type SharedAnswer, textFrame } from "./subscriptions";

/** So much at once, and as much again spread over each minute. */
export class Allowance {
  #left: number;
  #counted: number;

  constructor(
    private readonly perMinute: number,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.#left = perMinute;
    this.#counted = now();
  }

  /** @returns false where less is left; then nothing is taken */
  take(amount: number): boolean {
    const now = this.now();
    const gained = ((now - this.#counted) / MINUTE_MS) * this.perMinute;
    this.#left = Math.min(this.perMinute, this.#left + gained);
    this.#counted = now;
    if (this.#left < amount) return false;
    this.#left -= amount;
    return true;
  }
}

/**
 * A socket whose peer may be anyone. All that is written to it goes through here, WebSocket's own frames too, and all
 * that comes is counted, also what is not yet a message.
 */
export class BoundedSocket extends WebSocket {
  #messages: readonly Allowance[] = [new Allowance(UNPROVEN_MESSAGES)];
  #bytes = new Allowance(UNPROVEN_BYTES);
  #ended: (reason: EndReason) => void = () => undefined;
  /** Told by `watch`, before anything is delivered. */
  #raw!: Duplex;
  /** By the ids of subscriptions that are not over: what ends each. */
  readonly #sending = new Map<string, () => Promise<unknown>>();

  /**
   * Begins to count what comes through `raw`, the connection below.
   * @param ended told once, when a limit has ended the socket
   */
  watch(raw: Duplex, ended: (reason: EndReason) => void): void {
    this.#ended = ended;
    this.#raw = raw;
    raw.on("data", (chunk: Buffer) => {
      if (!this.#bytes.take(chunk.length)) this.#cut("bytes");
    });
    for (const event of ["message", "pong"]) this.on(event, () => this.#count());
    // Not left to the library, which would answer before it is counted.
    this.on("ping", (data: Buffer) => this.#count() && this.pong(data));
    // The library has sent the close code that says what is wrong.
    this.on("error", () => this.#tell("bad_frame"));
    this.once("close", () => this.#sending.forEach((end) => void end()));
  }

  /** From now on it has what a user has. @param ofUser messages of all the user's sockets */
  proven(ofUser: Allowance): void {
    this.#messages = [new Allowance(SOCKET_MESSAGES_A_MINUTE), ofUser];
    this.#bytes = new Allowance(SOCKET_BYTES_A_MINUTE);
  }

  /**
   * Sends a subscription's answers as they come, past the library, which would write each anew for every subscriber.
   * @returns what gives none of them, and ends when they do or are ended, whatever is waited for
   */
  sending(id: string, answers: AsyncIterableIterator<SharedAnswer>): AsyncIterableIterator<never> {
    const begin = `{"id":${JSON.stringify(id)},"type":"next","payload":`;
    let ended = () => {};
    const isEnded = new Promise<void>((resolve) => {
      ended = resolve;
    });
    const end = async () => {
      ended();
      await answers.return?.();
      // When the library has forgotten it too: it knows one subscription of an id, and would never end another.
      process.nextTick(() => this.#sending.get(id) === end && this.#sending.delete(id));
      return DONE;
    };
    const send = async () => {
      if (this.#sending.has(id)) return this.close(CloseCode.SubscriberAlreadyExists, "Two subscriptions with one id");
      this.#sending.set(id, end);
      for await (const { text } of answers) {
        if (this.#sending.get(id) !== end) return;
        const taken = this.deliver(begin, text);
        if (taken) await taken;
      }
    };
    const next = () =>
      Promise.race([send(), isEnded])
        .finally(end)
        .then(() => DONE);
    const sent: AsyncIterableIterator<never> = { [Symbol.asyncIterator]: () => sent, next, return: end };
    return sent;
  }

  /**
   * In one write: the library makes two of a message, which costs a tenth more. Compression, behind which a message could
   * have to wait in the library, is off.
   * @param end its end, where others have the same
   * @returns when the connection has taken it, or is gone; nothing where that is at once
   */
  deliver(text: string, end: Uint8Array = new Uint8Array()): Promise<void> | undefined {
    if (this.readyState !== this.OPEN || !this.#hasRoom()) return;
    let taken = () => {};
    this.#raw.write(textFrame(text, end), () => taken());
    if (this.#raw.writableLength === 0) return;
    return new Promise((resolve) => {
      taken = resolve;
    });
  }

  /** Closes it with 4429 and the words. */
  turnAway(reason: EndReason, words: string): void {
    this.#tell(reason);
    this.close(CLOSE.tooMany, words);
  }

  override ping(data?: unknown, mask?: boolean, taken?: (error: Error) => void): void {
    if (this.#hasRoom()) super.ping(data, mask, taken);
  }

  override pong(data?: unknown, mask?: boolean, taken?: (error: Error) => void): void {
    if (this.#hasRoom()) super.pong(data, mask, taken);
  }

  override close(code?: number, reason?: string | Buffer): void {
    if (this.#hasRoom()) super.close(code, reason);
  }

  /** @returns whether what came is to be looked at */
  #count(): boolean {
    if (this.readyState !== this.OPEN) return false;
    if (this.#messages.every((allowance) => allowance.take(1))) return true;
    this.turnAway("messages", "Too many messages in a minute");
    return false;
  }

  /** Asked before a write: one answer of any size may be on its way to a peer that reads. */
  #hasRoom(): boolean {
    if (this.bufferedAmount <= MAX_UNREAD_BYTES) return true;
    this.#cut("unread");
    return false;
  }

  /** Without a close frame: it would wait behind what is not read. */
  #cut(reason: EndReason): void {
    this.#tell(reason);
    this.terminate();
  }

  #tell(reason: EndReason): void {
    this.#ended(reason);
    this.#ended = () => undefined;
  }
}

type Seated = Pick<BoundedSocket, "readyState" | "OPEN" | "once" | "proven" | "turnAway">;

/** How many sockets each user and each tenant has open in this process, so that one token cannot open them without end. */
export class Seats {
  readonly #ofTenants = new Map<number, number>();
  readonly #ofUsers = new Map<string, number>();
  readonly #messages = new LRUCache<string, Allowance>({ max: MAX_USERS_REMEMBERED });

  constructor(private readonly most: { ofTenant: number; ofUser: number }) {}

  /** @returns false where there is none left, or where the socket has closed meanwhile; then it is told why */
  take({ tenantId, userId }: Pick<Actor, "tenantId" | "userId">, socket: Seated): boolean {
    if (socket.readyState !== socket.OPEN) return false;
    const user = JSON.stringify([tenantId, userId]);
    const messages = this.#messages.get(user) ?? new Allowance(USER_MESSAGES_A_MINUTE);
    this.#messages.set(user, messages);
    if ((this.#ofTenants.get(tenantId) ?? 0) >= this.most.ofTenant) {
      socket.turnAway("tenant_sockets", "Your organization has too many sockets open");
    } else if ((this.#ofUsers.get(user) ?? 0) >= this.most.ofUser) {
      socket.turnAway("user_sockets", "You have too many sockets open");
    } else if (!messages.take(1)) {
      socket.turnAway("messages", "Too many messages in a minute");
    } else {
      count(this.#ofTenants, tenantId, 1);
      count(this.#ofUsers, user, 1);
      socket.once("close", () => {
        count(this.#ofTenants, tenantId, -1);
        count(this.#ofUsers, user, -1);
      });
      socket.proven(messages);
      return true;
    }
    return false;
  }
}

function count<Key>(taken: Map<Key, number>, key: Key, change: number): void {
  const now = (taken.get(key) ?? 0) + change;
  if (now > 0) taken.set(key, now);
  else taken.delete(key);
}
