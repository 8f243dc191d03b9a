import type { CopyScope } from "../../src/database/database";
import { DAY_MS, MINUTE_MS } from "../../src/platform/clock";
import { writePersons } from "../../src/sync/writers";
import { emptyCopy } from "../support/copy";
import { useDatabase } from "../support/world";

// Seen red: who was stamped ahead of time once kept that name for ever, whatever the CRM said since.

const now = new Date("2026-11-20T12:00:00Z");
const inMs = (ms: number) => new Date(now.getTime() + ms);
const database = useDatabase();
let copy: CopyScope;
beforeAll(async () => {
  copy = await emptyCopy(database, now);
});
beforeEach(() => database.query("DELETE FROM person"));

const others = { ownerId: null, organizationId: null, customFields: {}, emails: [], phones: [], deleted: false };
const mails = { lastIncomingMailTime: null, lastOutgoingMailTime: null };
async function write(name: string, updated: Date | null, at: Date): Promise<string | undefined> {
  const person = { id: 1, name, addTime: null, updateTime: updated?.toISOString() ?? null, ...others, ...mails };
  await writePersons([person], 0)(copy, at);
  return (await database.query<{ name: string }>("SELECT name FROM person"))[0]?.name;
}

test.each([
  ["its stamp is later than the answer that shows another", inMs(3 * DAY_MS), now],
  ["its stamp is long before the answer that shows another", inMs(5 * MINUTE_MS), inMs(16 * MINUTE_MS)],
])("a record is brought up to date where %s", async (_where, stamp, at) => {
  expect(await write("stamped ahead", stamp, now)).toBe("stamped ahead");
  expect(await write("stamped right", inMs(-MINUTE_MS), at)).toBe("stamped right");
});

test("of two answers that have crossed the later state stays", async () => {
  expect(await write("newer", inMs(-MINUTE_MS), now)).toBe("newer");
  expect(await write("older", inMs(-2 * MINUTE_MS), inMs(MINUTE_MS))).toBe("newer");
  expect(await write("of the same instant", inMs(-MINUTE_MS), inMs(MINUTE_MS))).toBe("of the same instant");
  expect(await write("of no known instant", null, inMs(MINUTE_MS))).toBe("of no known instant");
});
