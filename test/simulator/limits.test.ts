import { connect, start, stopAll, TestClock } from "./client";

afterEach(stopAll);

const over = { status: 429, body: { success: false, error: "Request over limit" } };

test("the burst limit refuses within two seconds and lets through after them", async () => {
  const clock = new TestClock();
  const simulator = await start({ now: clock.now, burstLimit: 3 });
  const client = await connect(simulator);
  const other = await connect(simulator);
  const left: (string | null)[] = [];
  for (let call = 0; call < 3; call++)
    left.push((await client.get("/api/v1/users/me")).headers.get("x-ratelimit-remaining"));
  expect(left).toEqual(["2", "1", "0"]);
  const refused = await client.get("/api/v1/users/me");
  expect(refused).toMatchObject(over);
  expect(refused.headers.get("x-ratelimit-remaining")).toBe("0");
  expect(refused.headers.get("x-ratelimit-reset")).toBe("2");
  expect((await other.get("/api/v1/users/me")).status).toBe(200);
  clock.advance(2);
  expect((await client.get("/api/v1/users/me")).status).toBe(200);
});

test("the daily budget shows the balance before each call, and once spent refuses everything until the next day", async () => {
  const clock = new TestClock();
  const simulator = await start({ now: clock.now, dailyTokens: 55 });
  const client = await connect(simulator);
  const balance = async (path: string) => (await client.get(path)).headers.get("x-daily-ratelimit-token-remaining");
  expect(await balance("/api/v2/deals?limit=1")).toBe("55");
  expect(await balance("/api/v2/deals/1")).toBe("45");
  expect(await balance("/api/v2/stages")).toBe("44");
  expect(await balance("/api/v1/users")).toBe("39");
  expect(await balance("/api/v1/deals/1/participants")).toBe("19");
  const refused = await client.get("/api/v1/notes");
  expect(refused).toMatchObject(over);
  expect(Number(refused.headers.get("x-ratelimit-remaining"))).toBeGreaterThan(0);
  expect(await client.get("/api/v2/deals/1")).toMatchObject(over);
  clock.advance(14 * 3_600);
  expect((await (await connect(simulator)).get("/api/v1/notes")).status).toBe(200);
});
