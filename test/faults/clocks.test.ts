import { Random } from "../../simulator/seed/random";
import { LISTS, SyncWorld } from "../support/sync-world";
import { useStarted } from "../support/world";

const SEEDS = Number(process.env.SEEDS ?? (process.env.DEEP ? 40 : 4));
const STEPS = 4;
const TIMEOUT_MS = 180_000;
const [FIRST, LAST] = [Date.UTC(1970, 0, 2), Date.UTC(2100, 0, 1)];

const world = useStarted(() => SyncWorld.start({ deals: 60 }));

const now = () => Date.now() + world.time.aheadMs;

type Clock = () => number;
/** A clock that says another time at each look, before the true time or behind it. */
const wild =
  (random: Random, from: number, to: number): Clock =>
  () =>
    from + random.next() * (to - from);
/** A clock that is wrong by as much all the time: a process that reads it works on. */
function wrongBy(by: number): Clock {
  return () => now() + by;
}

interface Clocks {
  /** Anew for each answer; null: the answer has none. */
  crms: () => number | null;
  ours: Clock;
}

/** At most one of the two is ahead of the time at once: which one is never known. */
function someClocks(random: Random): Clocks {
  const behind = wild(random, FIRST, now());
  const ahead = wild(random, now(), LAST);
  return random.pick<Clocks>([
    { crms: ahead, ours: now },
    { crms: ahead, ours: wrongBy(behind() - now()) },
    { crms: behind, ours: now },
    { crms: behind, ours: wrongBy(ahead() - now()) },
    { crms: now, ours: wrongBy(ahead() - now()) },
    { crms: now, ours: wrongBy(behind() - now()) },
    { crms: () => null, ours: wrongBy(behind() - now()) },
    { crms: wild(random, FIRST, LAST), ours: now },
  ]);
}

let changes = 0;
function change(random: Random): void {
  const { control } = world.simulator;
  const { deals, persons } = control.visibleTo(world.userId);
  changes += 1;
  control.change("deal", random.pick(deals).id ?? 0, { title: `Changed ${changes}` });
  control.change("person", random.pick(persons).id ?? 0, { name: `Changed ${changes}` });
}

/** Until the returned function is called, both clocks are those, and somebody works in the CRM behind some answers. */
function setClocks({ crms, ours }: Clocks, random: Random): () => void {
  const headers = () => {
    if (random.chance(0.3)) change(random);
    const date = crms();
    return { date: date === null ? null : new Date(date).toUTCString() };
  };
  const end = world.simulator.control.fail({ match: /^\/api\//, with: { kind: "headers", headers } });
  const honest = world.time.ours;
  world.time.ours = () => new Date(ours());
  return () => {
    end();
    world.time.ours = honest;
  };
}

test.each(Array.from({ length: SEEDS }, (_, index) => index + 1))(
  "seed %i: whatever the clocks say, no change is missed, and no watermark goes back",
  async (seed) => {
    const random = new Random(`clocks ${seed}`);
    const as = { tenant: `seed-${seed}` };
    let before = new Map<string, number>();
    const advance = async () => {
      const after = await world.watermarks(as);
      for (const [list, moment] of before) expect([list, (after.get(list) ?? 0) >= moment]).toEqual([list, true]);
      before = after;
    };
    for (let step = 0; step < STEPS; step += 1) {
      const honest = setClocks(someClocks(random), random);
      if (step === 0) await world.connect(as);
      else await world.sync(as, random.pick(["INCREMENTAL", "INCREMENTAL", "FULL"]));
      honest();
      await advance();
      change(random);
      world.passMinutes(random.int(2, 90));
      expect(await world.sync(as)).toMatchObject({ state: "SUCCEEDED", gaps: [] });
      await world.isExact(as);
      await advance();
      for (const moment of before.values()) expect(moment).toBeLessThanOrEqual(now());
      world.passMinutes(random.int(2, 90));
      change(random);
    }
  },
  TIMEOUT_MS,
);

test("a second walk that a clock far ahead has put off is made all the same", async () => {
  const as = { tenant: "put off" };
  await world.connect(as);
  const honest = world.time.ours;
  const nothing = { success: true, data: [], additional_data: { next_cursor: null } };
  const end = world.simulator.control.fail({ match: LISTS.PERSONS.path, with: { status: 200, body: nothing } });
  world.time.ours = () => new Date(LAST);
  await world.sync(as, "RECONCILE");
  end();
  world.time.ours = honest;
  expect(await world.sync(as)).toMatchObject({ state: "SUCCEEDED", gaps: [] });
  await world.isExact(as);
  expect(await world.database.query("SELECT 1 FROM sync_pass")).toEqual([]);
});

// Seen red: it was asked for in each run until the time had come since which that clock had noted it to fail.
test("a list that a clock far ahead has seen fail rests as any other does", async () => {
  const as = { tenant: "fails" };
  await world.connect(as);
  const honest = world.time.ours;
  const end = world.simulator.control.fail({ match: LISTS.NOTES.path, with: { status: 403 } });
  world.time.ours = () => new Date(LAST);
  await world.sync(as);
  world.time.ours = honest;
  await world.sync(as);
  world.passMinutes(60);
  await world.sync(as);
  end();
  const rests = await world.database.query<{ from: Date; until: Date }>(
    `SELECT failed_since AS "from", rests_until AS "until" FROM sync_pass WHERE failed_since IS NOT NULL`,
  );
  expect(rests.map(({ from, until }) => Math.round((until.getTime() - from.getTime()) / 3_600_000))).toEqual([2]);
  expect(await world.sync(as)).toMatchObject({ state: "SUCCEEDED", gaps: [] });
});
