import type { Fault, Simulator } from "../../simulator";
import {
  type Client,
  type CursorPage,
  connect,
  idsOf,
  type OffsetPage,
  type Reply,
  START,
  start,
  stopAll,
  type WireRecord,
} from "./client";

let simulator: Simulator;
let client: Client;

beforeEach(async () => {
  simulator = await start({ deals: 60 });
  client = await connect(simulator);
});
afterEach(stopAll);

const DEALS = "/api/v2/deals?sort_by=id&sort_direction=asc&limit=20";
const NOTES = "/api/v1/notes?sort=id%20ASC&limit=10";
const fail = (match: string | RegExp, fault: Fault) => simulator.control.fail({ match, with: fault });

/** The first pages of a walk that would never end by itself. */
async function byCursor(path: string, most: number): Promise<{ ids: number[][]; cursors: (string | null)[] }> {
  const ids: number[][] = [];
  const cursors: (string | null)[] = [];
  for (let cursor: string | null = ""; cursor !== null && ids.length < most; cursors.push(cursor)) {
    const { body }: Reply<CursorPage> = await client.get(cursor === "" ? path : `${path}&cursor=${cursor}`);
    ids.push(idsOf(body.data));
    cursor = body.additional_data.next_cursor;
  }
  return { ids, cursors };
}

async function byOffset(path: string, most: number): Promise<{ ids: number[][]; starts: (number | undefined)[] }> {
  const ids: number[][] = [];
  const starts: (number | undefined)[] = [];
  for (let from: number | undefined = 0; from !== undefined && ids.length < most; starts.push(from)) {
    const { body }: Reply<OffsetPage> = await client.get(`${path}&start=${from}`);
    ids.push(idsOf(body.data ?? []));
    from = (body.additional_data.pagination as { next_start?: number }).next_start;
  }
  return { ids, starts };
}

test("an endless list shows its first page again, each time with a new cursor", async () => {
  const honest = await byCursor(DEALS, 9);
  fail("/api/v2/deals", { kind: "again" });
  const { ids, cursors } = await byCursor(DEALS, 9);
  expect(ids).toEqual(Array(9).fill(honest.ids[0]));
  expect(new Set(cursors).size).toBe(9);
});

test("an endless list without records has ever new cursors", async () => {
  fail("/api/v2/persons", { kind: "empty" });
  const { ids, cursors } = await byCursor("/api/v2/persons?limit=500", 5);
  expect(ids).toEqual(Array(5).fill([]));
  expect(new Set(cursors).size).toBe(5);
});

test("cursors go in a circle through the whole list", async () => {
  const honest = await byCursor(DEALS, 99);
  const round = honest.ids.length;
  fail("/api/v2/deals", { kind: "circle" });
  const { ids, cursors } = await byCursor(DEALS, 2 * round);
  expect(round).toBeGreaterThan(1);
  expect(ids).toEqual([...honest.ids, ...honest.ids]);
  expect(cursors.slice(0, round)).toEqual(cursors.slice(round));
});

test("next_start of notes grows for ever, with records or without, or goes back to the beginning", async () => {
  const honest = await byOffset(NOTES, 99);
  const grows = fail("/api/v1/notes", { kind: "again" });
  expect(await byOffset(NOTES, 4)).toEqual({ ids: Array(4).fill(honest.ids[0]), starts: [10, 20, 30, 40] });
  grows();
  const isEmpty = fail("/api/v1/notes", { kind: "empty" });
  expect(await byOffset(NOTES, 3)).toEqual({ ids: [[], [], []], starts: [10, 20, 30] });
  isEmpty();
  fail("/api/v1/notes", { kind: "circle" });
  const circle = await byOffset(NOTES, honest.ids.length + 1);
  expect(circle.ids).toEqual([...honest.ids, honest.ids[0]]);
  expect(circle.starts.at(-2)).toBe(0);
});

test.each(["again", "empty", "circle"] as const)("a deal's participants always say more: %s", async (kind) => {
  const { dealId } = simulator.company.stories.singleDeal;
  fail(/participants$/, { kind });
  const { starts } = await byOffset(`/api/v1/deals/${dealId}/participants?limit=500`, 5);
  expect(starts).toEqual(kind === "circle" ? [0, 0, 0, 0, 0] : [500, 1_000, 1_500, 2_000, 2_500]);
});

test("lists of one page and single records have no pages to lead astray", async () => {
  const path = `/api/v2/deals/${simulator.company.stories.singleDeal.dealId}`;
  const before = [await client.get(path), await client.get("/api/v1/users")].map(({ body }) => body);
  for (const kind of ["again", "empty", "circle"] as const) {
    const off = fail("/api/", { kind });
    expect([await client.get(path), await client.get("/api/v1/users")].map(({ body }) => body)).toEqual(before);
    off();
  }
});

