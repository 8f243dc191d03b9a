import { type Simulator, startSimulator } from "../../simulator";
import { createTestDatabase, type TestDatabase } from "../support/database";
import { type Service, startService } from "../support/service";
import { connect, syncEnds } from "../support/stories";

const BURST_LIMIT = 40;

let simulator: Simulator;
let database: TestDatabase;
let service: Service;

beforeAll(async () => {
  [simulator, database] = await Promise.all([
    startSimulator({ deals: 70, seed: 5, burstLimit: BURST_LIMIT }),
    createTestDatabase(),
  ]);
  service = await startService(simulator, database);
});
afterAll(async () => {
  await service.stop();
  await Promise.all([simulator.stop(), database.drop()]);
});

// Planted and seen red: a pacer that never waits.
test("a sync that needs more requests than a burst allows slows down before the limit and is refused nothing", async () => {
  await connect(service, simulator);
  const run = await syncEnds(service);
  expect(run).toMatchObject({ state: "SUCCEEDED", gaps: [] });
  const answers = simulator.log.of("GET", "/api/");
  expect(answers.length).toBeGreaterThan(BURST_LIMIT);
  expect(answers.filter(({ status }) => status === 429)).toEqual([]);
});
