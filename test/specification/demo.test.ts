import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startProgram } from "../support/processes";

jest.setTimeout(120_000);

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "demo-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const demo = (environment: Record<string, string> = {}) =>
  startProgram("demo/main.js", environment, ["--once"], folder);

/** What a demo leaves where it ran. */
const left = () => readdirSync(join(folder, ".data"));

// Seen red: it ended by EPIPE's stack, and its database stayed.
test("a demo whose reader wanted the first lines alone ends well and leaves nothing", async () => {
  const { child, says, ended, output } = demo();
  await says(/PostgreSQL +embedded/);
  child.stdout?.destroy();
  expect(await ended).toBe(0);
  expect(output()).not.toContain("EPIPE");
  expect(left()).toEqual([]);
});

// Seen red: the second found the port of the first free, and seconds later taken.
test("two demos at once have a port each", async () => {
  const [one, other] = [demo(), demo()];
  expect([await one.ended, await other.ended, one.output() + other.output()]).toEqual([0, 0, expect.any(String)]);
  expect(left()).toEqual([]);
});

const knowsProxies = process.allowedNodeEnvironmentFlags.has("--use-env-proxy") ? test : test.skip;

// Seen red: "fetch failed".
knowsProxies("a proxy that Node is told of is not asked for what stands on this machine", async () => {
  const { ended, output } = demo({ NODE_USE_ENV_PROXY: "1", HTTP_PROXY: "http://127.0.0.1:9" });
  expect([await ended, output()]).toEqual([0, expect.stringContaining("\nBriefing\n")]);
  expect(left()).toEqual([]);
});
