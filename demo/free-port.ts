import { createServer } from "node:net";

/** `preferred` where nothing uses it, else any free port. */
export function freePort(preferred: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", () =>
      preferred === 0 ? reject(new Error("no port is free")) : freePort(0).then(resolve, reject),
    );
    probe.listen(preferred, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === "object" && address ? address.port : preferred));
    });
  });
}
