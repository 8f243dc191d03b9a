import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { z } from "zod";
import { CrmApi } from "../../src/crm/api";
import { CrmError } from "../../src/crm/errors";
import { type CrmAnswer, CrmHttp } from "../../src/crm/http";
import { readCursorPage, readOffsetPage, readSingle, readWholeList } from "../../src/crm/parsing/page";
import * as record from "../../src/crm/parsing/records";
import { jsonRows } from "../../src/database/upsert";
import { Secret } from "../../src/platform/keyring";

const answerOf = (text: string): CrmAnswer => ({
  status: 200,
  contentType: "application/json",
  body: Buffer.from(text),
  date: null,
  ...{ correlationId: "one", headerNames: [] },
  limit: { remaining: null, reset: null },
  day: { limit: null, remaining: null },
});
const page = (data: unknown, additional_data: unknown = { next_cursor: null }) =>
  answerOf(JSON.stringify({ success: true, data, additional_data }));

/** One record as the CRM sends it, through its list: what is kept, or why not. */
async function read<T>(schema: z.ZodType<T>, raw: object): Promise<T | string> {
  const { records, rejected } = await readCursorPage(page([raw]), schema);
  return records[0] ?? rejected[0]?.reason ?? "lost";
}

const user = { id: 1, name: "Ann", email: "ann@acme.test", active_flag: true };
const deal = { id: 7, title: "Renewal", status: "open" };
const person = { id: 8, name: "Bo" };
const activity = { id: 9, subject: "Call", type: "call", done: false };
const note = { id: 10, content: "<p>Hello</p>", add_time: "2026-01-02 03:04:05" };
const dealWith = (fields: object) => read(record.dealRecord, { ...deal, ...fields });
const personWith = (fields: object) => read(record.personRecord, { ...person, ...fields });
const activityWith = (fields: object) => read(record.activityRecord, { ...activity, ...fields });

describe("Time stamps", () => {
  test.each([
    ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z", "as v2 sends them"],
    ["2026-01-02 03:04:05", "2026-01-02T03:04:05Z", "as v1 sends them, UTC without saying so"],
    ["2026-01-02T03:04:05.678Z", "2026-01-02T03:04:05Z", "with a fraction of a second"],
    ["2026-01-02T03:04:05+00:00", "2026-01-02T03:04:05Z", "with UTC written as an offset"],
    ["2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z", "on a leap day"],
    ["", null, "empty, as v1 leaves them"],
    [null, null, "null"],
    [undefined, null, "left out"],
  ])("%j are read as %j: %s", async (sent, kept, _why) => {
    expect(await dealWith({ update_time: sent })).toMatchObject({ updateTime: kept });
  });

  test.each([
    ["2026-02-30T00:00:00Z", "a February 30th"],
    ["2025-02-29 00:00:00", "a leap day in another year"],
    ["2026-01-02T24:00:00Z", "hour 24"],
    ["0000-00-00 00:00:00", "a database's zero date"],
    ["2026-01-02T03:04:05+02:00", "another zone than UTC"],
    ["yesterday", "words"],
  ])("%j rejects the record: %s", async (sent, _why) => {
    expect(await dealWith({ update_time: sent })).toBe("update_time: is not a time stamp of the CRM");
  });

  test("A note must have the time when it was written", async () => {
    expect(await read(record.noteRecord, note)).toMatchObject({ addTime: "2026-01-02T03:04:05Z" });
    expect(await read(record.noteRecord, { ...note, add_time: "" })).toBe("add_time: is missing");
  });
});

describe("Days and times of day", () => {
  test.each([
    ["2026-12-31", "2026-12-31"],
    ["", null],
    [null, null],
  ])("A close date %j is read as %j", async (sent, kept) => {
    expect(await dealWith({ expected_close_date: sent })).toMatchObject({ expectedCloseDate: kept });
  });

  test.each(["2026-02-30", "2026-13-01", "31.12.2026", "2026-12-31T00:00:00Z"])(
    "A close date %j is refused",
    async (sent) => {
      expect(await dealWith({ expected_close_date: sent })).toBe("expected_close_date: is not a calendar day");
    },
  );

  test.each([
    ["15:30:00", "15:30:00"],
    ["15:30", "15:30:00"],
    ["9:05", "09:05:00"],
    ["9:05:07", "09:05:07"],
    ["00:00", "00:00:00"],
    ["", null],
    [null, null],
  ])("An activity that is due at %j is due at %j", async (sent, kept) => {
    expect(await activityWith({ due_date: "2026-01-02", due_time: sent })).toMatchObject({ dueTime: kept });
  });

  test.each(["24:00", "12:60", "12:00:60", "noon"])("A due time %j is refused", async (sent) => {
    expect(await activityWith({ due_time: sent })).toBe("due_time: is not a time of day");
  });
});

