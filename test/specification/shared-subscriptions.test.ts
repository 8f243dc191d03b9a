import { setTimeout as sleep } from "node:timers/promises";
import { buildSchema, parse } from "graphql";
import { type Actor, viewerOf } from "../../src/auth/actor";
import { EventsMissedError } from "../../src/platform/errors";
import { EventStream } from "../../src/platform/streams";
import { SHARED_MS } from "../../src/resolvers/tenant-reads";
import { MAX_DIFFERENT } from "../../src/server/subscriptions";
import {
  ALL,
  type Asked,
  argsOf,
  join,
  leave,
  next,
  person,
  type Reader,
  seen,
  told,
  World,
  waits,
} from "../support/shared-world";

// Planted and seen red: the key without tenant, role, plan, name or variables; a late joiner that waits for the next
// event; listening that begins after the first answer; a source that outlives its last subscriber; an answer of before
// an event given after it; each subscriber with an execution of its own; a queue of answers instead of the newest;
// each subscriber's error masked by itself; the whole actor in the context; different ones without end.

test("equal subscriptions share one listener and one execution an event, whoever of the tenant has them", async () => {
  const world = new World();
  const users = ["mia", "max", "moe"].map((userId) => ({ userId, email: `${userId}@acme.test` }));
  const readers = await Promise.all(users.map((user) => join(world, user)));
  const first = await Promise.all(readers.map(next));
  expect(first[0]?.data?.seen).toMatchObject({ tenant: "acme", version: 1 });
  world.change("acme");
  const second = await Promise.all(readers.map(next));
  expect(second[0]?.data?.seen).toMatchObject({ version: 2 });
  for (const answers of [first, second]) expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
  expect(world.executions).toBe(2);
  expect(world.listeners.get("acme")?.size).toBe(1);
  await leave(...readers);
});

const NAMED = "subscription One { seen { version } } subscription Two { other { version } }";
const OF = "subscription ($by: String) { seen(by: $by) { tenant version canManage plan by } }";
test.each<[string, Partial<Actor>, Partial<Actor>, Asked, Asked]>([
  ["tenants", { tenantId: 1 }, { tenant: "globex", tenantId: 2 }, {}, {}],
  ["roles", { role: "member" }, { role: "owner" }, {}, {}],
  ["plans", { plan: "sales" }, { plan: "starter" }, {}, {}],
  ["documents", {}, {}, { query: "subscription { seen { tenant } }" }, {}],
  ["operations of a document", {}, {}, { query: NAMED, operationName: "One" }, { query: NAMED, operationName: "Two" }],
  ["variables", {}, {}, { query: OF, variables: { by: "a" } }, { query: OF, variables: { by: "b" } }],
])("two %s never share an answer", async (_what, one, other, asked, askedToo) => {
  const world = new World();
  const readers = [await join(world, one, asked), await join(world, other, askedToo)];
  const [ours, theirs] = await Promise.all(readers.map(next));
  expect(ours?.errors ?? theirs?.errors).toBeUndefined();
  expect(JSON.stringify(ours)).not.toBe(JSON.stringify(theirs));
  expect(world.executions).toBe(2);
  await leave(...readers);
});

test("an owner and a member of one tenant are each told what they may do", async () => {
  const world = new World();
  const readers = [await join(world, { role: "owner" }), await join(world, { role: "member" })];
  for (const version of [1, 2]) {
    const [owner, member] = await Promise.all(readers.map((reader) => seen(reader)));
    expect(owner).toMatchObject({ version, canManage: true });
    expect(member).toMatchObject({ version, canManage: false });
    world.change("acme");
  }
  await leave(...readers);
});

test("an answer that reads more of its actor fails, and shows nobody another's", async () => {
  const world = new World();
  const readers = [await join(world, {}, { query: "subscription { seen { userId } }" })];
  readers.push(await join(world, { userId: "max" }, { query: "subscription { seen { userId } }" }));
  for (const reader of readers) {
    const answer = await next(reader);
    expect(answer.data?.seen).toEqual({ userId: null });
    expect(answer.errors).toHaveLength(1);
  }
  expect(world.failures[0]?.message).toContain("userId was read of an actor");
  await leave(...readers);
});

test("who joins late has the present state at once, and the others are not told again", async () => {
  const world = new World();
  const early = await join(world);
  expect(await seen(early)).toMatchObject({ version: 1 });
  const waiting = early.next();
  const late = await join(world);
  expect(await seen(late)).toMatchObject({ version: 1 });
  expect(await waits(waiting)).toBe(true);
  world.change("acme");
  const afterwards = await join(world);
  expect(await seen(afterwards)).toMatchObject({ version: 2 });
  expect(told(await waiting).data?.seen).toMatchObject({ version: 2 });
  await leave(early, late, afterwards);
});

