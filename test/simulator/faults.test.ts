import type { Fault } from "../../simulator";
import { refresh, request, useClient } from "./client";

const path = "/api/v2/stages";

const { simulator, client } = useClient({ deals: 10 });
beforeEach(() => simulator.log.clear());

const fail = (fault: Fault) => simulator.control.fail({ match: path, with: fault });
const lastStatus = () => simulator.log.all().at(-1)?.status;

test("a plain fault answers with the status, body, headers and type it names", async () => {
  fail({ status: 503, body: "down", headers: { "retry-after": "9" }, contentType: "text/plain" });
  const reply = await client.get(path);
  expect(reply).toMatchObject({ status: 503, body: "down" });
  expect(reply.headers.get("retry-after")).toBe("9");
  expect(lastStatus()).toBe(503);
});

test("reset ends the connection without an answer", async () => {
  fail({ kind: "reset" });
  await expect(client.get(path)).rejects.toThrow("fetch failed");
  expect(lastStatus()).toBe(0);
});

test("cut sends headers and half of the true body", async () => {
  const whole = JSON.stringify((await client.get(path)).body);
  fail({ kind: "cut" });
  const response = await fetch(simulator.url + path, { headers: { authorization: `Bearer ${client.accessToken}` } });
  expect(response.status).toBe(200);
  const length = Number(response.headers.get("content-length"));
  expect(length).toBe(Buffer.byteLength(whole));
  await expect(response.text()).rejects.toThrow("terminated");
  expect(lastStatus()).toBe(0);
});

test("garbage, html and null are answers that no parser likes", async () => {
  const off = fail({ kind: "garbage" });
  await expect(client.get(path)).rejects.toThrow(SyntaxError);
  off();
  const page = fail({ kind: "html" });
  const blocked = await client.get(path);
  expect(blocked.status).toBe(403);
  expect(blocked.headers.get("content-type")).toContain("text/html");
  page();
  fail({ kind: "null" });
  expect(await client.get(path)).toMatchObject({ status: 200, body: null });
});

test("throttle answers like the burst limit", async () => {
  fail({ kind: "throttle" });
  const reply = await client.get(path);
  expect(reply).toMatchObject({ status: 429, body: { error: "Request over limit" } });
  expect(reply.headers.get("x-ratelimit-remaining")).toBe("0");
});

test("delay gives the true answer later", async () => {
  fail({ kind: "delay", ms: 60 });
  const reply = await client.get(path);
  expect(reply.status).toBe(200);
  expect(simulator.log.all().at(-1)?.durationMs).toBeGreaterThan(50);
});

test("hang answers nothing until its rule is gone", async () => {
  fail({ kind: "hang" });
  const reply = client.get(path);
  let isAnswered = false;
  void reply.then(() => {
    isAnswered = true;
  });
  await client.get("/api/v2/pipelines");
  expect(isAnswered).toBe(false);
  simulator.control.clearFaults();
  expect((await reply).status).toBe(200);
});

test("stop ends promptly with a request hanging and connections open", async () => {
  fail({ kind: "hang" });
  const lost = expect(client.get(path)).rejects.toThrow("fetch failed");
  await client.get("/api/v2/pipelines");
  const started = performance.now();
  await simulator.stop();
  await lost;
  expect(performance.now() - started).toBeLessThan(1_000);
});

test("lostAfter rotates the refresh token and loses the answer", async () => {
  simulator.control.fail({ match: "/oauth/token", with: { kind: "lostAfter" }, times: 1 });
  await expect(refresh(simulator, client.refreshToken)).rejects.toThrow("fetch failed");
  expect(await refresh(simulator, client.refreshToken)).toMatchObject({
    status: 400,
    body: { error: "invalid_grant" },
  });
});

test("reset before a refresh leaves the token as it was", async () => {
  simulator.control.fail({ match: "/oauth/token", with: { kind: "reset" }, times: 1 });
  await expect(refresh(simulator, client.refreshToken)).rejects.toThrow("fetch failed");
  expect((await refresh(simulator, client.refreshToken)).status).toBe(200);
});

test("a rule hits its path and method, after so many, so many times", async () => {
  simulator.control.fail({ match: /participants$/, method: "GET", after: 1, times: 2, with: { status: 500 } });
  const { dealId } = simulator.company.stories.singleDeal;
  const statuses: number[] = [];
  for (let call = 0; call < 5; call++) statuses.push((await client.get(`/api/v1/deals/${dealId}/participants`)).status);
  expect(statuses).toEqual([200, 500, 500, 200, 200]);
  simulator.control.fail({ match: path, method: "POST", with: { status: 500 } });
  expect((await client.get(path)).status).toBe(200);
  expect((await request(simulator.url + path, { method: "POST" })).status).toBe(500);
});
