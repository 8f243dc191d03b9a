import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import proxyAddr from "@fastify/proxy-addr";
import type { FastifyInstance } from "fastify";
import ipaddr from "ipaddr.js";
import {
  type EndReason,
  MOVING_BYTES,
  MOVING_IN_ALL,
  MOVING_OF_ADDRESS,
  WAITING_IN_ALL,
  WAITING_OF_ADDRESS,
} from "./bounds";

/** The first groups of an IPv6 address name its network: whoever has one address of it has all of them. */
const NETWORK_GROUPS = 4;

/** The key that connections of one client are counted by. */
export class ClientAddresses {
  readonly #trusts: (address: string, hop: number) => boolean;

  /** @param trustedProxies addresses and networks whose `X-Forwarded-For` is believed */
  constructor(trustedProxies: readonly string[]) {
    this.#trusts = proxyAddr.compile([...trustedProxies]);
  }

  /** The peer, or where that is a trusted proxy, the first hop from the right that is none. */
  of(request: IncomingMessage): string {
    const peer = request.socket.remoteAddress ?? "";
    const told = this.trusts(peer) ? withoutPort(proxyAddr(request, this.#trusts)) : peer;
    return keyOf(ipaddr.isValid(told) ? told : peer);
  }

  ofPeer(peer: string): string {
    return keyOf(peer);
  }

  trusts(peer: string): boolean {
    return this.#trusts(peer, 0);
  }
}

/** Some proxies tell the client's port as well, each connection another one: 198.51.100.1:4711, [2001:db8::1]:4711. */
function withoutPort(told: string): string {
  const [, inBrackets, beforePort] = /^\[([^\]]+)\](?::\d+)?$|^([^:]+):\d+$/.exec(told) ?? [];
  return inBrackets ?? beforePort ?? told;
}

function keyOf(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  if (parsed instanceof ipaddr.IPv4) return parsed.toString();
  const network = parsed.parts.slice(0, NETWORK_GROUPS).map((group) => group.toString(16));
  return `${network.join(":")}::/64`;
}

interface Guest {
  readonly destroyed: boolean;
  destroy(): unknown;
}

/**
 * Connections in the same situation, by address. Where there are too many, the one that has been in it longest gives way
 * and the newcomer stays: who is quick is served, however many are not.
 */
export class Crowd<G extends Guest> {
  /** Both in the order in which they came. */
  readonly #addresses = new Map<G, string>();
  readonly #bytes = new Map<G, number>();
  #bytesInAll = 0;
  readonly #ofAddress = new Map<string, Set<G>>();

  constructor(
    private readonly most: { ofAddress: number; inAll: number; bytes?: number },
    private readonly gaveWay: () => void,
  ) {}

  get size(): number {
    return this.#addresses.size;
  }

  /** Whoever is in it already is the newest again. @param bytes what it holds of ours, where that is told */
  enter(address: string, guest: G, bytes = 0): void {
    this.leave(guest);
    if (guest.destroyed) return;
    const others = this.#ofAddress.get(address) ?? new Set();
    this.#ofAddress.set(address, others.add(guest));
    this.#addresses.set(guest, address);
    if (bytes > 0) this.#bytes.set(guest, bytes);
    this.#bytesInAll += bytes;
    if (others.size > this.most.ofAddress) this.#end(others.keys());
    if (this.#addresses.size > this.most.inAll) this.#end(this.#addresses.keys());
    // The newcomer stays here as well, however much it holds.
    while (this.#bytesInAll > (this.most.bytes ?? Number.POSITIVE_INFINITY) && this.#bytes.size > 1) {
      this.#end(this.#bytes.keys());
    }
  }

  leave(guest: G): void {
    const address = this.#addresses.get(guest);
    if (address === undefined) return;
    this.#addresses.delete(guest);
    this.#bytesInAll -= this.#bytes.get(guest) ?? 0;
    this.#bytes.delete(guest);
    const others = this.#ofAddress.get(address);
    others?.delete(guest);
    if (others?.size === 0) this.#ofAddress.delete(address);
  }

  #end(oldestFirst: Iterator<G>): void {
    const { value: oldest } = oldestFirst.next();
    this.leave(oldest);
    oldest.destroy();
    this.gaveWay();
  }
}

/** An upgraded connection on its way in. */
export interface Arrival {
  /** It has said `connection_init`. */
  verifying(): void;
  /** Its user and tenant are known, and count it from now on. */
  proven(): void;
}

/** Bounds what connections hold that have proven nothing, and what is on its way on others. */
export class Crowds {
  readonly #waiting: Crowd<Duplex>;
  readonly #verifying: Crowd<Duplex>;
  readonly #moving: Crowd<Duplex>;
  /** Connections of which a request is in hand, from its headers to the end of its answer. */
  readonly #inHand = new WeakSet<Duplex>();

