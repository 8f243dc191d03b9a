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

// Seen red: a part of the batch is smaller than what goes on at a time, and did not end it.
test.each([1, 26, 64])(
  "with %i requests at a time, deals of which none can be read are asked a batch",
  async (concurrency) => {
    world = await World.start({ deals: 200, seed: 5 });
    const { control, log } = world.simulator;
    control.fail({ match: /\/participants$/, with: { status: 403, body: { success: false, error: "Scope" } } });
    const service = await world.startService({ config: { crm: { ...world.config.crm, concurrency } } });
    await connect(service, world.simulator);
    expect(await syncEnds(service)).toMatchObject({ state: "SUCCEEDED" });
    expect(log.of("GET", /\/participants$/).length).toBeLessThanOrEqual(50);
  },
);
