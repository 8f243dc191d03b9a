import { setTimeout as sleep } from "node:timers/promises";
import type { Api } from "./api";

const POLL_MS = 100;
/** A sync of the demo's company takes seconds. */
const PATIENCE_MS = 120_000;

const SYNC = `{ connection { sync {
  current { progress steps { resource state fetched } }
  last { state error { message } steps { resource state fetched } gaps { message } } } } }`;

interface Step {
  resource: string;
  state: string;
  fetched: number;
}
interface Sync {
  current: { progress: number; steps: Step[] } | null;
  last: { state: string; error: { message: string } | null; steps: Step[]; gaps: { message: string }[] } | null;
}

const words = (resource: string) => resource.toLowerCase().replaceAll("_", " ");

/** Shows the first sync as it goes: one line that changes in a terminal, a line for each step otherwise. */
export async function showSync(api: Api, out: NodeJS.WriteStream): Promise<string> {
  let shown = "";
  for (let waited = 0; waited < PATIENCE_MS; waited += POLL_MS) {
    const { current, last } = (await api.ask<{ connection: { sync: Sync } }>(SYNC)).connection.sync;
    if (!current && last) {
      if (out.isTTY) out.write("\r\x1b[K");
      if (last.state !== "SUCCEEDED") throw new Error(`the sync ended ${last.state}: ${last.error?.message ?? ""}`);
      return summary(last.steps);
    }
    const line = current ? progressLine(current.progress, current.steps) : "";
    const key = out.isTTY ? line : line.replace(/^.*% {2}/, "").replace(/ \d+$/, "");
    if (line && key !== shown) out.write(out.isTTY ? `\r\x1b[K  ${line}` : `  ${line}\n`);
    shown = key;
    await sleep(POLL_MS);
  }
  throw new Error(`the sync did not end within ${PATIENCE_MS / 1000} seconds`);
}

function progressLine(progress: number, steps: readonly Step[]): string {
  const step = steps.find(({ state }) => state === "RUNNING") ?? steps.find(({ state }) => state === "QUEUED");
  const percent = String(Math.floor(progress * 100)).padStart(3);
  return step ? `${percent} %  ${words(step.resource)} ${step.fetched}` : `${percent} %`;
}

function summary(steps: readonly Step[]): string {
  return steps.map(({ resource, fetched }) => `${fetched} ${words(resource)}`).join(", ");
}
