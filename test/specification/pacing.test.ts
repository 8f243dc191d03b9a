import { connect, syncEnds } from "../support/stories";
import { World } from "../support/world";

let world: World;
afterEach(() => world.stop());

// Planted and seen red: a pacer that never waits; one that leaves as little to many at a time as to few.
test.each([
  [8, 40, 70],
  [64, 80, 200],
])(
  "with %i requests at a time, a sync that needs more than a burst of %i slows down before the limit and is refused nothing",
  async (concurrency, burstLimit, deals) => {
    world = await World.start({ deals, seed: 5, burstLimit });
    const service = await world.startService({ config: { crm: { ...world.config.crm, concurrency } } });
    await connect(service, world.simulator);
    const run = await syncEnds(service);
    expect(run).toMatchObject({ state: "SUCCEEDED", gaps: [] });
    const answers = world.simulator.log.of("GET", "/api/");
    expect(answers.length).toBeGreaterThan(burstLimit);
    expect(answers.filter(({ status }) => status === 429)).toEqual([]);
  },
);
