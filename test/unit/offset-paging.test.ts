import type { CrmAnswer } from "../../src/crm/http";
import { readOffsetPage } from "../../src/crm/parsing/page";
import { participantRecord } from "../../src/crm/parsing/records";

// Seen red: 500 of 1,600 notes were there, and the run had succeeded.

const participant = { person_id: { value: 1 } };
const page = (additional_data: unknown, data: object = participant): CrmAnswer => ({
  status: 200,
  contentType: "application/json",
  body: Buffer.from(JSON.stringify({ success: true, data: [data], additional_data })),
  ...{ date: null, correlationId: "one", headerNames: [] },
  limit: { remaining: null, reset: null },
  day: { limit: null, remaining: null },
});

test.each([[null], [{ pagination: { start: 0, limit: 1 } }]])(
  "a full page that does not say whether more follows cannot be read, and one with room is the last: %j beside it",
  async (beside) => {
    await expect(readOffsetPage(page(beside), 1, participantRecord)).rejects.toThrow("does not say whether");
    expect(await readOffsetPage(page(beside), 2, participantRecord)).toMatchObject({ next: null });
    // Seen red: one that cannot be read made room.
    await expect(readOffsetPage(page(beside, {}), 1, participantRecord)).rejects.toThrow("does not say whether");
  },
);

test("a page that says only where more follows goes on there", async () => {
  const beside = { pagination: { start: 0, limit: 1, next_start: 500 } };
  expect(await readOffsetPage(page(beside), 1, participantRecord)).toMatchObject({ next: "500" });
});

// Seen red: a list whose number of records divides by its page's could never be read to its end.
test("a full page that says it is the last one is the last", async () => {
  const beside = { pagination: { start: 0, limit: 1, more_items_in_collection: false } };
  expect(await readOffsetPage(page(beside), 1, participantRecord)).toMatchObject({ next: null });
});