describe("Flags", () => {
  test.each([
    [true, true],
    [1, true],
    [false, false],
    [0, false],
  ])("active_flag %j of a user is read as %j", async (sent, active) => {
    expect(await read(record.userRecord, { ...user, active_flag: sent })).toMatchObject({ active });
  });

  test("A user that is deleted is not active, whatever the other flag says", async () => {
    expect(await read(record.userRecord, { ...user, active_flag: 1, is_deleted: 1 })).toMatchObject({ active: false });
  });

  test("A flag that is neither a boolean nor 0 or 1 is not guessed", async () => {
    expect(await read(record.userRecord, { ...user, active_flag: 2 })).toContain("active_flag");
  });

  test.each([
    [{ is_deleted: true }, true],
    [{ status: "deleted" }, true],
    [{ is_archived: true }, true],
    [{ is_deleted: false, is_archived: 0 }, false],
    [{}, false],
  ])("A deal with %j counts as gone: %j", async (sent, deleted) => {
    expect(await dealWith(sent)).toMatchObject({ deleted });
  });

  test("A note that is not active is gone", async () => {
    expect(await read(record.noteRecord, { ...note, active_flag: false })).toMatchObject({ deleted: true });
  });
});

describe("Ids", () => {
  test("The largest id that JavaScript holds exactly is read", async () => {
    expect(await dealWith({ id: Number.MAX_SAFE_INTEGER })).toMatchObject({ id: 9_007_199_254_740_991 });
  });

  test.each(["9007199254740993", "0", "-1", "1.5", '"7"', "null"])(
    "An id %s is refused rather than bent",
    async (id) => {
      const { records, rejected } = await readCursorPage(
        answerOf(
          `{"success":true,"data":[{"id":${id},"title":"x","status":"open"}],"additional_data":{"next_cursor":null}}`,
        ),
        record.dealRecord,
      );
      expect(records).toEqual([]);
      expect(rejected[0]?.reason).toMatch(/^id: /);
    },
  );

  test.each([
    [{ person_id: { value: 5, name: "Bo" } }, { personId: 5, active: true }],
    [{ person_id: 5 }, { personId: 5, active: true }],
    [
      { person_id: { value: 5 }, active_flag: false },
      { personId: 5, active: false },
    ],
  ])("A participant %j is its person, never the id of the link", async (sent, kept) => {
    expect(await read(record.participantRecord, { id: 1092, ...sent })).toEqual(kept);
  });
});

describe("Money", () => {
  test.each([
    ["1234.56", "1234.56"],
    ["0.1", "0.1"],
    ["200", "200"],
    ["-0.5", "-0.5"],
    ["1e21", "1e+21"],
    ["1e-7", "1e-7"],
    ["123456789012345.6", "123456789012345.6"],
    ["null", null],
  ])("A value of %s is kept as %j", async (sent, kept) => {
    const { records } = await readCursorPage(
      answerOf(
        `{"success":true,"data":[{"id":7,"title":"x","status":"open","value":${sent}}],"additional_data":{"next_cursor":null}}`,
      ),
      record.dealRecord,
    );
    expect(records[0]?.value).toBe(kept);
  });

  test("A value beyond all numbers is refused", async () => {
    const text =
      '{"success":true,"data":[{"id":7,"title":"x","status":"open","value":1e999}],"additional_data":{"next_cursor":null}}';
    expect((await readCursorPage(answerOf(text), record.dealRecord)).rejected).toMatchObject([{ key: "7" }]);
  });
});

