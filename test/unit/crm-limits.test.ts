import { inspect } from "node:util";
import type { z } from "zod";
import type { CrmAnswer } from "../../src/crm/http";
import { fieldRecord } from "../../src/crm/parsing/fields";
import { type Parsed, readCursorPage, readWholeList } from "../../src/crm/parsing/page";
import * as record from "../../src/crm/parsing/records";
import { MAX_CONTACT_VALUES, MAX_CUSTOM_FIELDS_BYTES, MAX_NOTE, MAX_TEXT } from "../../src/crm/parsing/values";
import { normalizeAddress } from "../../src/platform/email-address";
import { referenceIn } from "../../src/writeback/notes";

// Seen red with texts that are kept as they come.

const answerOf = (data: unknown, next_cursor: string | null = null): CrmAnswer => ({
  status: 200,
  contentType: "application/json",
  body: Buffer.from(JSON.stringify({ success: true, data, additional_data: { next_cursor } })),
  date: null,
  correlationId: "one",
  headerNames: [],
  limit: { remaining: null, reset: null },
  day: { limit: null, remaining: null },
});
const read = <T>(schema: z.ZodType<T>, ...raw: object[]): Promise<Parsed<T>> => readCursorPage(answerOf(raw), schema);
const LONG = "x".repeat(1_000_000);
const longest = (value: unknown): number => {
  if (typeof value === "string") return value.length;
  if (value === null || typeof value !== "object") return 0;
  return Math.max(0, ...Object.values(value).map(longest));
};

test.each<[string, z.ZodType<object>, object]>([
  ["a user", record.userRecord, { id: 1, name: LONG, email: LONG, active_flag: true }],
  ["a pipeline", record.pipelineRecord, { id: 1, name: LONG }],
  ["a stage", record.stageRecord, { id: 1, name: LONG }],
  ["an organization", record.organizationRecord, { id: 1, name: LONG, address: { value: LONG }, website: LONG }],
  [
    "a person",
    record.personRecord,
    { id: 1, name: LONG, emails: [{ value: LONG, label: LONG }], phones: [{ value: LONG }] },
  ],
  ["a deal", record.dealRecord, { id: 1, title: LONG, currency: LONG, status: "open", lost_reason: LONG }],
  ["an activity", record.activityRecord, { id: 1, subject: LONG, type: LONG }],
  [
    "a field",
    fieldRecord,
    { field_code: LONG, field_name: LONG, field_type: LONG, options: [{ id: LONG, label: LONG }] },
  ],
])("each text of %s is cut where it is only shown", async (_, schema, raw) => {
  const { records, rejected } = await read(schema, raw);
  expect(rejected).toEqual([]);
  expect(longest(records)).toBe(MAX_TEXT);
});

test("an address that is too long is shown and matches nobody, because an address that is cut is another one", async () => {
  const sent = `${"a".repeat(2_000)}@acme.example`;
  const [person] = (await read(record.personRecord, { id: 1, name: "Bo", emails: [{ value: sent }] })).records;
  expect(person?.emails.map(({ value }) => [value.length, normalizeAddress(value)])).toEqual([[MAX_TEXT, null]]);
});

// Seen red with a look behind from each character: a name without a blank, as long as an answer may be, took an hour and more.
test.each([LONG, `a@${LONG} /;`, "a@b.example; ".repeat(80_000), `a@b${" ".repeat(500_000)}/${LONG}`])(
  "a field of a megabyte is taken apart for addresses in no time",
  async (value) => {
    const began = performance.now();
    const [person] = (await read(record.personRecord, { id: 1, name: "Bo", emails: [{ value }] })).records;
    expect(performance.now() - began).toBeLessThan(5_000);
    expect(person?.emails).toHaveLength(1);
  },
);

test.each<[string, z.ZodType<object>, object, string]>([
  [
    "more addresses",
    record.personRecord,
    {
      name: "Bo",
      emails: Array.from({ length: MAX_CONTACT_VALUES + 1 }, (_, index) => ({ value: `a${index}@acme.example` })),
    },
    "emails",
  ],
  [
    "more participants",
    record.activityRecord,
    { subject: "Call", participants: Array.from({ length: 1_001 }, (_, index) => ({ person_id: index + 1 })) },
    "participants",
  ],
  [
    "larger custom fields",
    record.dealRecord,
    { title: "Renewal", status: "open", deal_id: 7, custom_fields: { a: "x".repeat(MAX_CUSTOM_FIELDS_BYTES) } },
    "custom_fields",
  ],
  ["other custom fields", record.dealRecord, { title: "A", status: "open", custom_fields: [1] }, "is no object"],
])("a record with %s than may be is kept aside, with its ids, and not cut", async (_, schema, raw, where) => {
  const { records, rejected } = await read(schema, { id: 9, deal_id: 7, ...raw });
  expect(records).toEqual([]);
  expect(rejected).toMatchObject([{ key: "9", reason: expect.stringContaining(where) }]);
  expect(JSON.stringify(rejected[0]?.payload).length).toBeLessThan(40_000);
  expect(rejected[0]?.payload).toMatchObject({ id: 9, deal_id: 7 });
});

