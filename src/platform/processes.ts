import { createServer } from "node:net";
import { codeOf } from "./errors";

/** Whether a process of this id runs, also where it is another user's. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === "EPERM";
  }
}

/** A loopback port that nothing uses now: `preferred` where it is free, else any. */
export function freePort(preferred = 0): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", (error) => (preferred === 0 ? reject(error) : freePort().then(resolve, reject)));
    probe.listen(preferred, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() =>
        typeof address === "object" && address ? resolve(address.port) : reject(new Error("no port")),
      );
    });
  });
}
