import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { tokenFor } from "../support/actors";
import { post } from "../support/http";
import { type Program, startProgram } from "../support/processes";
import type { Said } from "../support/programs/full-log";
import type { Throws } from "../support/programs/throws";
import { useCrm } from "../support/world";

// Planted and seen red: lines that are written before the work goes on; the process then stands still for ever.

const { world } = useCrm({ deals: 10 });

/** More lines than the pipe between two processes holds. */
const REQUESTS = 1_500;
const AT_ONCE = 25;
const ENDS_WITHIN_MS = 20_000;

const answered = ({ output }: Program) => new Set(output().match(/"operationName":"Number\d+"/g)).size;

/** A process whose log is not read, which has answered so many requests. */
async function unread(environment: Record<string, string> = {}) {
  const { program, service } = await world.startProcess({ LOG_LEVEL: "debug", ...environment });
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
  return program;
}

// Seen red: an exit left out the lines that were being written when it began.
test("a log that nobody reads holds up no request, and is all there when it is read again", async () => {
  const program = await unread();
  program.child.kill("SIGTERM");
  // Long enough for the process to have nothing else in hand.
  await sleep(2_000);
  program.child.stdout?.resume();
  expect(await program.ended).toBe(0);
  expect(answered(program)).toBe(REQUESTS);
});

// Seen red: the lines that were being written then were left out.
test.each([
  ["by a second signal", "SIGTERM"],
  ["by what nobody foresaw", "SIGUSR2"],
] as const)("nor does an end at once, %s, leave out a line", async (_, signal) => {
  const place: Throws = "test/support/programs/throws.js";
  const program = await unread({ DRAIN_SECONDS: "60", NODE_OPTIONS: `--require ${process.cwd()}/dist/${place}` });
  program.child.kill("SIGTERM");
  await sleep(1_500);
  program.child.kill(signal);
  await sleep(1_000);
  program.child.stdout?.resume();
  expect(await program.ended).toBe(1);
  expect(answered(program)).toBe(REQUESTS);
  expect(program.output().includes("nobody foresaw this")).toBe(signal === "SIGUSR2");
});

// Seen red: the exit tried for ever to write, with all signals unheard.
test("a log that nobody reads any more does not hold up the end", async () => {
  const program = await unread();
  program.child.kill("SIGTERM");
  const late = setTimeout(() => program.child.kill("SIGKILL"), ENDS_WITHIN_MS);
  expect(await once(program.child, "exit")).toEqual([0, null]);
  clearTimeout(late);
  program.child.stdout?.resume();
  await program.ended;
});

/** No other kernel has a file that is always full. */
const onLinux = process.platform === "linux" ? test : test.skip;

// Seen red: the first line ended the process, whose exit then tried to write it for ever.
onLinux("a log that takes nothing, as on a full disk, ends no process and holds up no exit", async () => {
  const { ended, says, child } = startProgram("test/support/programs/full-log.js");
  const late = setTimeout(() => child.kill("SIGKILL"), ENDS_WITHIN_MS);
  const said: Said = "it has worked";
  await says(new RegExp(said));
  expect(await ended).toBe(3);
  clearTimeout(late);
});