test("what is kept of a record that could not be read is bounded, and so is the reason", async () => {
  const raw = { id: "nine", deal_id: 7, content: LONG, emails: Array.from({ length: 150 }, () => ({ value: 1 })) };
  const [rejected] = (await read(record.personRecord, raw)).rejected;
  expect(rejected?.payload).toMatchObject({ id: "nine", deal_id: 7 });
  expect(JSON.stringify(rejected).length).toBeLessThan(20_000);
  expect(rejected?.reason.length).toBeLessThanOrEqual(500);
  const many = await read(
    record.personRecord,
    Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`m${index}`, 1])),
  );
  expect(JSON.stringify(many.rejected).length).toBeLessThan(20_000);
});

test("a cursor that no row should hold is no cursor", async () => {
  await expect(readCursorPage(answerOf([], LONG), record.dealRecord)).rejects.toThrow(
    "its paging is not in the documented form",
  );
});

test("a note is kept up to a limit, says that it is cut, and its last line is still found in it", async () => {
  const sent = `<p>${"a".repeat(MAX_NOTE)}</p>\n<p>Ref. CRM-0123456789</p>`;
  const raw = { id: 1, add_time: "2026-01-02 03:04:05" };
  const [long, short] = (await read(record.noteRecord, { ...raw, content: sent }, { ...raw, content: "<p>Hello</p>" }))
    .records;
  expect(long?.content).toBe(`<p>${"a".repeat(MAX_NOTE - 3)}`);
  expect([long?.truncated, short?.truncated]).toEqual([true, false]);
  expect(referenceIn(`${long?.content}${long?.ending}`)).toBe("CRM-0123456789");
});

// Seen red with answers of any number of values: 8 MiB of `{}` held the process for 15 seconds.
test.each([
  ["values", Array.from({ length: 100_001 }, () => 1)],
  ["lists", Array.from({ length: 50_001 }, () => [])],
  ["records", Array.from({ length: 10_001 }, () => 1)],
  ["values in one record", [{ id: 1, custom_fields: { a: Array.from({ length: 100_001 }, () => 1) } }]],
  ["halves of characters", [{ id: 1, title: "\ud800".repeat(100_001) }]],
  ["NULs", [{ id: 1, title: "\0".repeat(100_001) }]],
])("an answer with more %s than may be is not read, and less is asked for", async (_what, data) => {
  await expect(readCursorPage(answerOf(data), record.dealRecord)).rejects.toMatchObject({
    code: "UNREADABLE",
    detail: { tooLarge: true },
  });
});

test("what stands in texts does not count: commas and brackets of a note, escapes of whole characters", async () => {
  const content = `${',[{\\"'.repeat(15_000)}\u00e9\u0430`;
  const raw = Array.from({ length: 3 }, (_, index) => ({ id: index + 1, content, add_time: "2026-01-02 03:04:05" }));
  expect((await read(record.noteRecord, ...raw)).records.map((note) => note.content)).toEqual([
    content,
    content,
    content,
  ]);
});

test("a company of several thousand users is one list, and is read", async () => {
  const users = Array.from({ length: 9_000 }, (_, id) => ({
    id: id + 1,
    name: "Bo",
    email: "b@acme.test",
    active_flag: true,
  }));
  expect((await readWholeList(answerOf(users), record.userRecord)).records).toHaveLength(9_000);
});

// Seen red with a page that is read at once: 2 turns.
test("a page is parsed in one turn of the event loop, and its records are read some in a turn", async () => {
  let turns = 0;
  let isRead = false;
  const turn = () => {
    turns += 1;
    if (!isRead) setImmediate(turn);
  };
  setImmediate(turn);
  await read(
    record.dealRecord,
    ...Array.from({ length: 500 }, (_, id) => ({ id: id + 1, title: "a", status: "open" })),
  );
  isRead = true;
  expect(turns).toBeGreaterThanOrEqual(11);
});

// Planted and seen red: it was no JSON.
test("an answer that begins with a byte order mark is read", async () => {
  const { body, ...answer } = answerOf([{ id: 1, title: "Renewal", status: "open" }]);
  const marked = { ...answer, body: Buffer.concat([Buffer.from("\ufeff"), body]) };
  expect((await readCursorPage(marked, record.dealRecord)).records).toMatchObject([{ title: "Renewal" }]);
});

// Seen red with: the parser's own error as the cause.
test("what is no JSON is told without a word of it", async () => {
  const reading = readWholeList(
    { ...answerOf([]), body: Buffer.from('[{"email":ada@buyer.example}]') },
    record.userRecord,
  );
  const thrown: unknown = await reading.catch((error: unknown) => error);
  expect(inspect(thrown)).toContain("The CRM's answer is not JSON.");
  expect(inspect(thrown)).not.toContain("ada");
});