test("a change while the first answer is read is told after it", async () => {
  const world = new World();
  world.whileReading = () => {
    world.whileReading = () => {};
    world.change("acme");
  };
  const reader = await join(world);
  expect(await seen(reader)).toMatchObject({ version: 1 });
  expect(await seen(reader)).toMatchObject({ version: 2 });
  await leave(reader);
});

test("who joins while there is nothing yet is told when there is", async () => {
  const world = new World();
  world.nothingYet = true;
  const reader = await join(world);
  const first = reader.next();
  expect(await waits(first)).toBe(true);
  world.nothingYet = false;
  world.change("acme");
  expect(told(await first).data?.seen).toMatchObject({ version: 2 });
  await leave(reader);
});

test("a source ends with its last subscriber, and begins anew with the next", async () => {
  const world = new World();
  const [one, two] = [await join(world), await join(world)];
  const listeners = () => world.listeners.get("acme")?.size;
  await leave(one, one);
  expect(listeners()).toBe(1);
  const waiting = [two.next(), two.next()];
  await leave(two);
  expect((await Promise.all(waiting)).at(-1)).toMatchObject({ done: true });
  expect(listeners()).toBe(0);
  world.change("acme");
  const again = await join(world);
  expect(await seen(again)).toMatchObject({ version: 2 });
  expect(listeners()).toBe(1);
  await leave(again);
  expect(listeners()).toBe(0);
});

test("who joins while the last one leaves is served", async () => {
  const world = new World();
  const last = await join(world);
  const joining = join(world);
  await leave(last);
  const joined = await joining;
  expect(await seen(joined)).toMatchObject({ version: 1 });
  world.change("acme");
  expect(await seen(joined)).toMatchObject({ version: 2 });
  await leave(joined);
  expect(world.listeners.get("acme")?.size).toBe(0);
});

test("a reader that stalls holds up nobody, and takes the newest answer alone when it reads again", async () => {
  const world = new World();
  const [stalled, healthy] = [await join(world), await join(world)];
  expect(await seen(stalled)).toMatchObject({ version: 1 });
  await next(healthy);
  for (let event = 0; event < 100; event += 1) {
    world.change("acme");
    expect(await seen(healthy)).toMatchObject({ version: event + 2 });
  }
  expect(await seen(stalled)).toMatchObject({ version: 101 });
  const nothingMore = stalled.next();
  expect(await waits(nothingMore)).toBe(true);
  expect(world.executions).toBe(101);
  await leave(stalled, healthy);
});

test.each([
  ["in a field", "subscription { seen { version fails } }", () => {}],
  [
    "of its source",
    ALL,
    () => {
      throw new Error("a secret of ours");
    },
  ],
])(
  "a failure %s is one failure, told to all of its subscribers, and ends none of them",
  async (_where, query, fail) => {
    const world = new World();
    world.whileReading = fail;
    const readers = [await join(world, {}, { query }), await join(world, {}, { query })];
    for (const { errors } of await Promise.all(readers.map(next)))
      expect(errors?.map(({ message }) => message)).toEqual(["masked 1"]);
    expect(world.failures).toHaveLength(1);
    world.whileReading = () => {};
    world.change("acme");
    for (const answer of await Promise.all(readers.map(next))) expect(answer.data?.seen).toMatchObject({ version: 2 });
    await leave(...readers);
  },
);

// Seen red: they went by the state before until the next change, days later.
test("what could not be read is read again by itself until it can be, for all, and no longer than anybody waits", async () => {
  const world = new World();
  const failing = () => {
    throw new Error("no session came free in time");
  };
  world.whileReading = failing;
  const readers = [await join(world), await join(world)];
  for (const { errors } of await Promise.all(readers.map(next))) expect(errors).toHaveLength(1);
  // Who comes amid it and has the state is not the only one who is told.
  world.whileReading = () => {};
  // What failed is shared no more, and mostly not read again yet.
  await sleep(1.25 * SHARED_MS);
  const late = await join(world);
  expect(await seen(late)).toMatchObject({ version: 1 });
  for (const reader of readers) expect(await seen(reader)).toMatchObject({ version: 1 });
  const { executions } = world;
  world.whileReading = failing;
  world.change("acme");
  for (const { errors } of await Promise.all([...readers, late].map(next))) expect(errors).toHaveLength(1);
  await leave(...readers, late);
  world.whileReading = () => {};
  await sleep(3.5 * SHARED_MS);
  expect(world.executions).toBe(executions);
}, 15_000);

test("what the caller may not see is not read again by itself", async () => {
  const world = new World();
  world.codeOfFailures = "NOT_ALLOWED_FOR_ROLE";
  const reader = await join(world, {}, { query: "subscription { seen { version fails } }" });
  expect((await next(reader)).errors).toHaveLength(1);
  const again = next(reader);
  await sleep(3.5 * SHARED_MS);
  expect(await waits(again)).toBe(true);
  await leave(reader);
}, 15_000);

