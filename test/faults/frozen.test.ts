import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Meetings } from "../../src/briefing/meetings";
import { Disconnecting } from "../../src/connections/disconnecting";
import { SESSION_LIMITS } from "../../src/database/session-limits";
import { SECOND_MS } from "../../src/platform/clock";
import { cancelRuns } from "../../src/sync/runs";
import { type DumpedRow, dumpDatabase } from "../support/dump";
import { fieldOf, setMapping } from "../support/fields";
import { askedNote, seller } from "../support/notes";
import { type Program, startProgram } from "../support/processes";
import type { FreezePoint, FrozenWork } from "../support/programs/frozen-victim";
import { startService } from "../support/service";
import { connect, noJobIsDue, recordMeeting, syncEnds, until } from "../support/stories";
import { makeStale } from "../support/tokens";
import { useCrm } from "../support/world";
import { fieldWritesOf, startWriteback, type Writeback } from "../support/writeback";

// Seen red, 24 of 27, with what this is about taken out at once: no limits of sessions, no look before a request, no end of
// an operation, late answers that count, a lost session that fails a run. Green all the same: a run frozen at "sent" and
// "before:1", a note at "after:2".

const { DEEP } = process.env;
const TIMEOUT_MS = DEEP ? 600_000 : 120_000;
/** Two minutes in the deep run; else the frozen process's own clock makes two minutes of it. */
const FROZEN_MS = DEEP ? 120_000 : 2_500;
/** Within a transaction until PostgreSQL has given it up. */
const GIVEN_UP_MS = SESSION_LIMITS.work.idleInTransaction + 1_500;
const AHEAD_MS = DEEP ? 0 : 125_000;
const ANSWERED_WITHIN_MS = 30 * SECOND_MS;
const DISCONNECTED_WITHIN_MS = 10 * SECOND_MS;

/** The process that works on, as far ahead as a freeze counts. */
let healthy: Writeback;
let meetingId: string;
let aheadMs = 0;
const clock = () => new Date(Date.now() + aheadMs);
const frozen: Program[] = [];

const { world, simulator, database, serve } = useCrm({ deals: 10, clock });
beforeAll(async () => {
  const worker = await world.startService({ connected: ["acme"] });
  meetingId = (await recordMeeting(worker, [simulator.company.stories.singleDeal.email])).id;
  await setMapping(worker, "DEAL", fieldOf(simulator, "DEAL", "varchar").field_code);
  await noJobIsDue(database);
  await worker.stop();
  // As everywhere, but that the suite need not wait for it.
  const limits = DEEP ? SESSION_LIMITS.renewalLock : { ...SESSION_LIMITS.renewalLock, lock: SECOND_MS };
  healthy = await startWriteback(world.config, clock, {
    waitMs: DEEP ? undefined : SECOND_MS,
    change: () => ({ limits }),
  });
  world.cleanup(healthy.close);
}, TIMEOUT_MS);
/** Serves the API in this process, and works off no job. */
const service = serve({ roles: ["api"] });
beforeEach(() => {
  aheadMs = 0;
  simulator.control.clearFaults();
});
afterEach(async () => {
  for (const { child, ended } of frozen.splice(0)) {
    child.kill("SIGKILL");
    await ended;
  }
});

const isStopped = ({ child }: Program) => /\) T /.test(readFileSync(`/proc/${child.pid}/stat`, "utf8"));

/** What the CRM was asked with a method, wherever. */
const requests = () => simulator.log.all().length;

interface Freeze {
  /** Lets it go on to its end. @returns how it ended, how many requests it sent, and the tables that it changed */
  thaw(): Promise<{ ended: string; requests: number; changed: string[] }>;
}

/** Starts work in a process of its own and freezes it. A fault makes the CRM's answer wait where it is frozen by then. */
async function freeze(work: FrozenWork, point: FreezePoint, on: object = {}): Promise<Freeze> {
  const before = requests();
  const answer = point === "sent" && simulator.control.fail({ match: /./, times: 1, with: { kind: "hangAfter" } });
  const words = Object.entries({ WORK: work, FREEZE: point, ACTOR: await seller(database), ...on }).map(
    ([name, value]) => [name, typeof value === "object" ? JSON.stringify(value) : String(value)],
  );
  const program = startProgram("test/support/programs/frozen-victim.js", {
    ...world.environment,
    DEEP: DEEP ?? "",
    ...Object.fromEntries(words),
  });
  frozen.push(program);
  if (point === "sent") {
    await until("the request is sent", async () => requests() > before);
    program.child.kill("SIGSTOP");
  } else await program.says(/frozen at/);
  await until("it is frozen", async () => isStopped(program));
  const asleep = sleep(point.startsWith("in") ? Math.max(FROZEN_MS, GIVEN_UP_MS) : FROZEN_MS);
  aheadMs = AHEAD_MS;
  return {
    async thaw() {
      await asleep;
      if (answer) answer();
      await until("the CRM has answered", async () => simulator.log.all().every(({ status }) => status !== 0));
      const [rows, sent] = [await dumpDatabase(database), requests()];
      program.child.kill("SIGCONT");
      const ended = (await program.says(/ended: (\w+)/))[1] ?? "";
      await program.ended;
      return { ended, requests: requests() - sent, changed: tablesThatDiffer(rows, await dumpDatabase(database)) };
    },
  };
}

