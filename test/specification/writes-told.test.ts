import { setTimeout as sleep } from "node:timers/promises";
import { NOTE, settle } from "../../src/writeback/receipts";
import type { ActorClaims } from "../support/actors";
import { fieldOf, recordPath, setMapping, writeFields } from "../support/fields";
import { posts, writeNote } from "../support/notes";
import type { Service } from "../support/service";
import { type Subscription, subscribe } from "../support/sockets";
import { connect, dataOf, recordMeeting, syncAgain, syncEnds, until } from "../support/stories";
import { useCrm } from "../support/world";
import { useWriteback } from "../support/writeback";

// Seen red with: everybody of the tenant told; a write told that is answered at once; nothing told of synced notes; the
// notification sent whether or not the receipt changed.

const { world, simulator, database, serve } = useCrm({ deals: 20 });
const service = serve({ roles: ["api"] });
const writeback = useWriteback(world);
let worker: Service;
let meetingId = "";

beforeAll(async () => {
  ({ service: worker } = await world.startProcess());
  for (const tenant of ["acme", "globex"]) {
    await connect(service, simulator, { tenant });
    await syncEnds(service, { tenant });
  }
  meetingId = (await recordMeeting(service, [simulator.company.stories.singleDeal.email])).id;
  await setMapping(service, "DEAL", fieldOf(simulator, "DEAL", "varchar").field_code);
}, 120_000);
beforeEach(() => world.beginAnew());

interface Told {
  writeSettled: { __typename: string; id: string; state: string; requestedBy: string; target: { id: string } | null };
}
const TOLD = `subscription { writeSettled {
  ... on NoteWrite { __typename id state requestedBy target { id } }
  ... on FieldWrite { __typename id state requestedBy target { id } } } }`;
const MIA: ActorClaims = { sub: "mia", role: "member" };
const COLLEAGUES: ActorClaims[] = [
  { sub: "max", role: "member" },
  { sub: "olga", role: "owner" },
  { ...MIA, tenant: "globex" },
];
const toldOf = ({ results }: Subscription<Told>) =>
  results.map(({ writeSettled: { __typename, id, state } }) => `${__typename} ${id} ${state}`);

/** Mia's sockets at two processes and with two standings, and those of everybody who is to hear nothing. */
async function listening<T>(work: (tells: (told: string[]) => Promise<void>) => Promise<T>): Promise<T> {
  const hers = await Promise.all([
    subscribe<Told>(service.url, TOLD, { as: MIA }),
    subscribe<Told>(worker.url, TOLD, { as: MIA }),
    subscribe<Told>(service.url, TOLD, { as: { ...MIA, role: "admin" } }),
  ]);
  const others = await Promise.all(COLLEAGUES.map((as) => subscribe<Told>(service.url, TOLD, { as })));
  await Promise.all([...hers, ...others].map((one) => one.listens()));
  const tells = async (told: string[]) => {
    await until(`${told.join()} is told`, async () => hers.every(({ results }) => results.length >= told.length));
    await sleep(SILENT_MS);
    for (const one of hers) expect(toldOf(one).sort()).toEqual([...told].sort());
    expect(others.flatMap(({ results }) => results)).toEqual([]);
  };
  const done = await work(tells);
  await Promise.all([...hers, ...others].map((one) => one.end()));
  return done;
}
/** What nobody was told of by then is not told later either. */
const SILENT_MS = 400;
const LOST = { kind: "lostAfter" } as const;

test("a note and a value whose answers were lost are told, once found, to who wrote them and to nobody else", async () => {
  await listening(async (tells) => {
    simulator.control.fail({ match: "/api/v1/notes", method: "POST", with: LOST });
    const note = await writeNote(service, { meetingId }, MIA);
    expect(note.state).toBe("UNKNOWN");
    await tells([`NoteWrite ${note.id} WRITTEN`]);
    world.beginAnew();
    const record = recordPath("DEAL", simulator.company.stories.singleDeal.dealId);
    simulator.control.fail({ match: record, method: "PATCH", with: LOST });
    const { writes } = await writeFields(service, meetingId, [{ entity: "DEAL", value: "told" }], { as: MIA });
    const [field] = writes ?? [];
    expect(field?.state).toBe("UNKNOWN");
    simulator.control.clearFaults();
    await tells([`NoteWrite ${note.id} WRITTEN`, `FieldWrite ${field?.id} WRITTEN`]);
  });
});

