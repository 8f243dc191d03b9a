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
let last = { at: performance.now(), own: ownMs() };

/** A timer is due in every turn of the event loop, so what lies between two of them is about one turn. */
setInterval(() => {
  const now = { at: performance.now(), own: ownMs() };
  longest = {
    wallMs: Math.max(longest.wallMs, now.at - last.at),
    ownMs: Math.max(longest.ownMs, now.own - last.own),
  };
  last = now;
}, 1).unref();

/**
 * Loaded into the measured service before its own code: it answers its parent with the heap that is really in use, or
 * with the longest time that its event loop stood still since it was asked before.
 */
process.on("message", (asked) => {
  if (asked === "longest stall") {
    process.send?.(longest);
    longest = none();
    return;
  }
  globalThis.gc?.();
  process.send?.(process.memoryUsage().heapUsed);
});
process.channel?.unref();
