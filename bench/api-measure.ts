import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { type Load, load, median, type Target } from "./api-load";
import { postgresCpuSeconds } from "./cpu";
import { column, say } from "./print";
import { useOf } from "./processes";

/** A server to be measured, and its process. */
export interface Measured extends Target {
  pid: number;
  /** Asked for how long its event loop kept work waiting; null: it is not asked. */
  child: ChildProcess | null;
}

export interface Figures extends Load {
  serverCpuMs: number;
  postgresCpuMs: number;
  /** Milliseconds, 99th percentile; the timer that measures it counts 10. */
  loopDelay: number;
}

export interface MeasureOptions {
  seconds: number;
  rounds: number;
  directory: string;
}

/** Each server is warmed up, and then all of them are measured in turn, so often. @returns the medians of each */
export async function measure(
  servers: readonly Measured[],
  { seconds, rounds, directory }: MeasureOptions,
): Promise<Figures[]> {
  for (const server of servers) await load(server, Math.max(2, seconds / 2), server.tenants);
  const found = servers.map((): Figures[] => []);
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, server] of servers.entries()) {
      await loopDelay(server);
      const before = [useOf(server.pid).cpuSeconds, postgresCpuSeconds(directory)] as const;
      const loaded = await load(server, seconds);
      const answers = loaded.perSecond * seconds;
      found[index]?.push({
        ...loaded,
        serverCpuMs: (1000 * (useOf(server.pid).cpuSeconds - before[0])) / answers,
        postgresCpuMs: (1000 * (postgresCpuSeconds(directory) - before[1])) / answers,
        loopDelay: await loopDelay(server),
      });
    }
  }
  return found.map((figures) => medians(figures));
}

function medians(figures: readonly Figures[]): Figures {
  const of = (name: keyof Figures) => median(figures.map((figure) => figure[name]));
  return {
    perSecond: of("perSecond"),
    p50: of("p50"),
    p99: of("p99"),
    serverCpuMs: of("serverCpuMs"),
    postgresCpuMs: of("postgresCpuMs"),
    loopDelay: of("loopDelay"),
  };
}

export function report(title: string, servers: readonly Measured[], figures: readonly Figures[]): void {
  say(`\n${title}`);
  say(
    column("", 26) +
      ["requests/s", "p50 ms", "p99 ms", "CPU ms", "PostgreSQL", "loop p99"].map((name) => column(name, 12)).join(""),
  );
  for (const [index, { name }] of servers.entries()) {
    const { perSecond, p50, p99, serverCpuMs, postgresCpuMs, loopDelay } = figures[index] ?? medians([]);
    const shown = [perSecond, p50, p99, serverCpuMs, postgresCpuMs, loopDelay].map((figure) =>
      column(figure.toFixed(2), 12),
    );
    say(name.padEnd(26) + shown.join(""));
  }
}

/** Of the time since it was asked before. */
async function loopDelay({ child }: Measured): Promise<number> {
  if (!child) return 0;
  const answer = once(child, "message");
  child.send("event loop delay");
  return ((await answer) as [number])[0];
}