function tablesThatDiffer(before: readonly DumpedRow[], after: readonly DumpedRow[]): string[] {
  const lines = (rows: readonly DumpedRow[]) => new Set(rows.map(({ table, text }) => `${table} ${text}`));
  const [old, now] = [lines(before), lines(after)];
  const differing = [...before, ...after].filter(({ table, text }) => {
    const line = `${table} ${text}`;
    return !(old.has(line) && now.has(line));
  });
  // What a process has set aside of a company's tokens and did not spend it gives back, however late.
  return [...new Set(differing.map(({ table }) => table.replace("public.", "")))]
    .filter((table) => table !== "crm_budget")
    .sort();
}

/** The answer, which must be there in time whatever it is. */
async function within<T>(ms: number, asked: Promise<T>): Promise<T | string> {
  const late = sleep(ms, "no answer in time", { ref: false });
  return Promise.race([asked.catch((error: Error) => error.name), late]);
}

const LOST = { requests: 0, changed: [] };

const disconnecting = () =>
  new Disconnecting({
    ...healthy.parts,
    endsSync: { cancelRuns: (scope, copyId) => cancelRuns(scope, copyId, clock()) },
  });
const admin = async (tenant: string) => ({
  ...(await seller(database)),
  tenant,
  tenantId: await database.tenantId(tenant),
  role: "admin" as const,
});

test.each<[FreezePoint, string[]]>([
  ["call", []],
  ["sent", ["credential", "renewal_attempt"]],
  ["before:1", ["credential", "renewal_attempt"]],
  ["in:1", ["credential", "renewal_attempt"]],
  // Stored, and not yet proven.
  ["after:1", []],
])(
  "a renewal frozen at %s: who needs the token hears so in time, and what the CRM granted is stored all the same",
  async (point, changed) => {
    const tenant = `renewal-${point.replace(":", "-")}`;
    await connect(service, simulator, { tenant });
    const copyId = await makeStale(database, tenant);
    const freezing = await freeze("renewal", point, { TENANT: await database.tenantId(tenant), COPY_ID: copyId });
    aheadMs = 0;
    const source = healthy.tokens.of(await database.tenantId(tenant), copyId);
    const need = () =>
      within(
        ANSWERED_WITHIN_MS,
        source.current().then(() => "a token"),
      );
    expect(await need()).toBe("RenewalHeldUpError");
    expect(await freezing.thaw()).toMatchObject({ requests: 0, changed });
    expect(await need()).toBe("a token");
    expect(simulator.log.of("POST", "/oauth/token").filter(({ status }) => status >= 400)).toEqual([]);
  },
  TIMEOUT_MS,
);

test(
  "a disconnect is answered in time while a renewal is frozen, and nothing of that renewal is stored",
  async () => {
    const tenant = "renewal-disconnected";
    await connect(service, simulator, { tenant });
    const copyId = await makeStale(database, tenant);
    const freezing = await freeze("renewal", "in:1", { TENANT: await database.tenantId(tenant), COPY_ID: copyId });
    const done = await within(DISCONNECTED_WITHIN_MS, disconnecting().disconnect(await admin(tenant)));
    expect(done).toEqual({ ok: true, value: null });
    expect(await freezing.thaw()).toMatchObject(LOST);
  },
  TIMEOUT_MS,
);

async function openRunOf(tenant: string): Promise<string> {
  await connect(service, simulator, { tenant });
  const [run] = await database.query<{ id: string }>("SELECT id FROM sync_run WHERE tenant_id = $1", [
    await database.tenantId(tenant),
  ]);
  return run?.id ?? "";
}

test(
  "a page frozen in its transaction: a disconnect is answered in time, the copy is gone, and the page is never written",
  async () => {
    const tenant = "page-disconnected";
    const freezing = await freeze("page", "in:1", {
      TENANT: await database.tenantId(tenant),
      RUN_ID: await openRunOf(tenant),
    });
    const done = await within(DISCONNECTED_WITHIN_MS, disconnecting().disconnect(await admin(tenant)));
    expect(done).toEqual({ ok: true, value: null });
    expect(await freezing.thaw()).toMatchObject(LOST);
  },
  TIMEOUT_MS,
);

test.each<FreezePoint>(["call", "sent", "before:1", "in:1", "after:1"])(
  "a run frozen at %s is taken over, and its first worker asks and writes nothing more",
  async (point) => {
    const tenant = `run-${point.replace(":", "-")}`;
    const freezing = await freeze("page", point, {
      TENANT: await database.tenantId(tenant),
      RUN_ID: await openRunOf(tenant),
    });
    await sleep(DEEP ? 35_000 : 0);
    const worker = await startService(simulator, database, { clock, roles: new Set(["worker", "api"]) });
    expect(await syncEnds(worker, { tenant })).toMatchObject({ state: "SUCCEEDED" });
    await noJobIsDue(database);
    await worker.stop();
    expect(await freezing.thaw()).toMatchObject(LOST);
  },
  TIMEOUT_MS,
);

