import { setImmediate as turn } from "node:timers/promises";
import { type SessionShares, SessionTurns, type SessionUse } from "../../src/database/session-limits";

// Planted and seen red: tenants served first come first served; no share of a tenant; reads without a session of their
// own; background work served before operations.

const SHARES: SessionShares = {
  sessions: 6,
  most: { read: 5, work: 4, background: 3 },
  backgroundBeside: 1,
  ofTenant: 3,
  unreadOfTenant: 2,
};

/** Asks for sessions in an order, and notes in which they are given. */
function story(shares: Partial<SessionShares> = {}) {
  const turns = new SessionTurns({ ...SHARES, ...shares });
  const given: string[] = [];
  const held = new Map<string, (() => void)[]>();
  const ask = (tenant: string, use: SessionUse, name: string = use) => {
    void turns.take(tenant, use).then((giveBack) => {
      given.push(`${tenant} ${name}`);
      held.set(tenant, [...(held.get(tenant) ?? []), giveBack]);
    });
  };
  const giveBack = async (tenant: string) => {
    held.get(tenant)?.shift()?.();
    await turn();
  };
  /** What was given since this was asked last. */
  const now = async () => {
    await turn();
    return given.splice(0);
  };
  return { turns, ask, giveBack, now };
}

test("a tenant never holds more than its share, however much it asks for and however much is free", async () => {
  const { ask, giveBack, now } = story();
  for (let index = 0; index < 60; index += 1) ask("noisy", "work", `work ${index}`);
  expect(await now()).toEqual(["noisy work 0", "noisy work 1"]);
  for (let index = 0; index < 60; index += 1) ask("noisy", "read", `read ${index}`);
  expect(await now()).toEqual(["noisy read 0"]);
  await giveBack("noisy");
  // Its next is a read: those of its pages are served before its writes.
  expect(await now()).toEqual(["noisy read 1"]);
});

test("tenants that wait take turns, whoever asked first and however often", async () => {
  const { ask, giveBack, now } = story({ sessions: 1, most: { read: 1, work: 1, background: 1 } });
  for (let index = 0; index < 4; index += 1) ask("noisy", "work", `work ${index}`);
  ask("quiet", "work", "a");
  ask("third", "work", "b");
  ask("quiet", "work", "c");
  const order: string[] = [];
  for (let index = 0; index < 7; index += 1) {
    const [next = ""] = await now();
    order.push(next);
    await giveBack(next.split(" ")[0] ?? "");
  }
  expect(order).toEqual([
    "noisy work 0",
    "noisy work 1",
    "quiet a",
    "third b",
    "noisy work 2",
    "quiet c",
    "noisy work 3",
  ]);
});

test("a reader is served at once while writers of other tenants wait for each other", async () => {
  const { ask, now } = story();
  for (const tenant of ["a", "b", "c"]) for (let index = 0; index < 5; index += 1) ask(tenant, "work", `${index}`);
  expect(await now()).toEqual(["a 0", "a 1", "b 0", "b 1"]);
  ask("quiet", "read");
  expect(await now()).toEqual(["quiet read"]);
});

test("background work waits for operations, and one session at most is its own beside them", async () => {
  const { ask, giveBack, now } = story();
  for (const tenant of ["a", "b", "c", "d"]) ask(tenant, "background");
  expect(await now()).toEqual(["a background", "b background", "c background"]);
  ask("quiet", "work");
  expect(await now()).toEqual(["quiet work"]);
  for (const tenant of ["a", "b"]) await giveBack(tenant);
  expect(await now()).toEqual([]);
  await giveBack("c");
  expect(await now()).toEqual(["d background"]);
  ask("e", "background");
  expect(await now()).toEqual([]);
  await giveBack("quiet");
  expect(await now()).toEqual(["e background"]);
});

test("who gives up waiting is passed over, and a session given back twice counts once", async () => {
  const { turns } = story({ sessions: 1, most: { read: 1, work: 1, background: 1 } });
  const first = await turns.take("a", "read");
  const leaving = new AbortController();
  const left = turns.take("b", "read", leaving.signal);
  const next = turns.take("c", "read");
  leaving.abort(new Error("too late"));
  await expect(left).rejects.toThrow("too late");
  await expect(turns.take("b", "read", leaving.signal)).rejects.toThrow("too late");
  first();
  first();
  const second = await next;
  const third = turns.take("d", "read");
  expect(await Promise.race([third, turn("waits")])).toBe("waits");
  second();
  (await third)();
});
