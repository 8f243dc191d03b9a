import { dropTemplates } from "./database";

export default async function tearDown(): Promise<void> {
  await dropTemplates();
  await (globalThis as { stopTestServer?: () => Promise<void> }).stopTestServer?.();
}
