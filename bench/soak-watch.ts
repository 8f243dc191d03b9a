import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { quantile } from "./api-load";
import { column, megabytes, say } from "./print";
import { type RunningService, residentBytes } from "./processes";
import type { Users } from "./soak-load";

/** So long after its start a process has taken what it takes once. */
const WARM_MS = 30_000;

interface Sample {
  at: number;
  bytes: number;
}

/** What is looked at all the while. */
export interface Watched {
  processes: { name: string; service: RunningService; metricsUrl: string; samples: Sample[] }[];
  /** The age of the oldest watermark in each phase. */
  oldest: Map<string, number>;
  mostShort: number;
  givenUp: number;
  /** What processes have logged as errors, and how often. */
  errors: Map<string, number>;
}

interface LogLine {
  level: number;
  msg: string;
  err?: { stack?: string };
}

/** Notes what the process logs as an error. */
export function hear({ child }: RunningService, { errors }: Watched): void {
  createInterface({ input: child.stdout as Readable }).on("line", (text) => {
    if (!text.startsWith('{"level":50')) return;
    const { msg, err } = JSON.parse(text) as LogLine;
    const line = `${msg}: ${err?.stack?.split("\n").slice(0, 3).join(" ") ?? ""}`;
    errors.set(line, (errors.get(line) ?? 0) + 1);
  });
}

export async function watch(watched: Watched, phase: string): Promise<void> {
  for (const { service, metricsUrl, samples } of watched.processes) {
    if (!isLive(service)) continue;
    const bytes = residentBytes(service.pid);
    // A process that is just ending has none.
    if (bytes > 0) samples.push({ at: performance.now(), bytes });
    const text = await fetch(metricsUrl).then(
      (answer) => answer.text(),
      () => "",
    );
    if (text === "") continue;
    // Absent where it is not known: without PostgreSQL.
    const gauge = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1] ?? Number.NaN);
    const age = gauge("sync_oldest_watermark_seconds");
    if (age > (watched.oldest.get(phase) ?? 0)) watched.oldest.set(phase, age);
    watched.mostShort = Math.max(watched.mostShort, gauge("crm_companies_short") || 0);
    watched.givenUp = Math.max(watched.givenUp, gauge("jobs_given_up") || 0);
  }
}

const isLive = ({ child }: RunningService) => child.exitCode === null && child.signalCode === null;

/** @returns the largest ratio of end to warm, of the processes that lived so long */
export function growthOf({ processes }: Watched): number {
  say(`\n${"resident".padEnd(20)}${["start", "warm", "middle", "end"].map((head) => column(head)).join("")}`);
  const ratios = processes.flatMap(({ name, samples }) => {
    const [start] = samples;
    const warm = samples.find(({ at }) => at >= (start?.at ?? 0) + WARM_MS);
    const [middle, end] = [samples[Math.floor(samples.length / 2)], samples.at(-1)];
    const sizes = [start, warm, middle, end].map((sample) => (sample ? megabytes(sample.bytes) : "-"));
    say(`${name.padEnd(20)}${sizes.map((size) => column(size)).join("")}`);
    return warm && end ? [end.bytes / warm.bytes] : [];
  });
  return Math.max(...ratios);
}

const HEADS = ["seconds", "answered", "away", "failed", "p99, ms", "oldest, s"];

export const sayHeads = () => say(`${"phase".padEnd(20)}${HEADS.map((head) => column(head)).join("")}`);

/** @param began the phase's, as `performance.now()` has it */
export function sayPhase({ users, watched }: { users: Users; watched: Watched }, phase: string, began: number): void {
  const { answered, away, failed } = users.countsOf(phase);
  const took = ((performance.now() - began) / 1_000).toFixed(0);
  const briefings = users.briefings.get(phase)?.toSorted((a, b) => a - b) ?? [];
  const p99 = briefings.length > 0 ? quantile(briefings, 0.99).toFixed(0) : "-";
  const figures = [took, answered, away, failed, p99, watched.oldest.get(phase)?.toFixed(0) ?? "-"];
  say(`${phase.padEnd(20)}${figures.map((figure) => column(figure)).join("")}`);
}