test("a subscription that cannot be begun says why, each time, and holds nothing", async () => {
  const world = new World();
  for (let round = 1; round <= 2; round += 1) {
    const answer = await world.subscriptions.subscribe(
      viewerOf(person()),
      argsOf({ query: OF, variables: { by: ["no text"] } }),
      "mia",
    );
    expect(answer).toMatchObject({ errors: [{ message: `masked ${round}` }] });
  }
  expect(world.listeners.size).toBe(0);
});

test("a tenant's different subscriptions have an end: equal ones and other tenants are served, and who leaves makes room", async () => {
  const world = new World();
  const ask = (index: number, of: Partial<Actor> = {}) =>
    world.subscriptions.subscribe(viewerOf(person(of)), argsOf({ query: OF, variables: { by: `${index}` } }), "mia");
  const open = await Promise.all(Array.from({ length: MAX_DIFFERENT }, (_, index) => ask(index) as Promise<Reader>));
  expect(await ask(MAX_DIFFERENT)).toMatchObject({ errors: [{ extensions: { code: "TOO_MANY_SUBSCRIPTIONS" } }] });
  const [equal, foreign] = (await Promise.all([
    ask(0),
    ask(MAX_DIFFERENT, { tenant: "globex", tenantId: 2 }),
  ])) as Reader[];
  if (!equal || !foreign) throw new Error("unreachable");
  expect(await seen(equal)).toMatchObject({ by: "0" });
  expect(await seen(foreign)).toMatchObject({ tenant: "globex" });
  await leave(...open.splice(1, 1));
  const late = (await ask(MAX_DIFFERENT)) as Reader;
  expect(await seen(late)).toMatchObject({ by: `${MAX_DIFFERENT}` });
  await leave(...open, equal, foreign, late);
  expect([...world.listeners.values()].map((all) => all.size)).toEqual([0, 0]);
});

test("what is for one user alone is read once, executed once for that user, and told to nobody else", async () => {
  const happenings = new Set<(told: () => Promise<string>) => void>();
  const counts = { reads: 0, executions: 0 };
  const mine = buildSchema("type Query { unused: Int } type Subscription { mine: String }");
  const field = mine.getSubscriptionType()?.getFields().mine;
  if (!field) throw new Error("unreachable");
  field.subscribe = () =>
    new EventStream<string>(
      (happened) => {
        happenings.add(happened);
        return () => happenings.delete(happened);
      },
      (one) => one,
    );
  field.resolve = (one) => {
    counts.executions += 1;
    return `for ${one}`;
  };
  const { subscriptions } = new World();
  const listen = async (userId: string) => {
    const args = { schema: mine, document: parse("subscription { mine }") };
    const joined = await subscriptions.subscribe(viewerOf(person({ userId })), args, userId);
    return joined as Reader;
  };
  const readers = await Promise.all(["mia", "mia", "max", "moe"].map(listen));
  const heard = readers.map((reader) => reader.next());
  const happens = (to: string) => {
    for (const happened of happenings)
      happened(async () => {
        counts.reads += 1;
        return to;
      });
  };
  happens("mia");
  const [first, second, ...others] = heard;
  for (const answer of [first, second]) expect(answer && told(await answer).data).toEqual({ mine: "for mia" });
  expect(await waits(Promise.race(others))).toBe(true);
  happens("somebody who does not listen");
  expect(await waits(Promise.race(others))).toBe(true);
  expect(happenings.size).toBe(1);
  expect(counts).toEqual({ reads: 2, executions: 1 });
  await leave(...readers);
  expect(happenings.size).toBe(0);
});

test("a reader that is too far behind is told so, and hears what comes; so is each of an event that cannot be read", async () => {
  const happenings = new Set<(told: () => Promise<number>) => void>();
  const source = new EventStream<number>((happened) => {
    happenings.add(happened);
    return () => happenings.delete(happened);
  });
  const readers = source.shared(
    (read) => read().catch((error: Error) => error),
    () => undefined,
    async () => undefined,
  );
  const [slow, quick] = [readers("mia"), readers("max")].map((stream) => stream[Symbol.asyncIterator]());
  if (!slow || !quick) throw new Error("unreachable");
  const happens = (told: () => Promise<number>) => {
    for (const happened of happenings) happened(told);
  };
  for (let event = 1; event <= 1_002; event += 1) {
    happens(async () => event);
    expect(await quick.next()).toMatchObject({ value: event });
  }
  expect(await slow.next()).toMatchObject({ value: expect.any(EventsMissedError) });
  expect(await slow.next()).toMatchObject({ value: 1_002 });
  const away = new Error("the database is away");
  happens(() => Promise.reject(away));
  for (const reader of [slow, quick]) expect(await reader.next()).toMatchObject({ value: away });
  happens(async () => 1_003);
  for (const reader of [slow, quick]) expect(await reader.next()).toMatchObject({ value: 1_003 });
  await Promise.all([slow, quick].map((reader) => reader.return?.()));
  expect(happenings.size).toBe(0);
});