test("writes that are answered at once, written or refused, tell nothing", async () => {
  await listening(async (tells) => {
    expect((await writeNote(service, { meetingId }, MIA)).state).toBe("WRITTEN");
    simulator.control.fail({ match: "/api/v1/notes", method: "POST", with: { status: 403 } });
    expect((await writeNote(service, { meetingId }, MIA)).state).toBe("FAILED");
    const { writes } = await writeFields(service, meetingId, [{ entity: "DEAL", value: "at once" }], { as: MIA });
    expect(writes?.[0]?.state).toBe("WRITTEN");
    await tells([]);
  });
});

/** No look-up comes to it before the story ends: only a sync may settle it. */
const putOff = () => database.query("UPDATE note_write SET next_look_up_at = NULL WHERE state = 'UNKNOWN'");

test("a note that a sync finds is told once, also where its sender is gone; what is settled again tells nothing", async () => {
  await listening(async (tells) => {
    const lost = await writeNote(service, { meetingId }, MIA);
    const gone = await writeNote(service, { meetingId }, MIA);
    const ids = [lost, gone].map(({ id }) => Buffer.from(id, "base64url").toString().split(":")[1]);
    for (const [at, state] of ["UNKNOWN", "SENDING"].entries()) {
      await database.query(
        `UPDATE note_write SET state = $2, crm_note_id = NULL, settled_at = NULL,
           error_code = CASE WHEN $2 = 'UNKNOWN' THEN 'ANSWER_LOST' END WHERE id = $1`,
        [ids[at], state],
      );
    }
    await putOff();
    for (const { reference } of [lost, gone])
      for (const note of simulator.company.notes.values())
        if (note.content.includes(reference)) simulator.control.change("note", note.id, {});
    await syncAgain(service, database);
    const told = [lost, gone].map(({ id }) => `NoteWrite ${id} WRITTEN`);
    await tells(told);
    for (const note of simulator.company.notes.values())
      if (note.content.includes(lost.reference)) simulator.control.change("note", note.id, {});
    await database.query("UPDATE synced_copy SET asked_again_at = NULL");
    await syncAgain(service, database, { role: "owner" });
    await tells(told);
    expect(posts(simulator)).toHaveLength(2);
  });
});

test("a note that is certainly not there is told as FAILED, and again when it is found after all", async () => {
  simulator.control.fail({ match: "/api/v1/notes", method: "POST", with: { kind: "lostAfter" } });
  const note = await writeNote(service, { meetingId }, MIA);
  simulator.control.clearFaults();
  const [id] = Buffer.from(note.id, "base64url").toString().split(":").slice(1);
  await listening(async (tells) => {
    const made = [...simulator.company.notes.values()].find(({ content }) => content.includes(note.reference));
    const content = made?.content ?? "";
    simulator.control.change("note", made?.id ?? 0, { content: "Somebody has removed the last line." });
    await database.query(
      `UPDATE note_write SET state = 'UNKNOWN', crm_note_id = NULL, settled_at = NULL, sent_at = now() - interval '2 hours',
         next_look_up_at = now() - interval '2 minutes' WHERE id = $1`,
      [id],
    );
    await database.query("DELETE FROM graphile_worker._private_jobs WHERE key LIKE 'note_look_up:%'");
    await tells([`NoteWrite ${note.id} FAILED`]);
    simulator.control.change("note", made?.id ?? 0, { content });
    await syncAgain(service, database);
    await tells([`NoteWrite ${note.id} FAILED`, `NoteWrite ${note.id} WRITTEN`]);
  });
});

