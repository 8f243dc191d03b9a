import { setTimeout as sleep } from "node:timers/promises";
import type { Actor } from "../../../src/auth/actor";
import type { Database } from "../../../src/database/database";
import { readConfig } from "../../../src/platform/config";
import { type AskedNote, NoteWrites } from "../../../src/writeback/notes";
import { withTransactions } from "../database";
import { startWriteback } from "../writeback";

/** Where the sending dies. At REQUEST_SENT it lives on until somebody else kills it. */
export type NoteDeath =
  | "BEFORE_THE_RECEIPT"
  | "BEFORE_THE_REQUEST"
  | "REQUEST_SENT"
  | "ANSWER_READ"
  | "BEFORE_THE_SETTLEMENT"
  | "SETTLED";

const { DEATH, JITTER_MS, ACTOR = "", ASKED = "" } = process.env;

/** Ends this process as a power cut would, a little later than the point itself. */
async function dieAt(...deaths: NoteDeath[]): Promise<void> {
  if (!deaths.some((death) => death === DEATH)) return;
  await sleep(Number(JITTER_MS));
  process.kill(process.pid, "SIGKILL");
  await sleep(60_000);
}

/** The receipt's transaction is the first, the settlement's the second; each ends the process before or after it commits. */
function mortal(database: Database): Database {
  let transactions = 0;
  return withTransactions(database, async (transaction, work) => {
    transactions += 1;
    const isReceipt = transactions === 1;
    if (!isReceipt) await dieAt("ANSWER_READ");
    const result = await transaction(async (scope) => {
      const made = await work(scope);
      await dieAt(isReceipt ? "BEFORE_THE_RECEIPT" : "BEFORE_THE_SETTLEMENT");
      return made;
    });
    await dieAt(isReceipt ? "BEFORE_THE_REQUEST" : "SETTLED");
    return result;
  });
}

/** Writes the note ASKED as ACTOR and dies of it at DEATH. */
async function main(): Promise<void> {
  const { parts, close } = await startWriteback(readConfig(process.env));
  const notes = new NoteWrites({ ...parts, database: mortal(parts.database) });
  const actor = { ...(JSON.parse(ACTOR) as Actor), expiresAt: new Date("2100-01-01") };
  await notes.write(actor, JSON.parse(ASKED) as AskedNote);
  await close();
}

void main();
