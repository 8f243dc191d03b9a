import { tokenFor } from "../support/actors";
import { post } from "../support/http";
import { useCrm } from "../support/world";

// Planted and seen red: lines that are written before the work goes on; the process then stands still for ever.

const { world } = useCrm({ deals: 10 });

/** More lines than the pipe between two processes holds. */
const REQUESTS = 1_500;
const AT_ONCE = 25;

test("a log that nobody reads holds up no request, and is all there when it is read again", async () => {
  const { program, service } = await world.startProcess({ LOG_LEVEL: "debug" });
  const headers = { authorization: `Bearer ${await tokenFor()}` };
  program.child.stdout?.pause();
  const ask = async (number: number) => {
    const query = `query Number${number} { viewer { userId } connection { state } }`;
    return (await post(`${service.url}/graphql`, { query }, headers)).status;
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
