import { type Simulator, startSimulator } from "../../simulator";
import { tokenFor } from "../support/actors";
import { createTestDatabase, type TestDatabase } from "../support/database";
import { post } from "../support/http";
import { type Program, startProgram } from "../support/processes";
import { environmentFor } from "../support/service";

// Planted and seen red: lines that are written before the work goes on; the process then stands still for ever.

let simulator: Simulator;
let database: TestDatabase;
let program: Program;

beforeAll(async () => {
  [simulator, database] = await Promise.all([startSimulator({ deals: 10 }), createTestDatabase()]);
});
afterAll(async () => {
  // It answers to nothing else where the test has failed.
  program.child.kill("SIGKILL");
  await program.ended;
  await Promise.all([simulator.stop(), database.drop()]);
});

/** More lines than the pipe between two processes holds. */
const REQUESTS = 1_500;
const AT_ONCE = 25;

test("a log that nobody reads holds up no request, and is all there when it is read again", async () => {
  const environment = { ...environmentFor(simulator), DATABASE_URL: database.url.reveal(), LOG_LEVEL: "debug" };
  program = startProgram("src/main.js", environment);
  const [, url = ""] = await program.says(/"address":"([^"]+)"/);
  const headers = { authorization: `Bearer ${await tokenFor()}` };
  program.child.stdout?.pause();
  const ask = async (number: number) => {
    const query = `query Number${number} { viewer { userId } connection { state } }`;
    return (await post(`${url}/graphql`, { query }, headers)).status;
  };
  for (let sent = 0; sent < REQUESTS; sent += AT_ONCE) {
    const statuses = await Promise.all(Array.from({ length: AT_ONCE }, (_, index) => ask(sent + index)));
    expect(new Set(statuses)).toEqual(new Set([200]));
  }
  program.child.stdout?.resume();
  program.child.kill("SIGTERM");
  expect(await program.ended).toBe(0);
  const answered = program.output().match(/"operationName":"Number\d+"/g);
  expect(new Set(answered).size).toBe(REQUESTS);
});