test.each(["/api/v2/deals?limit=10", "/api/v2/persons?limit=10", "/api/v2/organizations?limit=10"])(
  "%s shows a part of its records for one walk, while single reads show them all",
  async (path) => {
    const all = idsOf(await client.walk(path));
    const off = fail(path.slice(0, path.indexOf("?")), { kind: "part", share: 0.4 });
    const part = idsOf(await client.walk(path));
    expect(part.length).toBeGreaterThan(0);
    expect(part.length).toBeLessThan(all.length * 0.7);
    expect(all.filter((id) => part.includes(id))).toEqual(part);
    expect(idsOf(await client.walk(path))).toEqual(part);
    const missing = all.find((id) => !part.includes(id));
    expect((await client.get(`${path.slice(0, path.indexOf("?"))}/${missing}`)).status).toBe(200);
    off();
    expect(idsOf(await client.walk(path))).toEqual(all);
  },
);

test("notes and users show a part too", async () => {
  const all = [await client.list("/api/v1/notes?limit=500"), await client.list("/api/v1/users")];
  fail("/api/v1/", { kind: "part", share: 0.5 });
  const part = [await client.list("/api/v1/notes?limit=500"), await client.list("/api/v1/users")];
  for (const [index, records] of part.entries()) expect(records.length).toBeLessThan(all[index]?.length ?? 0);
});

test("a rule can ask for the later pages only, and for what is asked by ids", async () => {
  simulator.control.fail({
    match: "/api/v2/deals",
    where: ({ cursor }) => cursor !== undefined,
    with: { status: 500 },
  });
  const { body } = await client.get<CursorPage>(DEALS);
  expect((await client.get(`${DEALS}&cursor=${body.additional_data.next_cursor}`)).status).toBe(500);
  simulator.control.clearFaults();
  simulator.control.fail({ match: "/api/v2/", where: ({ ids }) => ids !== undefined, with: { kind: "forbidden" } });
  expect((await client.get(DEALS)).status).toBe(200);
  expect((await client.get("/api/v2/deals?ids=1,2")).status).toBe(403);
});

test("the Date header is of another year, jumps from answer to answer, or is missing; the answer is the true one", async () => {
  const years = [1970, 2100, 2026];
  const path = "/api/v2/stages";
  const { body } = await client.get(path);
  const jumping = fail("/", {
    kind: "headers",
    headers: () => ({ date: new Date(`${years.shift()}-05-05`).toUTCString() }),
  });
  const dates: (string | null)[] = [];
  for (let call = 0; call < 3; call++) {
    const reply = await client.get(path);
    expect(reply).toMatchObject({ status: 200, body });
    dates.push(reply.headers.get("date"));
  }
  expect(dates.map((date) => new Date(date ?? "").getUTCFullYear())).toEqual([1970, 2100, 2026]);
  jumping();
  const without = fail("/", { kind: "headers", headers: { date: null, "x-ratelimit-remaining": null } });
  const { headers } = await client.get(path);
  expect([headers.has("date"), headers.has("x-ratelimit-remaining"), headers.has("x-ratelimit-limit")]).toEqual([
    false,
    false,
    true,
  ]);
  without();
  expect((await client.get(path)).headers.get("date")).toBe(START.toUTCString());
});

test("users/me answers 403 in JSON, and nothing else does", async () => {
  fail("/api/v1/users/me", { kind: "forbidden" });
  const reply = await client.get("/api/v1/users/me");
  expect(reply).toMatchObject({
    status: 403,
    body: { success: false, error: "You do not have permissions to do this." },
  });
  expect(reply.headers.get("content-type")).toContain("application/json");
  expect((await client.get("/api/v1/users")).status).toBe(200);
});

test.each(["deals", "persons", "organizations", "activities"] as const)(
  "ids= of %s leaves out what is deleted, hidden or unknown, and refuses more than a hundred",
  async (entity) => {
    const path = `/api/v2/${entity}`;
    const name = { deals: "deal", persons: "person", organizations: "organization", activities: "activity" } as const;
    const [removed = 0, hidden = 0, kept = 0, other = 0] = idsOf(await client.walk(path)).slice(-4);
    simulator.control.remove(name[entity], removed);
    simulator.control.hide(name[entity], hidden);
    const asked = [other, removed, hidden, kept, 99_999_999].join(",");
    const page = await client.get<CursorPage>(`${path}?ids=${asked}&sort_by=id&sort_direction=asc&limit=500`);
    expect(idsOf(page.body.data)).toEqual([kept, other]);
    expect(page.body.additional_data.next_cursor).toBeNull();
    const hundred = Array.from({ length: 100 }, (_, index) => index + 1).join(",");
    expect((await client.get(`${path}?ids=${hundred}`)).status).toBe(200);
    expect(await client.get(`${path}?ids=${hundred},101`)).toMatchObject({
      status: 400,
      body: { code: "ERR_SCHEMA_VALIDATION_FAILED" },
    });
  },
);

test("ids= of deals leaves out archived ones, which their own list shows", async () => {
  const { dealId } = simulator.company.stories.singleDeal;
  simulator.control.archive(dealId);
  expect(await client.list<WireRecord>(`/api/v2/deals?ids=${dealId}`)).toEqual([]);
  expect(idsOf(await client.list(`/api/v2/deals/archived?ids=${dealId}`))).toEqual([dealId]);
});