describe("Text and custom fields", () => {
  test("Names that are null or missing are empty, and optional text is null", async () => {
    expect(await dealWith({ title: null, lost_reason: "" })).toMatchObject({
      title: "",
      lostReason: null,
      currency: null,
    });
  });

  test.each([
    [null, []],
    [undefined, []],
    [[{ value: "", primary: true }], []],
    [[{ value: " \t", primary: true, label: "work" }], []],
    [[{ value: null, primary: true }], []],
    [[{ value: " a@b.test " }], [{ value: "a@b.test", label: null, primary: false }]],
    [[{ value: "a@b.test", primary: 1, label: "" }], [{ value: "a@b.test", label: null, primary: true }]],
  ])("E-mail addresses %j are read as %j", async (emails, kept) => {
    expect(await personWith({ emails })).toMatchObject({ emails: kept });
  });

  test.each([null, undefined, {}])("Custom fields that are %j are none", async (custom_fields) => {
    expect(await dealWith({ custom_fields })).toHaveProperty("customFields", {});
  });

  test("Custom fields that are set are kept as they came", async () => {
    const set = { b: [1, 2], c: { value: 9.5, until: null }, d: "", e: 0, f: false };
    expect(await dealWith({ custom_fields: { a: null, ...set, z: null } })).toHaveProperty("customFields", set);
  });

  test("Custom fields that are nested deeper than any documented value reject the record", async () => {
    const nested = (depth: number): unknown => (depth === 0 ? 1 : { a: nested(depth - 1) });
    expect(await dealWith({ custom_fields: nested(8) })).toMatchObject({ id: 7 });
    expect(await dealWith({ custom_fields: nested(9) })).toBe("custom_fields: is nested too deeply");
  });

  test.each([
    ["a NUL", "a\u0000b", "a\ufffdb"],
    ["half a surrogate pair", "a\ud83db", "a\ufffdb"],
    ["the other half", "\ude00", "\ufffd"],
    ["a NUL after a backslash", "\\\u0000", "\\\ufffd"],
    ["a whole pair", "\u{1f600}", "\u{1f600}"],
    ["the text of an escape", "\\u0000 \\ud83d", "\\u0000 \\ud83d"],
  ])("On the way into the database %s does not cost the page", async (_what, sent, stored) => {
    const { records } = await readCursorPage(
      page([{ ...deal, title: sent, custom_fields: { [sent]: sent } }]),
      record.dealRecord,
    );
    expect(JSON.parse(jsonRows(records))).toMatchObject([{ title: stored, customFields: { [stored]: stored } }]);
  });
});

describe("Records that cannot be read", () => {
  test("One is kept aside with its key, its reason and what was sent, and the others are read", async () => {
    const odd = { ...deal, id: 12, status: "paused" };
    const { records, rejected } = await readCursorPage(page([deal, odd, { ...deal, id: 13 }]), record.dealRecord);
    expect(records.map(({ id }) => id)).toEqual([7, 13]);
    expect(rejected).toEqual([{ key: "12", reason: expect.stringMatching(/^status: /), payload: odd }]);
  });

  test("Without an id the key is a hash of what was sent: the same fault has the same key", async () => {
    const rejected = async (...raw: unknown[]) => (await readCursorPage(page(raw), record.dealRecord)).rejected;
    const [first, again, other] = await rejected({ title: "x" }, { title: "x" }, { title: "y" });
    expect(first?.key).toMatch(/^[0-9a-f]{32}$/);
    expect([again?.key === first?.key, other?.key === first?.key]).toEqual([true, false]);
    expect(await rejected(null, 5, "text", [])).toHaveLength(4);
  });

  test("One that is nested beyond all sense is kept aside without its depths, with an id or without", async () => {
    const deep = `${"[".repeat(6_000)}${"]".repeat(6_000)}`;
    const text = `{"success":true,"data":[{"id":7,"status":"open","custom_fields":{"a":${deep}}},{"a":${deep}}],"additional_data":{"next_cursor":null}}`;
    const { rejected } = await readCursorPage(answerOf(text), record.dealRecord);
    expect(rejected.map(({ key }) => key)).toEqual(["7", expect.stringMatching(/^[0-9a-f]{32}$/)]);
    expect(jsonRows(rejected)).toContain("nested too deeply");
  });

  test.each([
    ["order_nr", record.pipelineRecord, { id: 1, name: "x", order_nr: 3_000_000_000 }],
    ["days_to_rotten", record.stageRecord, { id: 1, name: "x", days_to_rotten: 3_000_000_000 }],
    ["participants_count", record.dealRecord, { ...deal, participants_count: 3_000_000_000 }],
  ])("A %s beyond what its column holds is one rejected record, not a failed page", async (_field, schema, raw) => {
    expect((await readCursorPage<unknown>(page([raw]), schema)).rejected).toHaveLength(1);
  });

  test("A key of the CRM's making is not longer than the database wants it", async () => {
    const { rejected } = await readCursorPage(page([{ ...deal, id: "9".repeat(1_000) }]), record.dealRecord);
    expect(rejected[0]?.key.length).toBeLessThanOrEqual(64);
  });
});

