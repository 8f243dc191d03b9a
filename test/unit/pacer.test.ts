import { setTimeout as sleep } from "node:timers/promises";
import { Pacer } from "../../src/crm/calls";
import type { CrmAnswer } from "../../src/crm/http";
import { systemClock } from "../../src/platform/clock";

// Seen red with: requests in flight that do not count; all who waited set free at once; an epoch taken for seconds.

const answer = (limit: CrmAnswer["limit"], status = 200): CrmAnswer => ({
  status,
  contentType: "application/json",
  body: Buffer.alloc(0),
  date: null,
  correlationId: undefined,
  headerNames: [],
  day: { limit: null, remaining: null },
  limit,
});

/** Asks `count` times at once; the answers come when they are given. */
function asking(pacer: Pacer, count: number) {
  const begun: ((answer: CrmAnswer) => void)[] = [];
  for (let n = 0; n < count; n += 1) void pacer.paced(() => new Promise((resolve) => begun.push(resolve)));
  return begun;
}

async function pacerWith(limit: CrmAnswer["limit"], status?: number): Promise<Pacer> {
  const pacer = new Pacer(systemClock);
  await pacer.paced(async () => answer(limit, status));
  return pacer;
}

const inSeconds = (seconds: number) => Math.floor(Date.now() / 1_000) + seconds;

test.each([
  ["ten are left: two of them are others'", { remaining: 10, reset: 2 }, 8],
  ["more are left than asked for", { remaining: 100, reset: 2 }, 20],
  ["two are left, until an instant to come", { remaining: 2, reset: inSeconds(9) }, 0],
  ["two were left, until an instant that is over", { remaining: 2, reset: inSeconds(-3) }, 1],
  ["none are left and the window is over", { remaining: 0, reset: 0 }, 1],
  ["nothing is said of what is left", { remaining: null, reset: 2 }, 20],
  ["nothing is said of the window's end", { remaining: 0, reset: null }, 20],
])("where %s, no more begin", async (_what, limit, begin) => {
  const begun = asking(await pacerWith(limit), 20);
  await sleep(20);
  expect(begun).toHaveLength(begin);
});

test("when a window is over one goes first, and its answer says how many may follow", async () => {
  const begun = asking(await pacerWith({ remaining: 0, reset: 1 }), 20);
  while (begun.length === 0) await sleep(5);
  expect(begun).toHaveLength(1);
  begun[0]?.(answer({ remaining: 7, reset: 2 }));
  await sleep(20);
  expect(begun).toHaveLength(1 + 5);
});

// Seen red: as long as the header said, an hour or for good.
test("whatever is said of a window's end, one goes after ten seconds", async () => {
  const ends = [3_600, inSeconds(86_400), Date.now()];
  const begun = await Promise.all(ends.map(async (reset) => asking(await pacerWith({ remaining: 0, reset }), 1)));
  const counts = () => begun.map(({ length }) => length);
  await sleep(5_000);
  expect(counts()).toEqual([0, 0, 0]);
  for (let waited = 0; waited < 10_000 && counts().includes(0); waited += 100) await sleep(100);
  expect(counts()).toEqual([1, 1, 1]);
}, 30_000);

test("answers arrive in any order: within a window the lowest counts", async () => {
  const pacer = await pacerWith({ remaining: 5, reset: 2 });
  await pacer.paced(async () => answer({ remaining: 9, reset: 2 }));
  const begun = asking(pacer, 20);
  await sleep(20);
  expect(begun).toHaveLength(3);
});

test("what a 429 says is no reason to wait, and a failed request holds up nobody", async () => {
  const pacer = await pacerWith({ remaining: 0, reset: 2 }, 429);
  await expect(pacer.paced(() => Promise.reject(new Error("reset")))).rejects.toThrow("reset");
  const begun = asking(pacer, 20);
  await sleep(20);
  expect(begun).toHaveLength(20);
});
