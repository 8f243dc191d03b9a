import { setTimeout as sleep } from "node:timers/promises";
import { pino } from "pino";
import { forEachLogged, startPeriodic } from "../../src/platform/work";

// Seen red with: a failure that ends the round; rounds that begin while another is under way; an end that does not wait.

let logged: Record<string, unknown>[];
const logger = pino({ base: null }, { write: (line) => void logged.push(JSON.parse(line)) });
beforeEach(() => {
  logged = [];
});

const levelOf = (error: unknown) => (error instanceof TypeError ? "error" : "warn");

const until = async (done: () => boolean) => {
  while (!done()) await sleep(1);
};

test("a periodic task that fails is logged as what it is, comes again, and holds up none of the others", async () => {
  const done = { first: 0, second: 0 };
  const tasks = {
    first: async () => {
      done.first += 1;
      throw done.first === 1 ? new Error("the first fails") : new TypeError("for good");
    },
    second: async () => {
      done.second += 1;
    },
  };
  const end = await startPeriodic(tasks, 1, logger, levelOf);
  expect(done).toEqual({ first: 1, second: 1 });
  await until(() => done.second >= 3);
  await end();
  expect(done.first).toBe(done.second);
  expect(logged[0]).toMatchObject({ level: 40, task: "first", err: { message: "the first fails" } });
  expect(logged[1]).toMatchObject({ level: 50, task: "first", err: { message: "for good" } });
});

test("rounds follow each other, and the end waits for the one in hand", async () => {
  let [atOnce, most, begun] = [0, 0, 0];
  const slow = async () => {
    begun += 1;
    atOnce += 1;
    most = Math.max(most, atOnce);
    await sleep(20);
    atOnce -= 1;
  };
  const end = await startPeriodic({ slow }, 1, logger, levelOf);
  await until(() => begun === 3);
  await end();
  expect([most, atOnce, begun]).toEqual([1, 0, 3]);
});

// Seen red: all tasks of the first round were done, however long each took, before the end was heard.
test("an end that comes within the first round keeps its next task from beginning", async () => {
  const done: string[] = [];
  const ending = new AbortController();
  const tasks = {
    first: async () => {
      done.push("first");
      ending.abort();
    },
    second: async () => void done.push("second"),
  };
  const end = await startPeriodic(tasks, 1, logger, levelOf, ending.signal);
  await end();
  expect(done).toEqual(["first"]);
});

test("of many things one that fails holds up none behind it, and is logged by what it is", async () => {
  const done: number[] = [];
  const work = async ({ id }: { id: number }) => {
    if (id === 2) throw new Error("not this one");
    done.push(id);
  };
  await forEachLogged([{ id: 1 }, { id: 2 }, { id: 3 }], work, logger);
  expect(done).toEqual([1, 3]);
  expect(logged).toEqual([expect.objectContaining({ level: 50, id: 2 })]);
});
