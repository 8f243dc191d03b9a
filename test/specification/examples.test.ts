import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { JWT_SECRET, tokenFor } from "../support/actors";
import { startProgram } from "../support/processes";
import { useService } from "../support/world";

const { simulator, service } = useService({ deals: 40, connected: ["acme"] });

async function run(...args: string[]): Promise<{ code: number | string; output: string }> {
  const program = startProgram("examples/node.js", {}, args);
  return { code: await program.ended, output: program.output() };
}

test("the example for Node asks, records, reads page by page and is told the state", async () => {
  const { code, output } = await run(service.url, await tokenFor(), simulator.company.stories.singleDeal.email);
  expect([code, output.split("\n")]).toEqual([
    0,
    [
      `anna is ADMIN; ${simulator.company.name}: CONNECTED`,
      expect.stringMatching(/^MATCHED: ./),
      expect.stringMatching(/^\d+ open deals are quiet$/),
      "told: CONNECTED",
      "",
    ],
  ]);
});

test("the example for Node says what is wrong with a token", async () => {
  expect(await run(service.url, "x")).toEqual({ code: 1, output: expect.stringMatching(/^UNAUTHENTICATED: /) });
});

test("the demo that ends by itself shows a briefing, and no address or token of what is gone then", async () => {
  const folder = mkdtempSync(join(tmpdir(), "demo-"));
  const demo = startProgram("demo/main.js", {}, ["--once"], folder);
  expect(await demo.ended).toBe(0);
  rmSync(folder, { recursive: true });
  expect(demo.output()).toContain("Walk through the proposal: about");
  expect(demo.output()).toMatch(/Missing +nothing\n$/);
}, 120_000);

test("the sample host says what it needs, and where to sign in", async () => {
  const lacking = startProgram("examples/host.js");
  expect([await lacking.ended, lacking.output()]).toEqual([1, expect.stringContaining("--page <address>")]);
  const secret = { AUTH_JWT_SECRET: JWT_SECRET };
  const host = startProgram("examples/host.js", secret, ["--page", service.url, "--port", "0"]);
  const [, tokenUrl = ""] = await host.says(/tokens at (\S+)/);
  const headers = { origin: service.url, cookie: "demo_user=admin" };
  const answer = await fetch(tokenUrl, { method: "POST", headers });
  const { token } = (await answer.json()) as { token: string };
  const asked = await service.ask("{ viewer { userId role } }", {}, { token });
  host.child.kill();
  expect(asked.data).toEqual({ viewer: { userId: "admin", role: "ADMIN" } });
});
