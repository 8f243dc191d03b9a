import type { IncomingMessage } from "node:http";
import { ClientAddresses, Crowd } from "../../src/server/crowds";

// Planted and seen red: the header believed of anyone, whole IPv6 addresses as keys, nobody who gives way.

const asked = (peer: string, forwarded?: string) =>
  ({
    socket: { remoteAddress: peer },
    headers: forwarded === undefined ? {} : { "x-forwarded-for": forwarded },
  }) as unknown as IncomingMessage;

test.each([
  ["nobody is trusted: the header is the client's own word", [], "203.0.113.7", "198.51.100.1", "203.0.113.7"],
  ["a peer that is no proxy spoofs it", ["10.0.0.0/8"], "203.0.113.7", "10.0.0.1, 198.51.100.1", "203.0.113.7"],
  ["a trusted proxy's word", ["10.0.0.5"], "10.0.0.5", "198.51.100.1", "198.51.100.1"],
  [
    "what the client wrote stands left of what the proxy added",
    ["10.0.0.5"],
    "10.0.0.5",
    "1.2.3.4, 198.51.100.1",
    "198.51.100.1",
  ],
  [
    "a chain, past trusted hops",
    ["10.0.0.0/8", "192.0.2.1"],
    "10.0.0.5",
    "1.2.3.4, 198.51.100.1, 192.0.2.1",
    "198.51.100.1",
  ],
  ["a hop that is not trusted ends the chain", ["10.0.0.5"], "10.0.0.5", "198.51.100.1, 10.0.0.6", "10.0.0.6"],
  ["all hops trusted: the one farthest away", ["10.0.0.0/8"], "10.0.0.5", "10.0.0.7, 10.0.0.6", "10.0.0.7"],
  ["a trusted proxy without the header", ["10.0.0.5"], "10.0.0.5", undefined, "10.0.0.5"],
  ["a word that is no address", ["10.0.0.5"], "10.0.0.5", "unknown", "10.0.0.5"],
  ["a proxy that tells the port as well", ["10.0.0.5"], "10.0.0.5", "1.2.3.4, 198.51.100.1:4711", "198.51.100.1"],
  ["the same of IPv6", ["10.0.0.5"], "10.0.0.5", "[2001:db8:1:2::9]:4711", "2001:db8:1:2::/64"],
  ["IPv6 in brackets alone", ["10.0.0.5"], "10.0.0.5", "[2001:db8:1:2::9]", "2001:db8:1:2::/64"],
  ["an obfuscated name", ["10.0.0.5"], "10.0.0.5", "198.51.100.1, _hidden", "10.0.0.5"],
  ["no entry but commas", ["10.0.0.5"], "10.0.0.5", ", ,", "10.0.0.5"],
  ["a zone of IPv6", ["10.0.0.5"], "10.0.0.5", "fe80::1%eth0", "fe80:0:0:0::/64"],
  ["a thousand hops", ["10.0.0.5"], "10.0.0.5", `${"1.2.3.4,".repeat(1_000)}198.51.100.1`, "198.51.100.1"],
  ["a peer without an address", [], "", "198.51.100.1", ""],
  ["a mapped peer is the IPv4 address", [], "::ffff:203.0.113.7", undefined, "203.0.113.7"],
  [
    "a mapped proxy is trusted as the IPv4 address",
    ["10.0.0.0/8"],
    "::ffff:10.0.0.5",
    "::ffff:198.51.100.1",
    "198.51.100.1",
  ],
  ["IPv6 is counted by its network", [], "2001:db8:1:2:a:b:c:d", undefined, "2001:db8:1:2::/64"],
  ["the same network in another spelling", [], "2001:DB8:1:2::1", undefined, "2001:db8:1:2::/64"],
  ["another network", [], "2001:db8:1:3::1", undefined, "2001:db8:1:3::/64"],
  ["an IPv6 proxy", ["fd00::/8"], "fd00::1", "2001:db8:1:2::9", "2001:db8:1:2::/64"],
])("%s", (_title, proxies, peer, forwarded, key) => {
  expect(new ClientAddresses(proxies).of(asked(peer, forwarded))).toBe(key);
});

class Guest {
  destroyed = false;

  destroy(): void {
    this.destroyed = true;
  }
}

test("in a crowd the oldest of the address gives way, then the oldest of all, and who enters again is the newest", () => {
  let gaveWay = 0;
  const most = { ofAddress: 2, inAll: 4 };
  const crowd = new Crowd<Guest>(most, () => {
    gaveWay += 1;
  });
  const [first, second, third] = [new Guest(), new Guest(), new Guest()];
  for (const one of [first, second, first, third]) crowd.enter("one", one);
  expect([first.destroyed, second.destroyed, third.destroyed]).toEqual([false, true, false]);
  const others = ["two", "three", "four"].map((address) => {
    const guest = new Guest();
    crowd.enter(address, guest);
    return guest;
  });
  expect([first.destroyed, third.destroyed, crowd.size, gaveWay]).toEqual([true, false, 4, 2]);
  for (const one of [third, ...others]) crowd.leave(one);
  crowd.enter("one", first);
  // One that is gone already would never leave.
  expect(crowd.size).toBe(0);
});

test("of answers that nobody takes only so many bytes are kept, whoever asked, and the newest of any size", () => {
  const crowd = new Crowd<Guest>({ ofAddress: 100, inAll: 100, bytes: 10 }, () => undefined);
  const enter = (address: string, bytes?: number) => {
    const guest = new Guest();
    crowd.enter(address, guest, bytes);
    return guest;
  };
  const asking = enter("one");
  const [first, second, third] = [enter("one", 4), enter("two", 4), enter("three", 4)];
  expect([asking, first, second, third].map(({ destroyed }) => destroyed)).toEqual([false, true, false, false]);
  const large = enter("four", 50);
  expect([asking, second, third, large].map(({ destroyed }) => destroyed)).toEqual([false, true, true, false]);
  crowd.leave(large);
  const [again, more] = [enter("one", 5), enter("one", 5)];
  expect([again.destroyed, more.destroyed, crowd.size]).toEqual([false, false, 3]);
});
