import { Client } from "pg";
import type { WriteRef } from "../../src/writeback/receipts";
import { hasTriggers } from "../support/database";
import { askNote, notesWith, posts } from "../support/notes";
import type { Service } from "../support/service";
import { recordMeeting, until } from "../support/stories";
import { useCrm } from "../support/world";
import { startWriteback } from "../support/writeback";

// Seen red with: a receipt in SENDING sent again by the next caller.

const CALLERS = 100;
const ANSWER_AFTER_MS = 400;

let there: Service;
let meetingId: string;

const { world, simulator, database, serve } = useCrm({ deals: 10 });
const here = serve({ connected: ["acme"] });
beforeAll(async () => {
  meetingId = (await recordMeeting(here, [simulator.company.stories.singleDeal.email])).id;
  ({ service: there } = await world.startProcess({ ROLES: "api" }));
});
beforeEach(() => world.beginAnew());

const ask = (service: Service, idempotencyKey: string, content: string) =>
  askNote(service, { meetingId, idempotencyKey, content });

/** Half of the callers ask this process, half the other. */
const askAll = (idempotencyKey: string, content: (caller: number) => string) =>
  Promise.all(
    Array.from({ length: CALLERS }, (_, caller) => ask(caller % 2 ? here : there, idempotencyKey, content(caller))),
  );

test.each([
  ["the CRM answers late", "WRITTEN", { kind: "delay", ms: ANSWER_AFTER_MS }],
  ["the CRM refuses", "FAILED", { kind: "throttle" }],
  ["the answer is lost", "UNKNOWN", { kind: "lostAfter" }],
] as const)(
  "100 identical calls over two processes make one request and get one answer: %s",
  async (_, state, fault) => {
    simulator.control.fail({ match: "/api/v1/notes", method: "POST", times: 1, with: fault });
    const answers = await askAll(`same-${state}`, () => "The same for all");
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    expect(answers[0]?.write?.state).toBe(state);
    expect(posts(simulator)).toHaveLength(1);
    expect(notesWith(simulator, answers[0]?.write?.reference ?? "")).toHaveLength(state === "FAILED" ? 0 : 1);
  },
);

test("of 100 calls with one key and two inputs one input wins, and the other callers are told", async () => {
  const answers = await askAll("two-inputs", (caller) => `Text ${caller % 4 < 2 ? "A" : "B"}`);
  const written = answers.filter(({ write }) => write?.state === "WRITTEN");
  expect(written).toHaveLength(CALLERS / 2);
  expect(answers.filter(({ code }) => code === "IDEMPOTENCY_KEY_REUSED")).toHaveLength(CALLERS / 2);
  expect(posts(simulator)).toHaveLength(1);
});

test("100 keys are 100 notes", async () => {
  const answers = await Promise.all(
    Array.from({ length: CALLERS }, (_, caller) => ask(caller % 2 ? here : there, `own-${caller}`, "Same text")),
  );
  const references = new Set(answers.map(({ write }) => write?.reference));
  expect(references.size).toBe(CALLERS);
  for (const reference of references) expect(notesWith(simulator, reference ?? "")).toHaveLength(1);
  expect(posts(simulator)).toHaveLength(CALLERS);
});

/** Each receipt waits at it, just before it is looked whether its key has one. */
const GATE = `
  CREATE FUNCTION wait_at_gate() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NEW; END';
  CREATE TRIGGER gate BEFORE INSERT ON note_write FOR EACH ROW EXECUTE FUNCTION wait_at_gate()`;
// The gate is a trigger, which a cluster's tables cannot have.
const withGate = hasTriggers() ? test : test.skip;
const ROUNDS = 30;
/** As many sessions as two processes have for what one tenant writes. */
const AT_GATE = 8;

// Seen red with: a receipt that gives way to another of its idempotency key, and not to one of its reference.
withGate("receipts of one key that are made at the same moment are one", async () => {
  await world.database.query(GATE);
  const gate = new Client({ connectionString: world.database.url.reveal() });
  world.cleanup(() => gate.end());
  await gate.connect();
  for (let round = 0; round < ROUNDS; round += 1) {
    await gate.query("SELECT pg_advisory_lock(1)");
    const asked = Promise.all(
      Array.from({ length: AT_GATE }, (_, caller) => ask(caller % 2 ? here : there, `gate-${round}`, "The same")),
    );
    await until("all wait", async () => (await world.database.lockWaits()).length === AT_GATE);
    await gate.query("SELECT pg_advisory_unlock(1)");
    expect(new Set((await asked).map((answer) => JSON.stringify(answer))).size).toBe(1);
  }
  expect(posts(simulator)).toHaveLength(ROUNDS);
});

// Seen red: FAILED at once, and whoever wrote it again had it twice.
test("a worker whose clock is five minutes ahead takes no note for absent that the CRM shows later", async () => {
  const ahead = await startWriteback(world.config, () => new Date(Date.now() + 300_000));
  simulator.control.fail({ match: "/api/v1/notes", method: "POST", times: 1, with: { kind: "late" } });
  const key = "looked for by a clock ahead";
  await ask(here, key, "It comes late.");
  const receipt = async () => {
    const sql = `SELECT tenant_id AS "tenantId", id AS "writeId", state FROM note_write WHERE idempotency_key = $1`;
    return (await database.query<WriteRef & { state: string }>(sql, [key]))[0];
  };
  const looked = async () => {
    await ahead.lookUps.lookUp((await receipt()) ?? { tenantId: 0, writeId: "" });
    return (await receipt())?.state;
  };
  expect(await looked()).toBe("UNKNOWN");
  simulator.control.releaseLateEffects();
  expect(await looked()).toBe("WRITTEN");
  await ahead.close();
});
