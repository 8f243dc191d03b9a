import { type Simulator, startSimulator } from "../../simulator";
import { readConfig } from "../../src/platform/config";
import { environmentFor, type Service, startService } from "../support/service";
import { connect, syncEnds } from "../support/stories";
import { useDatabase } from "../support/world";

let simulator: Simulator;
let service: Service;

const database = useDatabase();
afterEach(async () => {
  await service.stop();
  await simulator.stop();
});

// Planted and seen red: a pacer that never waits; one that leaves as little to many at a time as to few.
test.each([
  [8, 40, 70],
  [64, 80, 200],
])(
  "with %i requests at a time, a sync that needs more than a burst of %i slows down before the limit and is refused nothing",
  async (concurrency, burstLimit, deals) => {
    simulator = await startSimulator({ deals, seed: 5, burstLimit });
    const { crm } = readConfig({ ...environmentFor(simulator), DATABASE_URL: database.url.reveal() });
    service = await startService(simulator, database, { crm: { ...crm, concurrency } });
    const as = { tenant: `at a time ${concurrency}` };
    await connect(service, simulator, as);
    const run = await syncEnds(service, as);
    expect(run).toMatchObject({ state: "SUCCEEDED", gaps: [] });
    const answers = simulator.log.of("GET", "/api/");
    expect(answers.length).toBeGreaterThan(burstLimit);
    expect(answers.filter(({ status }) => status === 429)).toEqual([]);
  },
);