const SWEPT: FreezePoint[] = ["call", "sent", "before:2", "in:2"];

// Seen red at "sent": what the CRM had answered while the sender was frozen was thrown away.
/** What another process makes of the same key, and what of a note, and of a value, is known once the first wakes up. */
const ANSWERS: [FreezePoint, string, string, string][] = [
  ["in:1", "WRITTEN", "WRITTEN", "WRITTEN"],
  // That it was not sent; of a value this is seen by the look-up.
  ["call", "SENDING", "FAILED", "UNKNOWN"],
  ["sent", "SENDING", "WRITTEN", "WRITTEN"],
  ["before:2", "SENDING", "WRITTEN", "WRITTEN"],
  ["in:2", "SENDING", "WRITTEN", "WRITTEN"],
];
/** Its receipt, the look-up of what is not known, and the copy of what is written. */
const OF_WRITES = ["note_write", "field_write", "graphile_worker._private_jobs", "note", "deal"];
const other = ({ requests, changed }: Awaited<ReturnType<Freeze["thaw"]>>) => ({
  requests,
  changed: changed.filter((table) => !OF_WRITES.includes(table)),
});
const statesIn = (table: string, key: string) =>
  database.query(`SELECT state FROM ${table} WHERE idempotency_key = $1`, [key]);

test.each<[FreezePoint, string, string, string]>([...ANSWERS, ["after:2", "WRITTEN", "WRITTEN", "WRITTEN"]])(
  "a note frozen at %s: the same key is answered in time (%s), and the sender that wakes up sends nothing and notes what it knows",
  async (point, answer, known) => {
    const key = `note-${point}`;
    const asked = askedNote(meetingId, key);
    const freezing = await freeze("note", point, { ASKED: asked });
    const again = await within(ANSWERED_WITHIN_MS, healthy.notes.write(await seller(database), asked));
    expect(again).toMatchObject({ ok: true, value: { state: answer } });
    await sleep(DEEP ? 100_000 : 0);
    await healthy.lookUps.sweep();
    expect(await statesIn("note_write", key)).toEqual([{ state: SWEPT.includes(point) ? "UNKNOWN" : "WRITTEN" }]);
    expect(other(await freezing.thaw())).toEqual(LOST);
    expect(await statesIn("note_write", key)).toEqual([{ state: known }]);
  },
  TIMEOUT_MS,
);

test.each(ANSWERS)(
  "fields frozen at %s: the same key is answered in time (%s), and the sender that wakes up sends nothing and notes what it knows",
  async (point, answer, _, known) => {
    const { meeting } = askedNote(meetingId, "");
    const value = { entity: "DEAL" as const, targetId: null, target: null, value: `frozen at ${point}` };
    const asked = { meetingId, meeting, values: [value], idempotencyKey: `fields-${point}` };
    const freezing = await freeze("fields", point, { ASKED: asked });
    const again = await within(ANSWERED_WITHIN_MS, fieldWritesOf(healthy).write(await seller(database), asked));
    expect(again).toMatchObject({ ok: true, value: [{ state: answer }] });
    expect(other(await freezing.thaw())).toEqual(LOST);
    expect(await statesIn("field_write", asked.idempotencyKey)).toEqual([{ state: known }]);
  },
  TIMEOUT_MS,
);

test.each<FreezePoint>(["before:1", "in:1"])(
  "a disconnect frozen at %s: another is answered in time, and the one that wakes up ends no newer connection",
  async (point) => {
    const tenant = `disconnect-${point.replace(":", "-")}`;
    await connect(service, simulator, { tenant });
    const freezing = await freeze("disconnect", point, { ACTOR: await admin(tenant) });
    const done = await within(DISCONNECTED_WITHIN_MS, disconnecting().disconnect(await admin(tenant)));
    expect(done).toEqual({ ok: true, value: null });
    await connect(service, simulator, { tenant });
    expect(await freezing.thaw()).toMatchObject(LOST);
  },
  TIMEOUT_MS,
);

test.each<FreezePoint>(["before:1", "in:1"])(
  "a meeting frozen at %s of being matched: the same meeting is recorded by another process, and stays as that left it",
  async (point) => {
    const asked = {
      externalId: `frozen-${point}`,
      title: "Old",
      startsAt: new Date(),
      endsAt: null,
      ownerEmail: "anna@seller.example",
      attendees: [],
    };
    const freezing = await freeze("match", point, { ASKED: asked });
    const { database: db, logger } = healthy.parts;
    const meetings = new Meetings(db, healthy.keepOut, clock, logger);
    const recorded = await within(
      ANSWERED_WITHIN_MS,
      meetings.record(await seller(database), { ...asked, title: "New" }),
    );
    expect(recorded).toMatchObject({ title: "New" });
    expect(await freezing.thaw()).toMatchObject(LOST);
  },
  TIMEOUT_MS,
);