  constructor(
    private readonly addresses: ClientAddresses,
    private readonly ended: (reason: EndReason) => void,
  ) {
    const gaveWay = () => ended("crowded");
    const idle = { ofAddress: WAITING_OF_ADDRESS, inAll: WAITING_IN_ALL };
    this.#waiting = new Crowd(idle, gaveWay);
    this.#verifying = new Crowd(idle, gaveWay);
    const moving = { ofAddress: MOVING_OF_ADDRESS, inAll: MOVING_IN_ALL, bytes: MOVING_BYTES };
    this.#moving = new Crowd(moving, gaveWay);
  }

  /** A request in hand is in no crowd: it is work of a tenant, and limited as that. */
  watch(fastify: FastifyInstance): void {
    fastify.server.on("connection", (socket) => {
      this.#waits(socket, socket.remoteAddress);
      socket.once("close", () => this.#leave(socket));
    });
    fastify.addHook("onRequest", async ({ raw }, reply) => {
      if (this.#isPipelined(raw)) reply.hijack();
      else this.#moves(raw);
    });
    fastify.addHook("preValidation", async ({ raw }) => this.#leave(raw.socket));
    fastify.addHook("onSend", async ({ raw }, _reply, payload) => this.#moves(raw, lengthOf(payload)));
    fastify.addHook("onResponse", async ({ raw }) => {
      this.#inHand.delete(raw.socket);
      this.#waits(raw.socket, raw.socket.remoteAddress);
    });
  }

  /** Cuts who sends a request before the last is answered: one connection would count for as many as it sends. */
  #isPipelined({ socket }: IncomingMessage): boolean {
    if (!this.#inHand.has(socket)) {
      this.#inHand.add(socket);
      return false;
    }
    if (!socket.destroyed) this.ended("pipelined");
    socket.destroy();
    return true;
  }

  hasInHand(socket: Duplex): boolean {
    return this.#inHand.has(socket);
  }

  arrive(request: IncomingMessage, socket: Duplex): Arrival {
    const address = this.addresses.of(request);
    this.#waiting.enter(address, socket);
    return {
      verifying: () => {
        this.#leave(socket);
        this.#verifying.enter(address, socket);
      },
      proven: () => this.#leave(socket),
    };
  }

  /** A proxy keeps connections for many clients; it bounds them itself. */
  #waits(socket: Duplex, peer = ""): void {
    this.#leave(socket);
    if (!this.addresses.trusts(peer)) this.#waiting.enter(this.addresses.ofPeer(peer), socket);
  }

  #moves(request: IncomingMessage, bytes = 0): void {
    this.#leave(request.socket);
    this.#moving.enter(this.addresses.of(request), request.socket, bytes);
  }

  #leave(socket: Duplex): void {
    for (const crowd of [this.#waiting, this.#verifying, this.#moving]) crowd.leave(socket);
  }
}

/** Bytes of an answer that is whole; a stream counts nothing, as it waits for its reader with little in hand. */
function lengthOf(payload: unknown): number {
  return typeof payload === "string" || Buffer.isBuffer(payload) ? Buffer.byteLength(payload) : 0;
}
