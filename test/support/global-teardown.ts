import { onServer, TEMPLATE } from "./database";

export default async function tearDown(): Promise<void> {
  await onServer(`DROP DATABASE IF EXISTS ${TEMPLATE} WITH (FORCE)`);
  await (globalThis as { stopTestServer?: () => Promise<void> }).stopTestServer?.();
}
