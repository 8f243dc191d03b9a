import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { CrmError } from "../../src/crm/errors";
import { CrmHttp, SocketTurns } from "../../src/crm/http";
import { inWork, workFor } from "../../src/platform/work";
import { until } from "../support/stories";

// Seen red: one queue for all. Notes of four tenants whose CRM took 20 s an answer held every socket of a process, and another
// tenant's note took 19.7 s in place of 0.07 s.
test("tenants whose CRM answers late leave sockets to others, who are served at once", () => {
  const turns = new SocketTurns();
  const begun: (number | null)[] = [];
  const take = (tenantId: number | null) => turns.take(tenantId, () => begun.push(tenantId));
  for (let tenant = 1; tenant <= 15; tenant += 1) for (let call = 0; call < 70; call += 1) take(tenant);
  expect(begun.length).toBeLessThan(128);
  expect(begun.filter((tenant) => tenant === 1)).toHaveLength(64);
  expect(new Set(begun).size).toBe(15);
  const before = begun.length;
  take(100);
  expect(begun.slice(before)).toEqual([100]);
});

// Planted and seen red: it had a tenant's share.
test("what is no tenant's has whatever is free", () => {
  const turns = new SocketTurns();
  let begun = 0;
  for (let call = 0; call < 130; call += 1) turns.take(null, () => (begun += 1));
  expect(begun).toBe(128);
});

test("a socket that is given back goes to who may have it and has waited longest; who gave up waiting gets none", () => {
  const turns = new SocketTurns();
  const begun: string[] = [];
  const take = (tenantId: number, name: string) => turns.take(tenantId, () => begun.push(name));
  const held = Array.from({ length: 64 }, (_, call) => take(1, `held ${call}`));
  const [leave] = [take(1, "left"), take(1, "next"), take(1, "last")];
  expect(begun).toHaveLength(64);
  leave();
  held[0]?.();
  expect(begun.slice(64)).toEqual(["next"]);
  for (const giveBack of held.slice(1)) giveBack();
  expect(begun.slice(64)).toEqual(["next", "last"]);
  for (let call = 0; call < 62; call += 1) take(1, "more");
  expect(begun).toHaveLength(128);
});

async function serve(answers: boolean): Promise<{ server: Server; url: string; asked: () => number }> {
  let asked = 0;
  const server = createServer((_request, response) => {
    asked += 1;
    if (answers) response.end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, asked: () => asked };
}

// Seen red: a renewal waited behind its tenant's calls, and its lock held up other tenants' renewals.
test("a token is had while all of a tenant's calls wait for an API that does not answer", async () => {
  const [silent, tokens] = [await serve(false), await serve(true)];
  const http = new CrmHttp();
  const ending = new AbortController();
  await inWork({}, async () => {
    workFor(1);
    const ask = (url: string) => http.send({ method: "GET", url, headers: {}, stop: ending.signal });
    const told: unknown[] = [];
    const tell = (error: CrmError) => told.push(error.detail.neverSent);
    const waiting = Array.from({ length: 70 }, () => ask(silent.url).catch(tell));
    expect((await ask(tokens.url)).status).toBe(200);
    await until("all that have sockets were sent", async () => silent.asked() === 64);
    ending.abort();
    await Promise.all(waiting);
    // Seen red: those that still waited were told like the others, of which the CRM may have done what they ask for.
    expect(told.filter((neverSent) => neverSent)).toHaveLength(6);
    expect(told.filter((neverSent) => !neverSent)).toHaveLength(64);
  });
  for (const { server } of [silent, tokens]) server.closeAllConnections();
  await http.close();
  for (const { server } of [silent, tokens]) await new Promise((resolve) => server.close(resolve));
});

test("nothing was sent to where no connection comes about; what was read and not answered may be done", async () => {
  const [gone, silent] = [await serve(false), await serve(false)];
  await new Promise((resolve) => gone.server.close(resolve));
  silent.server.on("request", (request) => request.socket.destroy());
  const http = new CrmHttp();
  // Seen red: of what was read and not answered it was said that the CRM could not be reached.
  for (const [url, neverSent, says] of [
    [gone.url, true, /^No connection to the CRM came about or free: /],
    [silent.url, false, /^The CRM's answer did not come: /],
  ] as const) {
    const sent = http.send({ method: "POST", url, headers: {}, body: "{}" });
    const message: unknown = expect.stringMatching(says);
    await expect(sent).rejects.toMatchObject({ code: "UNAVAILABLE", message, detail: { neverSent } });
  }
  await http.close();
  await new Promise((resolve) => silent.server.close(resolve));
});
