/** Loaded before a process of the service, it lets that meet what nobody foresaw, at a signal. */
process.on("SIGUSR2", () => {
  throw new Error("nobody foresaw this");
});

/** Its place in `dist`. */
export type Throws = "test/support/programs/throws.js";
