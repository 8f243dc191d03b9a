import { setTimeout as sleep } from "node:timers/promises";
import { Random } from "../../simulator/seed/random";
import { askedNote, notesWith, posts, seller } from "../support/notes";
import { startProgram } from "../support/processes";
import type { NoteDeath } from "../support/programs/note-victim";
import { recordMeeting, until } from "../support/stories";
import { useCrm } from "../support/world";
import { useWriteback } from "../support/writeback";

// Seen red with: a sweep that leaves SENDING as it is.

const SEEDS = Number(process.env.SEEDS ?? (process.env.DEEP ? 20 : 1));
const TIMEOUT_MS = process.env.DEEP ? 1_800_000 : 120_000;

let meetingId: string;
let aheadMs = 0;
const clock = () => new Date(Date.now() + aheadMs);

const { world, simulator, database } = useCrm({ deals: 10, clock });
/** The process that stays. Its clock and the CRM's run ahead of those that die. */
const healthy = useWriteback(world, clock);
beforeAll(async () => {
  const service = await world.startService({ connected: ["acme"] });
  meetingId = (await recordMeeting(service, [simulator.company.stories.singleDeal.email])).id;
  await service.stop();
});
beforeEach(() => {
  world.beginAnew();
  aheadMs = 0;
});

/** A process writes a note and is killed. */
async function writeAndDie(death: NoteDeath, key: string, jitterMs: number): Promise<void> {
  const before = posts(simulator).length;
  const victim = startProgram("test/support/programs/note-victim.js", {
    ...world.environment,
    DEATH: death,
    JITTER_MS: String(jitterMs),
    ACTOR: JSON.stringify(await seller(database)),
    ASKED: JSON.stringify(askedNote(meetingId, key)),
  });
  if (death === "REQUEST_SENT") {
    await until("the request is sent", async () => posts(simulator).length > before);
    await sleep(jitterMs);
    victim.child.kill("SIGKILL");
  }
  const ended = await victim.ended;
  if (ended !== "SIGKILL") throw new Error(`the victim was not killed but ended (${ended}):\n${victim.output()}`);
}

interface Receipt {
  state: string;
  reference: string;
  crm_note_id: number | null;
  error_code: string | null;
}

async function receiptOf(key: string): Promise<Receipt | null> {
  const sql = "SELECT state, reference, crm_note_id, error_code FROM note_write WHERE idempotency_key = $1";
  return (await database.query<Receipt>(sql, [key]))[0] ?? null;
}

async function pass(ms: number): Promise<void> {
  aheadMs += ms;
  await healthy.lookUps.sweep();
  const sql = `SELECT id FROM note_write WHERE state = 'UNKNOWN' AND next_look_up_at <= $1`;
  for (const { id } of await database.query<{ id: string }>(sql, [clock()])) {
    await healthy.lookUps.lookUp({ tenantId: await database.tenantId("acme"), writeId: id });
  }
}

interface Ending {
  /** Just after the death, and in the end. */
  states: (string | null)[];
  posts: number;
  notes: number;
  /** What the same key gives afterwards. */
  again: string;
}

async function endingOf(death: NoteDeath, seed: number): Promise<Ending> {
  const random = new Random(`killed/${death}/${seed}`);
  const key = `${death}-${seed}`;
  simulator.log.clear();
  aheadMs = 0;
  if (death === "REQUEST_SENT") {
    // Done or not done, and no answer in either case before the kill.
    const fault = random.pick([{ kind: "hangAfter" }, { kind: "hang" }] as const);
    simulator.control.fail({ match: "/api/v1/notes", method: "POST", times: 1, with: fault });
  }
  await writeAndDie(death, key, random.int(0, 60));
  simulator.control.clearFaults();
  const early = await receiptOf(key);
  for (const ms of [60_000, 70_000, 5_000, 25_000, 60_000, 95_000, 300_000]) await pass(ms);
  const receipt = await receiptOf(key);
  const notes = receipt ? notesWith(simulator, receipt.reference) : [];
  expect(receipt?.crm_note_id ?? null).toBe(notes[0]?.id ?? null);
  const sent = posts(simulator).length;
  const again = await healthy.notes.write(await seller(database), askedNote(meetingId, key));
  return {
    states: [early?.state ?? null, receipt?.state ?? null],
    posts: sent,
    notes: notes.length,
    again: again.ok ? again.value.state : again.code,
  };
}

test.each<[NoteDeath, Ending[]]>([
  ["BEFORE_THE_RECEIPT", [{ states: [null, null], posts: 0, notes: 0, again: "WRITTEN" }]],
  ["BEFORE_THE_REQUEST", [{ states: ["SENDING", "FAILED"], posts: 0, notes: 0, again: "FAILED" }]],
  [
    "REQUEST_SENT",
    [
      { states: ["SENDING", "WRITTEN"], posts: 1, notes: 1, again: "WRITTEN" },
      { states: ["SENDING", "FAILED"], posts: 1, notes: 0, again: "FAILED" },
    ],
  ],
  ["ANSWER_READ", [{ states: ["SENDING", "WRITTEN"], posts: 1, notes: 1, again: "WRITTEN" }]],
  ["BEFORE_THE_SETTLEMENT", [{ states: ["SENDING", "WRITTEN"], posts: 1, notes: 1, again: "WRITTEN" }]],
  ["SETTLED", [{ states: ["WRITTEN", "WRITTEN"], posts: 1, notes: 1, again: "WRITTEN" }]],
])(
  "a process killed at %s leaves at most one note, and a receipt that others settle without sending",
  async (death, allowed) => {
    for (let seed = 0; seed < SEEDS; seed += 1) {
      const ending = await endingOf(death, seed);
      expect(allowed).toContainEqual(ending);
      // The key of a sending that never began is free: its next use is the one request.
      expect(posts(simulator)).toHaveLength(death === "BEFORE_THE_RECEIPT" ? 1 : ending.posts);
    }
  },
  TIMEOUT_MS,
);