describe("Pages", () => {
  const next = async (beside?: unknown) => (await readCursorPage(page([deal], beside), record.dealRecord)).next;
  const offsets = (answer: CrmAnswer) => readOffsetPage(answer, 2, record.noteRecord);
  const nextOffset = async (beside?: unknown) => (await offsets(page([note], beside))).next;

  test("A cursor list goes on while next_cursor is there", async () => {
    expect(await next({ next_cursor: "abc" })).toBe("abc");
    expect(await next({ next_cursor: null })).toBeNull();
  });

  test("An offset list goes on where the CRM says", async () => {
    expect(await nextOffset({ pagination: { more_items_in_collection: true, next_start: 500 } })).toBe("500");
    expect(await nextOffset({ pagination: { more_items_in_collection: false } })).toBeNull();
    expect(await nextOffset({ pagination: { start: 0, limit: 2, next_start: 500 } })).toBe("500");
    expect(await nextOffset(null)).toBeNull();
  });

  test("A list whose data is null is empty", async () => {
    const none = { records: [], rejected: [], next: null };
    expect(await offsets(page(null, null))).toEqual(none);
    expect(await readCursorPage(page(null, { next_cursor: null }), record.dealRecord)).toEqual(none);
  });

  test("Users are a whole list beside which the CRM tells its company", async () => {
    const { records, next } = await readWholeList(page([user], { company_id: 1 }), record.userRecord);
    expect([records.length, next]).toEqual([1, null]);
  });

  test.each([
    ["more is promised and no offset given", page([], { pagination: { more_items_in_collection: true } })],
    [
      "more is promised and the offset is null",
      page([], { pagination: { more_items_in_collection: true, next_start: null } }),
    ],
    ["the offset is no number", page([], { pagination: { more_items_in_collection: true, next_start: "500" } })],
    ["the body is null", answerOf("null")],
    ["the body is empty", answerOf("")],
    ["the body is not JSON", answerOf("<html></html>")],
    ["the body is cut off", answerOf('{"success":true,"data":[')],
    ["the CRM says that it failed", answerOf('{"success":false,"data":[]}')],
    ["success is only a text", answerOf('{"success":"true","data":[]}')],
    ["there is no data", answerOf('{"success":true}')],
    ["the data is not a list", page({ id: 1 })],
  ])("An answer cannot be read where %s", async (_what, answer) => {
    await expect(offsets(answer)).rejects.toThrow(expect.objectContaining({ code: "UNREADABLE" }));
  });

  test.each([
    [7],
    ["abc"],
    [null],
    [{}],
    [{ next_cursor: 5 }],
    [{ pagination: { next_cursor: "in the place that one tutorial names" } }],
  ])("A cursor list beside which %j stands cannot be read: its end would be a guess", async (beside) => {
    await expect(next(beside)).rejects.toThrow(expect.objectContaining({ code: "UNREADABLE" }));
  });

  test("A single record that cannot be read fails its answer, with what support needs to find it", async () => {
    await expect(readSingle(page(null), record.currentUserRecord)).rejects.toThrow(
      expect.objectContaining({ code: "UNREADABLE", detail: { status: 200, correlationId: "one" } }),
    );
  });
});

describe("The status of an answer decides before its body", () => {
  let server: Server;
  const http = new CrmHttp();
  const said = { status: 200, type: "application/json", body: "" };
  const tokens = { current: async () => new Secret("a"), renewed: async () => new Secret("b") };

  beforeAll(async () => {
    server = createServer((_request, response) => {
      response.writeHead(said.status, { "content-type": said.type }).end(said.body);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  });
  afterAll(async () => {
    await http.close();
    await new Promise((resolve) => server.close(resolve));
  });

  async function asked(status: number, type: string, body: string): Promise<unknown> {
    Object.assign(said, { status, type, body });
    const { port } = server.address() as AddressInfo;
    const api = new CrmApi({ http, baseUrl: `http://127.0.0.1:${port}`, tokens });
    return api.deals({ cursor: null }).then(
      ({ records }) => records.length,
      (error: unknown) => (error instanceof CrmError ? error.code : error),
    );
  }

  const success = JSON.stringify({ success: true, data: [deal], additional_data: { next_cursor: null } });
  const html = "text/html; charset=UTF-8";
  test.each([
    [200, "application/json", success, 1],
    [410, "application/json", success, "NOT_FOUND"],
    [404, "application/json", success, "NOT_FOUND"],
    [401, "application/json", success, "REFUSED"],
    [402, "application/json", "", "ACCOUNT_CLOSED"],
    [403, "application/json", '{"success":false,"error":"Scope and URL mismatch"}', "REFUSED"],
    [403, html, "<html>Attention Required!</html>", "UNAVAILABLE"],
    [403, "text/plain", "error code: 1015", "UNAVAILABLE"],
    [404, html, "<html>not here</html>", "UNAVAILABLE"],
    [403, "Text/HTML", "<html>Attention Required!</html>", "UNAVAILABLE"],
    [409, "application/json", '{"success":false,"error":"Request in progress"}', "UNAVAILABLE"],
    [302, "application/json", "", "UNREADABLE"],
    [429, html, "<html>slow down</html>", "RATE_LIMITED"],
    [408, "application/json", "", "UNAVAILABLE"],
    [503, html, "<html>maintenance</html>", "UNAVAILABLE"],
    [200, html, "<html>a captive portal</html>", "UNREADABLE"],
    [200, "application/json", "null", "UNREADABLE"],
  ])("%i with %s and the body %s means %s", async (status, type, body, meaning) => {
    expect(await asked(status, type, body)).toBe(meaning);
  });
});
