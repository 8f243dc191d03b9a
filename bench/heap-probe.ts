import { readFileSync } from "node:fs";

/** How long this process's main thread has been on a CPU, in milliseconds; Linux counts it in nanoseconds. */
const ownMs = () => Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;

export interface Stall {
  wallMs: number;
  /** What the main thread itself worked in one stretch: the rest of a stall are other processes on its CPU. */
  ownMs: number;
}

const none = (): Stall => ({ wallMs: 0, ownMs: 0 });
let longest = none();
let isWatched = false;

/** A timer is due in every turn of the event loop, so what lies between two of them is about one turn. */
function startWatch(): void {
  isWatched = true;
  let last = { at: performance.now(), own: ownMs() };
  setInterval(() => {
    const now = { at: performance.now(), own: ownMs() };
    longest = {
      wallMs: Math.max(longest.wallMs, now.at - last.at),
      ownMs: Math.max(longest.ownMs, now.own - last.own),
    };
    last = now;
  }, 1).unref();
}

/**
 * Loaded into the measured service before its own code: it answers its parent with the heap that is really in use, or
 * with the longest time that its event loop stood still since it was asked before. It watches from the first such
 * question on: to watch costs CPU, and where CPU is measured nobody asks.
 */
process.on("message", (asked) => {
  if (asked === "longest stall") {
    process.send?.(longest);
    longest = none();
    if (!isWatched) startWatch();
    return;
  }
  globalThis.gc?.();
  process.send?.(process.memoryUsage().heapUsed);
});
process.channel?.unref();
