/** Loaded into the measured service before its own code: it answers its parent with the heap that is really in use. */
process.on("message", () => {
  globalThis.gc?.();
  process.send?.(process.memoryUsage().heapUsed);
});
process.channel?.unref();
