import { openSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { createLogger } from "../../../src/platform/logger";

/** On its stdout, once it has written its log. */
export type Said = "it has worked";
const SAID: Said = "it has worked";

/** Says in its log, which takes nothing, that it works, and then on its stdout that it has. */
async function main(): Promise<void> {
  const logger = createLogger("info", openSync("/dev/full", "w"));
  for (let line = 0; line < 5; line += 1) {
    logger.info({ line }, "working");
    await sleep(20);
  }
  process.stdout.write(`${SAID}\n`, () => process.exit(3));
}

void main();
