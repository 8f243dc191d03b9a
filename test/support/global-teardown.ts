import { dropTemplate } from "./database";

export default async function tearDown(): Promise<void> {
  await dropTemplate();
  await (globalThis as { stopTestServer?: () => Promise<void> }).stopTestServer?.();
}
