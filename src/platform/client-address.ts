import type { IncomingMessage } from "node:http";
import proxyAddr from "@fastify/proxy-addr";
import ipaddr from "ipaddr.js";

/** Of an IPv6 address' eight groups, those of its network: whoever has one address has all of the network's. */
const NETWORK_GROUPS = 4;

/** @returns whether it is an address or a network, such as 10.0.0.0/8; the network of all addresses is none */
export function isNetwork(text: string): boolean {
  try {
    proxyAddr.compile(text);
    return true;
  } catch {
    return false;
  }
}

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
