import { writeSync } from "node:fs";
import type { Actor } from "../../../src/auth/actor";
import { Meetings, type RecordMeetingInput } from "../../../src/briefing/meetings";
import { Budget } from "../../../src/connections/budget";
import { Disconnecting } from "../../../src/connections/disconnecting";
import { FieldMappings } from "../../../src/connections/field-mappings";
import { CrmApi } from "../../../src/crm/api";
import { CrmHttp } from "../../../src/crm/http";
import type { Database } from "../../../src/database/database";
import { type Clock, MINUTE_MS, timeLimit } from "../../../src/platform/clock";
import { readConfig } from "../../../src/platform/config";
import { inWork, limitWork } from "../../../src/platform/work";
import { SyncEngine } from "../../../src/sync/engine";
import { cancelRuns } from "../../../src/sync/runs";
import type { AskedFields } from "../../../src/writeback/field-batch";
import { FieldWrites } from "../../../src/writeback/fields";
import { type AskedNote, NoteWrites } from "../../../src/writeback/notes";
import { withTransactions } from "../database";
import { startWriteback, type Writeback } from "../writeback";

export type FrozenWork = "renewal" | "page" | "note" | "fields" | "disconnect" | "match";
/**
 * Where it freezes: as the process is about to call the CRM; before, in and after its n-th transaction; or wherever the
 * test stops it while the CRM answers.
 */
export type FreezePoint = "call" | `${"before" | "in" | "after"}:${number}` | "sent";

const { WORK, FREEZE, TENANT = "", COPY_ID, RUN_ID = "", ACTOR = "{}", ASKED = "{}", DEEP } = process.env;
const MUTATION_MS = 2 * MINUTE_MS;
const TICK_MS = 50;
/** Nothing else stops this process for so long, once it is where it freezes; before, a busy machine may. */
const A_FREEZE_MS = 1_500;
const COUNTS_AS_MS = DEEP ? 0 : 2 * MINUTE_MS;
let isThere = false;

/** In place of two minutes the process is frozen for seconds, and its clock says two minutes afterwards. */
const clock = clockOfFreezes();
function clockOfFreezes(): Clock {
  let seen = Date.now();
  let ahead = 0;
  const now = () => {
    if (isThere && Date.now() - seen > A_FREEZE_MS) ahead += COUNTS_AS_MS;
    seen = Date.now();
    return new Date(seen + ahead);
  };
  setInterval(now, TICK_MS).unref();
  return now;
}

function freezeAt(point: FreezePoint): void {
  isThere ||= FREEZE === point || (FREEZE === "sent" && point === "call");
  if (FREEZE !== point) return;
  writeSync(1, `frozen at ${point}\n`);
  process.kill(process.pid, "SIGSTOP");
  // The signal may take a moment: nothing more happens before it.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, A_FREEZE_MS / 5);
}

function freezing(database: Database): Database {
  let count = 0;
  return withTransactions(database, async (transaction, work) => {
    count += 1;
    const mine = count;
    freezeAt(`before:${mine}`);
    const result = await transaction(async (scope) => {
      const made = await work(scope);
      freezeAt(`in:${mine}`);
      return made;
    });
    freezeAt(`after:${mine}`);
    return result;
  });
}

async function work({ parts, tokens, keepOut }: Writeback): Promise<unknown> {
  const actor = { ...(JSON.parse(ACTOR) as Actor), expiresAt: new Date("2100-01-01") };
  const asked: unknown = JSON.parse(ASKED);
  const { database, http, crmBaseUrl, logger, tokensOf } = parts;
  const apiOf = (tenantId: number, copyId: number) =>
    new CrmApi({ http, baseUrl: crmBaseUrl, tokens: tokensOf(tenantId, copyId) });
  const mappings = new FieldMappings({ database, apiOf, clock, logger });
  switch (WORK as FrozenWork) {
    case "renewal":
      return tokens.of(Number(TENANT), Number(COPY_ID)).current();
    case "note":
      return new NoteWrites(parts).write(actor, asked as AskedNote);
    case "fields":
      return new FieldWrites({ ...parts, mappings }).write(actor, asked as AskedFields);
    case "match":
      return new Meetings(database, keepOut, clock, logger).record(actor, meetingOf(asked as RecordMeetingInput));
    case "disconnect":
      return new Disconnecting({
        database,
        clock,
        logger,
        endsSync: { cancelRuns: (scope, copyId) => cancelRuns(scope, copyId, clock()) },
      }).disconnect(actor);
    case "page": {
      const pinned = (tenantId: number, copyId: number) => tokens.of(tenantId, copyId);
      const engine = new SyncEngine({
        ...parts,
        tokensOf: pinned,
        intervalMs: 0,
        keepOut,
        settling: { settleNotes: async () => undefined },
        judging: { hangingOn: async () => [], judge: async () => undefined, byPresentRules: async () => undefined },
        budget: new Budget({ database, clock, logger, share: 0.25 }),
        concurrency: 4,
        planNext: async () => undefined,
      });
      return engine.run({ tenantId: Number(TENANT), runId: RUN_ID }, new AbortController().signal);
    }
  }
}

const meetingOf = (asked: RecordMeetingInput) => ({ ...asked, startsAt: new Date(asked.startsAt), endsAt: null });

/** Does WORK, freezes at FREEZE, and says how it ended. Only a run of a sync is no operation with a deadline. */
async function main(): Promise<void> {
  const http = new CrmHttp(undefined, undefined, async () => freezeAt("call"), clock);
  const writeback = await startWriteback(readConfig(process.env), clock, {
    http,
    change: ({ database }) => ({ database: freezing(database) }),
  });
  const ended = await inWork({}, async () => {
    if (WORK !== "page") limitWork(timeLimit(clock, MUTATION_MS));
    return work(writeback);
  }).then(
    () => "well",
    (error: Error) => error.name,
  );
  process.stdout.write(`ended: ${ended}\n`);
  await writeback.close();
}

void main();
