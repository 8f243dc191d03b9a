import { randomUUID } from "node:crypto";
import { readUnreadAround } from "../../src/briefing/meeting-rows";
import { ShownNotes } from "../../src/briefing/notes";
import { readQuietFacts } from "../../src/briefing/quiet/read-quiet";
import { readTimelines } from "../../src/briefing/records";
import { readCopyState } from "../../src/connections/completeness";
import { type CopyScope, Database, reachOf } from "../../src/database/database";
import { createLogger } from "../../src/platform/logger";
import { readRunStatus } from "../../src/sync/run-history";
import { useDatabase } from "../support/world";

/**
 * A statement's columns are compared with its shape by whoever runs it by itself, so every story of the suite does. An
 * operation's reads travel together as JSON, which has no types: here they are run by themselves.
 */

const database = useDatabase();

const MEETING = randomUUID();
const now = new Date();
const READS: [string, (copy: CopyScope, db: Database) => Promise<unknown>][] = [
  ["gaps that touch a meeting", (copy) => readUnreadAround(copy, [MEETING])],
  ["the moment of the copy", (copy) => readCopyState(copy)],
  ["timelines", (copy) => readTimelines(copy, [randomUUID()], 5, now)],
  ["facts of silence", (copy) => readQuietFacts(copy, [1], now)],
  ["notes as they are shown", (copy, db) => new ShownNotes(db, createLogger("silent")).read(copy, [1])],
  ["the state of runs", (copy) => readRunStatus(copy, copy.copyId)],
];

// Planted and seen red: the "at" of a timeline as text; a column of the notes left out.
test.each(READS)("what an operation reads of %s has the columns that the code says, joined or not", async (_, read) => {
  const db = new Database(database.dataSource, { reach: await reachOf(database.dataSource) });
  const tenantId = await db.idOf("acme");
  const alone = await read({ ...db.tenant(tenantId), copyId: 1 }, db);
  const joined = await read({ ...db.tenant(tenantId, AbortSignal.timeout(60_000)), copyId: 1 }, db);
  expect(joined).toEqual(alone);
});
