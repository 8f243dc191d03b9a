import { monitorEventLoopDelay } from "node:perf_hooks";

const delay = monitorEventLoopDelay({ resolution: 1 });
delay.enable();

/**
 * Loaded into the measured service before its own code: it answers its parent with the heap that is really in use, or
 * with the longest time that its event loop stood still since it was asked before, in milliseconds.
 */
process.on("message", (asked) => {
  if (asked === "longest stall") {
    process.send?.(delay.max / 1e6);
    delay.reset();
    return;
  }
  globalThis.gc?.();
  process.send?.(process.memoryUsage().heapUsed);
});
process.channel?.unref();
