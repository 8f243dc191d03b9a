import { mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parse, type TypedQueryDocumentNode } from "graphql";
import WebSocket from "ws";
import { Client } from "../../examples/client";
import { freePort } from "../../src/database/embedded/programs";
import { JWT_SECRET, tokenFor } from "../support/actors";
import { END_LISTENERS } from "../support/database";
import { startProgram } from "../support/processes";
import { recordMeeting } from "../support/stories";
import { useService } from "../support/world";

const { simulator, database, service } = useService({ deals: 40, connected: ["acme"] });

type Watched = TypedQueryDocumentNode<object, Record<string, never>>;
const WATCHED = parse("subscription { connectionStatusChanged { state } }") as Watched;

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

// Seen red: that nothing listens, as while the service is started anew, ended the subscription for good.
test("what the example hears goes on where the service is away for a while", async () => {
  const port = await freePort();
  const client = new Client({ url: `http://127.0.0.1:${port}`, token: tokenFor, webSocketImpl: WebSocket });
  const heard = client.hear(WATCHED, {}).next();
  await sleep(500);
  const through = createServer((near) => {
    const far = connect(Number(new URL(service.url).port), "127.0.0.1");
    near.pipe(far).pipe(near);
  }).listen(port, "127.0.0.1");
  expect(await heard).toEqual({ done: false, value: { connectionStatusChanged: { state: "CONNECTED" } } });
  client.close();
  through.close();
});

/** Between the client and the service: `stall` keeps sockets open and passes nothing on. */
async function startThrough() {
  const passing = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(Number(new URL(service.url).port), "127.0.0.1");
    for (const end of [near, far]) passing.add(end.on("error", () => {}));
    near.pipe(far).pipe(near);
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as AddressInfo;
  const stall = () => {
    for (const end of passing) end.unpipe().pause();
  };
  const close = () => {
    for (const end of passing) end.destroy();
    server.close();
  };
  return { url: `http://127.0.0.1:${port}`, stall, close };
}

// Seen red: nothing more was heard.
test("what the example hears goes on where a socket is lost without a word", async () => {
  const through = await startThrough();
  const client = new Client({ url: through.url, token: tokenFor, webSocketImpl: WebSocket });
  const heard = client.hear(WATCHED, {});
  const state = { done: false, value: { connectionStatusChanged: { state: "CONNECTED" } } };
  expect(await heard.next()).toEqual(state);
  through.stall();
  expect(await heard.next()).toEqual(state);
  client.close();
  through.close();
}, 40_000);

// Seen red: the first that could not be told ended it for good, and a refusal was no Error: the example said "undefined".
test("what the example hears goes on after what could not be told, and why it cannot begin is an error", async () => {
  const client = new Client({ url: service.url, token: tokenFor, webSocketImpl: WebSocket });
  const heard = client.hear(parse("subscription { meetingMatched { title } }") as Watched, {});
  const missed = heard.next();
  // On the same socket, so that the service listens for the other by then.
  const state = client.hear(WATCHED, {});
  await state.next();
  await state.return(null);
  await database.query(END_LISTENERS);
  expect(await missed).toEqual({ done: false, value: null });
  await recordMeeting(service, [simulator.company.stories.singleDeal.email], { title: "After it" });
  expect(await heard.next()).toEqual({ done: false, value: { meetingMatched: { title: "After it" } } });

  const refused = client.hear(parse("subscription { nothing }") as Watched, {}).next();
  await expect(refused).rejects.toThrow(/^GRAPHQL_VALIDATION_FAILED: /);
  client.close();
});

// Seen red: nothing was heard, and a token was asked for with each try.
test("what the example hears begins where a token is slow to come, and after one that could not be had", async () => {
  let asked = 0;
  const token = async () => {
    asked += 1;
    await sleep(3_500);
    if (asked === 1) throw new Error("the sign-in is away");
    return tokenFor();
  };
  const client = new Client({ url: service.url, token, webSocketImpl: WebSocket });
  const state = { done: false, value: { connectionStatusChanged: { state: "CONNECTED" } } };
  expect(await client.hear(WATCHED, {}).next()).toEqual(state);
  expect(asked).toBe(2);
  client.close();
}, 40_000);

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
