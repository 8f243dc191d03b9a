import { monitorEventLoopDelay } from "node:perf_hooks";
import { Pool } from "undici";

/** At once, each on a connection of its own, as ten browsers would. */
const CONNECTIONS = 10;

export interface Request {
  path: string;
  headers: Record<string, string>;
  body: string;
}

/** A server under load. */
export interface Target {
  name: string;
  url: string;
  request(): Request;
  /** So many requests come first, each of another tenant: a process meets a tenant once, and then serves it for long. */
  tenants?: number;
}

export interface Load {
  perSecond: number;
  /** Milliseconds. */
  p50: number;
  p99: number;
}

/**
 * Ten requests are always under way; the next is sent when an answer is there.
 * @param least goes on until so many have been asked
 * @throws where an answer is an error
 */
export async function load({ name, url, request }: Target, seconds: number, least = 0): Promise<Load> {
  const pool = new Pool(url, { connections: CONNECTIONS, pipelining: 1 });
  const began = performance.now();
  const ends = began + seconds * 1000;
  const took: number[] = [];
  const client = async () => {
    while (performance.now() < ends || took.length < least) {
      const sent = performance.now();
      const { path, headers, body } = request();
      const answer = await pool.request({ path, method: "POST", headers, body });
      const text = await answer.body.text();
      took.push(performance.now() - sent);
      if (answer.statusCode !== 200 || text.startsWith('{"errors"')) {
        throw new Error(`${name} answered ${answer.statusCode}: ${text.slice(0, 500)}`);
      }
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, client));
  const elapsed = (performance.now() - began) / 1000;
  await pool.close();
  took.sort((a, b) => a - b);
  return { perSecond: took.length / elapsed, p50: quantile(took, 0.5), p99: quantile(took, 0.99) };
}

export const quantile = (sorted: readonly number[], part: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;

export function median(values: readonly number[]): number {
  return quantile(
    [...values].sort((a, b) => a - b),
    0.5,
  );
}

/** Answers the benchmark's question how long this process's event loop kept work waiting since the last question. */
export function tellEventLoopDelay(): void {
  const delay = monitorEventLoopDelay({ resolution: 10 });
  delay.enable();
  process.on("message", (message) => {
    if (message !== "event loop delay") return;
    process.send?.(delay.percentile(99) / 1e6);
    delay.reset();
  });
}