test("two that settle one write at the same moment tell it once, in the transaction that settles it", async () => {
  const note = await writeNote(service, { meetingId }, MIA);
  const [, id = ""] = Buffer.from(note.id, "base64url").toString().split(":");
  await database.query("UPDATE note_write SET state = 'UNKNOWN', crm_note_id = NULL, settled_at = NULL WHERE id = $1", [
    id,
  ]);
  const scope = writeback.database.tenant(await database.tenantId("acme"));
  const found = { state: "WRITTEN", crmNoteId: Number(note.crmNoteId) } as const;
  const settleOnce = (then = () => {}) =>
    scope.transaction(async (transaction) => {
      await settle(transaction, NOTE, id, found, new Date());
      then();
    });
  await listening(async (tells) => {
    const dies = settleOnce(() => {
      throw new Error("killed before its commit");
    });
    await expect(dies).rejects.toThrow("killed");
    await tells([]);
    await Promise.all([settleOnce(), settleOnce(), settleOnce()]);
    await tells([`NoteWrite ${note.id} WRITTEN`]);
  });
});

const BY_KEY = `query ($key: String) { crmWrites(first: 1, idempotencyKey: $key) { nodes {
  ... on NoteWrite { id state } } } }`;

// Seen red: told from 25 seconds on alone, however long ago its client had given up.
test("who was shown UNKNOWN while a note was on its way is told what became of it", async () => {
  await listening(async (tells) => {
    simulator.control.fail({ match: "/api/v1/notes", method: "POST", with: { kind: "delay", ms: 3_000 } });
    const idempotencyKey = "given up";
    const writing = writeNote(service, { meetingId, idempotencyKey }, MIA);
    const shown = await until("it is being sent", async () => {
      const answer = await service.ask<{ crmWrites: { nodes: { id: string; state: string }[] } }>(
        BY_KEY,
        { key: idempotencyKey },
        MIA,
      );
      return dataOf(answer).crmWrites.nodes[0];
    });
    expect(shown.state).toBe("UNKNOWN");
    await tells([`NoteWrite ${shown.id} WRITTEN`]);
    expect(await writing).toMatchObject({ id: shown.id, state: "WRITTEN" });
  });
});

test("an answer that comes after a retry was told UNKNOWN is told, and one that comes at once is not", async () => {
  const asked = await Promise.all(
    [30, 1].map(async (seconds) => ({ seconds, note: await writeNote(service, { meetingId }, MIA) })),
  );
  const scope = writeback.database.tenant(await database.tenantId("acme"));
  await listening(async (tells) => {
    for (const { seconds, note } of asked) {
      const [, id = ""] = Buffer.from(note.id, "base64url").toString().split(":");
      await database.query(
        `UPDATE note_write SET state = 'SENDING', crm_note_id = NULL, settled_at = NULL,
           requested_at = now() - make_interval(secs => $2) WHERE id = $1`,
        [id, seconds],
      );
      const found = { state: "WRITTEN", crmNoteId: Number(note.crmNoteId) } as const;
      await scope.transaction((transaction) => settle(transaction, NOTE, id, found, new Date()));
    }
    await tells([`NoteWrite ${asked[0]?.note.id} WRITTEN`]);
  });
});

// Seen red with: it came five seconds later, and counted as one more.
test("the look that is planned for a write that was given up keeps its time where its sender gives it up as well", async () => {
  const note = await writeNote(service, { meetingId }, MIA);
  const [, id = ""] = Buffer.from(note.id, "base64url").toString().split(":");
  const sending = "UPDATE note_write SET state = 'SENDING', crm_note_id = NULL, settled_at = NULL WHERE id = $1";
  await database.query(sending, [id]);
  const scope = writeback.database.tenant(await database.tenantId("acme"));
  const unknown = { state: "UNKNOWN" } as const;
  const giveUp = () => scope.transaction((transaction) => settle(transaction, NOTE, id, unknown, new Date()));
  await giveUp();
  const key = [`note_look_up:${id}`];
  await database.query(
    "UPDATE graphile_worker._private_jobs SET run_at = now() + interval '1 hour' WHERE key = $1",
    key,
  );
  const planned = () => database.query("SELECT run_at FROM graphile_worker._private_jobs WHERE key = $1", key);
  const before = await planned();
  expect(before).toHaveLength(1);
  await giveUp();
  expect(await planned()).toEqual(before);
});
