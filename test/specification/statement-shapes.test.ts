import { randomUUID } from "node:crypto";
import { ShownNotes } from "../../src/briefing/notes";
import { readQuietFacts } from "../../src/briefing/quiet/read-quiet";
import {
  readCandidates,
  readCustomFields,
  readDealLinks,
  readMails,
  readMatchedIds,
  readParticipantIds,
  readUnreadDealsOf,
} from "../../src/briefing/records";
import { readContacts } from "../../src/briefing/timeline";
import { readCopyState } from "../../src/connections/completeness";
import { type CopyScope, Database } from "../../src/database/database";
import { createLogger } from "../../src/platform/logger";
import { readRunStatus } from "../../src/sync/run-history";
import { useDatabase } from "../support/world";

/**
 * A statement's columns are compared with its shape by whoever runs it by itself, so every story of the suite does. An
 * operation's reads travel together as JSON, which has no types: here they are run by themselves.
 */

const database = useDatabase();

const now = new Date();
const READS: [string, (copy: CopyScope, db: Database) => Promise<unknown>][] = [
  ["deals of which it is not known who takes part", (copy) => readUnreadDealsOf(copy, [1])],
  ["which deals could be meant", (copy) => readCandidates(copy, [randomUUID()])],
  ["custom fields", (copy) => readCustomFields(copy, "DEAL", [1])],
  ["what deals name", (copy) => readDealLinks(copy, [1])],
  ["what a meeting made readable", (copy) => readMatchedIds(copy, [randomUUID()])],
  ["who takes part", (copy) => readParticipantIds(copy, [1])],
  ["when mail went to and fro", (copy) => readMails(copy, [1])],
  ["the moment of the copy", (copy) => readCopyState(copy)],
  ["contacts around a meeting", (copy) => readContacts(copy, [randomUUID()], 5, now)],
  ["facts of silence", (copy) => readQuietFacts(copy, [1], now)],
  ["notes as they are shown", (copy, db) => new ShownNotes(db, createLogger("silent")).read(copy, [1])],
  ["the state of runs", (copy) => readRunStatus(copy, copy.copyId)],
];

// Planted and seen red: the "at" of a timeline as text; a column of the notes left out.
test.each(READS)("what an operation reads of %s has the columns that the code says, joined or not", async (_, read) => {
  const db = database.opened();
  const tenantId = await db.idOf("acme");
  const alone = await read({ ...db.tenant(tenantId), copyId: 1 }, db);
  const joined = await read({ ...db.tenant(tenantId, AbortSignal.timeout(60_000)), copyId: 1 }, db);
  expect(joined).toEqual(alone);
});
