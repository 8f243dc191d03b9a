import { setImmediate } from "node:timers/promises";
import { ALONE } from "../../src/platform/work";
import { SHARED_MS } from "../../src/resolvers/tenant-reads";
import { SENDING } from "../../src/server/bounds";
import { join, leave, next, seen, World, waits } from "../support/shared-world";

// Planted and seen red: all told in one turn; changes during a round dropped, or each with a round of its own; who reads for
// itself told as well; who has left still counted as told.

test("thousands of one tenant are told in several turns of the event loop, and another tenant waits for none but the first", async () => {
  const world = new World();
  const many = await Promise.all(Array.from({ length: 3_000 }, () => join(world)));
  const other = await join(world, { tenant: "globex", tenantId: 2 });
  await Promise.all([...many, other].map(next));
  const [byTurn, turns] = [new Map<number, number>(), { passed: 0, over: false }];
  const count = async () => {
    for (; !turns.over; turns.passed += 1) await setImmediate();
  };
  const told = many.map(async (reader) => {
    await next(reader);
    byTurn.set(turns.passed, (byTurn.get(turns.passed) ?? 0) + 1);
  });
  const theirs = next(other).then(() => turns.passed);
  const counted = count();
  for (const tenant of ["acme", "globex"]) world.change(tenant);
  await Promise.all(told);
  turns.over = true;
  await counted;
  expect(Math.max(...byTurn.values())).toBeLessThanOrEqual(ALONE / SENDING);
  expect(await theirs).toBeLessThanOrEqual(Math.min(...byTurn.keys()) + 1);
  await leave(...many, other);
});

test("changes that come together are read and told once, the newest alone", async () => {
  const world = new World();
  const readers = await Promise.all(Array.from({ length: 50 }, () => join(world)));
  await Promise.all(readers.map(next));
  const told = readers.map((reader) => seen(reader));
  for (let change = 0; change < 3; change += 1) world.change("acme");
  for (const state of await Promise.all(told)) expect(state).toMatchObject({ version: 4 });
  expect(await waits(Promise.race(readers.map(next)))).toBe(true);
  expect(world.executions).toBe(2);
  await leave(...readers);
});

test("changes while a thousand are told: nobody hears an older state after a newer one, or one twice, and all who stay hear the last", async () => {
  const world = new World();
  const began = performance.now();
  const [CHANGES, LEFT_AFTER] = [12, 4];
  const heardBy = async (turnsBetween: number, leavesAt = Number.POSITIVE_INFINITY): Promise<number[]> => {
    const reader = await join(world);
    const heard: number[] = [];
    while (heard.length < leavesAt && heard.at(-1) !== CHANGES + 1) {
      heard.push((await seen(reader))?.version as number);
      for (let turn = 0; turn < turnsBetween; turn += 1) await setImmediate();
    }
    await leave(reader);
    return heard;
  };
  const quickAndSlow = Array.from({ length: 1_200 }, (_, index) => heardBy((index % 4) * 3));
  const leaving = Array.from({ length: 100 }, () => heardBy(0, LEFT_AFTER));
  await setImmediate();
  const late: Promise<number[]>[] = [];
  // Faster than all are told.
  for (let change = 0; change < CHANGES; change += 1) {
    world.change("acme");
    late.push(heardBy(change % 3));
    await setImmediate();
  }
  const staying = await Promise.all([...quickAndSlow, ...late]);
  for (const heard of [...staying, ...(await Promise.all(leaving))])
    expect(heard).toEqual([...new Set(heard)].sort((a, b) => a - b));
  expect(new Set(staying.map((heard) => heard.at(-1)))).toEqual(new Set([CHANGES + 1]));
  // What was read is shared for a while: on a machine that is held up a state is read once more for each.
  const whiles = Math.ceil((performance.now() - began) / SHARED_MS);
  expect(world.executions).toBeLessThanOrEqual(CHANGES + whiles);
  expect(world.listeners.get("acme")?.size).toBe(0);
});

test("who was busy and reads again while a thousand are told has the newest state, and is told it once", async () => {
  const world = new World();
  const many = await Promise.all(Array.from({ length: 1_200 }, () => join(world)));
  const busy = await join(world);
  await Promise.all([...many, busy].map(next));
  const told = many.map(next);
  world.change("acme");
  await Promise.all(told);
  await setImmediate();
  const toldAgain = many.map(next);
  world.change("acme");
  await toldAgain[0];
  world.change("acme");
  expect(await seen(busy)).toMatchObject({ version: 4 });
  expect(await waits(busy.next())).toBe(true);
  await leave(...many, busy);
});

test("who comes in the place of one who leaves, while a thousand are told, misses no change", async () => {
  const world = new World();
  const many = await Promise.all(Array.from({ length: 1_200 }, () => join(world)));
  await Promise.all(many.map(next));
  const told = many.map(next);
  world.change("acme");
  await told[0];
  world.change("acme");
  await leave(...many.splice(-1));
  const newcomer = await join(world);
  const first = seen(newcomer);
  world.change("acme");
  expect(await first).toMatchObject({ version: 3 });
  expect(await seen(newcomer)).toMatchObject({ version: 4 });
  await leave(...many, newcomer);
});
