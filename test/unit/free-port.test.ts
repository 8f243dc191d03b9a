import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { startEmbeddedPostgres } from "../../src/database/embedded/embedded-postgres";
import { freePort } from "../../src/database/embedded/programs";

/** Where systems begin to give ports to whoever asks for any: Linux here, others later. */
const FIRST_GIVEN = 32_768;

// Seen red: one that a listener was given and gave back was a connection's before its use began.
test("a free port is the one that is preferred, or else none that a system gives to others by itself", async () => {
  const other = createServer();
  await once(other.listen(0, "127.0.0.1"), "listening");
  const { port: taken } = other.address() as AddressInfo;
  for (const preferred of [taken, undefined]) {
    const port = await freePort(preferred);
    expect(port).toBeGreaterThan(1_024);
    expect(port).toBeLessThan(FIRST_GIVEN);
    expect(await freePort(port)).toBe(port);
  }
  other.close();
});

// Seen red: a stack, and on a read-only file system ENOENT.
test("an embedded database that no folder can be made for says what to do", () =>
  expect(startEmbeddedPostgres({ directory: join(__filename, "data"), durable: false })).rejects.toMatchObject({
    code: "EMBEDDED_POSTGRES_FAILED",
    message: expect.stringMatching(/^No database can be kept in .* or set DATABASE_URL\.$/),
  }));
