import type { QueryRunner } from "typeorm";
import { Rematching } from "../../src/briefing/rematch";
import { systemClock } from "../../src/platform/clock";
import { createLogger } from "../../src/platform/logger";
import { hasTriggers } from "../support/database";
import { useFieldStory } from "../support/field-story";
import { patches, writeFields } from "../support/fields";
import { askNote, posts } from "../support/notes";
import { dataOf, recordMeeting, until } from "../support/stories";

// Seen red with: the meeting's row not held (`FOR SHARE` left out) by the transaction that proves a target.

const story = useFieldStory();
beforeAll(async () => {
  // The match after the first sync is done: from here on only the tests match.
  await until(
    "matched after the sync",
    async () => (await story.database.query("SELECT 1 FROM synced_copy WHERE matched_as_whole")).length > 0,
  );
  if (hasTriggers()) for (const table of ["note_write", "field_write"]) await watchCommits(table);
});

/** PostgreSQL itself notes of each receipt, at its commit, whether its target is matched to its meeting. */
async function watchCommits(table: string): Promise<void> {
  await story.database.query(`
    CREATE TABLE IF NOT EXISTS receipt_at_commit (meeting_id uuid, was_matched boolean);
    CREATE OR REPLACE FUNCTION note_receipt() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
      INSERT INTO receipt_at_commit VALUES (NEW.meeting_id, EXISTS (
        SELECT 1 FROM matched_record r WHERE r.tenant_id = NEW.tenant_id AND r.copy_id = NEW.copy_id
          AND r.meeting_id = NEW.meeting_id AND r.entity = NEW.entity AND r.crm_id = NEW.target_id));
      RETURN NULL;
    END $$;
    CREATE CONSTRAINT TRIGGER receipt_at_commit AFTER INSERT ON ${table} DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION note_receipt();`);
}

interface Meeting {
  id: string;
  rowId: string;
  externalId: string;
  startsAt: string;
  personId: string;
}

let meetings = 0;

/** A meeting that is matched to the person. It is the last to begin, so it is the first that is matched again. */
async function meetingWithPerson(): Promise<Meeting> {
  meetings += 1;
  const externalId = `meets-${meetings}`;
  const startsAt = new Date(Date.now() + meetings * 60_000).toISOString();
  const { id } = await recordMeeting(story.service, [personEmail()], { externalId, startsAt });
  const query = "query ($id: ID!) { briefing(meetingId: $id) { persons { id } } }";
  const { briefing } = dataOf(await story.service.ask<{ briefing: { persons: { id: string }[] } }>(query, { id }));
  expect(briefing.persons).toHaveLength(1);
  const rowId = Buffer.from(id, "base64url").toString().split(":")[1] ?? "";
  return { id, rowId, externalId, startsAt, personId: briefing.persons[0]?.id ?? "" };
}

const personEmail = () => story.simulator.company.stories.singleDeal.email;

/** The person's rows of the present match. */
const matchedPersons = ({ rowId }: Meeting) =>
  story.database.query("SELECT 1 FROM matched_record WHERE meeting_id = $1 AND entity = 'PERSON'", [rowId]);

const atCommit = ({ rowId }: Meeting) =>
  story.database.query("SELECT was_matched FROM receipt_at_commit WHERE meeting_id = $1", [rowId]);

const sessions: QueryRunner[] = [];
afterEach(async () => {
  for (const session of sessions.splice(0)) {
    if (session.isTransactionActive) await session.rollbackTransaction();
    await session.release();
  }
});

/** A session that holds what `sql` locks until it is released. */
async function hold(sql: string) {
  const session = story.database.dataSource.createQueryRunner();
  sessions.push(session);
  await session.startTransaction();
  const [own] = await session.query("SELECT pg_backend_pid() AS pid");
  await session.query(sql);
  return { pid: own.pid as number, release: () => session.commitTransaction() };
}

/** The session that waits for another one's lock. */
async function waiterFor(pid: number): Promise<number | undefined> {
  const waiter = (await story.database.lockWaits()).find(({ by }) => by === pid);
  return waiter?.pid;
}

/** What is under way, and whether it has ended. */
function track<T>(work: Promise<T>) {
  const tracked = { work, isEnded: false };
  const end = () => {
    tracked.isEnded = true;
  };
  work.then(end, end);
  return tracked;
}

/** Until it waits for the session `pid`, or has ended because it did not have to. */
const waitsOrEnds = (what: { isEnded: boolean }, pid: number) =>
  until("it waits or ends", async () => what.isEnded || (await waiterFor(pid)) !== undefined);

interface Written {
  code?: string;
  states?: string[];
}

type Way = [string, string, (meeting: Meeting) => Promise<Written>];
const WRITES: Way[] = [
  [
    "note",
    "note_write",
    async ({ id: meetingId, personId }) => {
      const { code, write } = await askNote(story.service, { meetingId, targetId: personId });
      return write ? { states: [write.state] } : { code };
    },
  ],
  [
    "field",
    "field_write",
    async ({ id, personId }) => {
      const values = [{ entity: "PERSON" as const, targetId: personId, value: "matched" }];
      const { code, writes } = await writeFields(story.service, id, values);
      return writes ? { states: writes.map(({ state }) => state) } : { code };
    },
  ],
];

interface Rematch {
  how: string;
  /** What a write that comes behind it is refused with. */
  refusal: "TARGET_NOT_MATCHED" | "MEETING_NOT_FOUND";
  /** What has changed before anything of it is asked for. */
  prepare(): Promise<unknown>;
  begin(meeting: Meeting): Promise<unknown>;
}

const end = (name: string, { id }: Meeting) =>
  story.service.ask(`mutation ($id: ID!) { ${name}(meetingId: $id) { __typename } }`, { id });

/** Ways in which the person is no longer matched to the meeting. */
const MATCHES: Rematch[] = [
  {
    how: "recorded again with others",
    refusal: "TARGET_NOT_MATCHED",
    prepare: async () => undefined,
    begin: ({ externalId, startsAt }) =>
      recordMeeting(story.service, ["nobody@nowhere.example"], { externalId, startsAt }),
  },
  {
    how: "matched again after a sync",
    refusal: "TARGET_NOT_MATCHED",
    prepare: async () => {
      const move = "UPDATE person_address SET mailbox = 'moved-' || mailbox WHERE mailbox = $1";
      await story.database.query(move, [personEmail()]);
      await story.database.query("UPDATE sync_run SET rematched = false");
    },
    begin: async () => {
      const db = story.database.opened();
      return new Rematching(db, systemClock, createLogger("silent")).run(
        await story.database.tenantId("acme"),
        new AbortController().signal,
      );
    },
  },
  {
    how: "cancelled",
    refusal: "TARGET_NOT_MATCHED",
    prepare: async () => undefined,
    begin: (meeting) => end("cancelMeeting", meeting),
  },
  {
    how: "deleted",
    refusal: "MEETING_NOT_FOUND",
    prepare: async () => undefined,
    begin: (meeting) => end("deleteMeeting", meeting),
  },
];
afterEach(() =>
  story.database.query("UPDATE person_address SET mailbox = $1 WHERE mailbox = 'moved-' || $1", [personEmail()]),
);

const PAIRS = WRITES.flatMap(([kind, table, write]) =>
  MATCHES.map((rematch) => ({ kind, table, write, how: rematch.how, rematch })),
);

test.each(PAIRS)(
  "a meeting that is $how between the proof and the receipt of a $kind waits for the receipt",
  async ({ table, write, rematch }) => {
    const meeting = await meetingWithPerson();
    await rematch.prepare();
    const gate = await hold(`LOCK TABLE ${table} IN SHARE MODE`); // reads pass, a new receipt waits
    const writing = write(meeting);
    const writer = await until("the receipt waits", () => waiterFor(gate.pid));
    const matching = track(rematch.begin(meeting));
    await waitsOrEnds(matching, writer);
    const isHeldUp = !matching.isEnded;
    const whileWriting = await matchedPersons(meeting);
    await gate.release();
    expect(await writing).toEqual({ states: ["WRITTEN"] });
    await matching.work;
    if (hasTriggers()) expect(await atCommit(meeting)).toEqual([{ was_matched: true }]);
    expect({ isHeldUp, whileWriting: whileWriting.length }).toEqual({ isHeldUp: true, whileWriting: 1 });
    expect(await matchedPersons(meeting)).toEqual([]);
  },
);

test.each(PAIRS)(
  "a $kind that is asked for while its meeting is $how is judged by the new match",
  async ({ write, rematch }) => {
    const meeting = await meetingWithPerson();
    await rematch.prepare();
    const gate = await hold("LOCK TABLE meeting_match IN SHARE MODE"); // reads pass, the match that is made waits
    const matching = rematch.begin(meeting);
    const matcher = await until("the match waits", () => waiterFor(gate.pid));
    const writing = track(write(meeting));
    await waitsOrEnds(writing, matcher);
    const isHeldUp = !writing.isEnded;
    await gate.release();
    await matching;
    expect(await writing.work).toEqual({ code: rematch.refusal });
    expect(isHeldUp).toBe(true);
    if (hasTriggers()) expect(await atCommit(meeting)).toEqual([]);
    expect([...posts(story.simulator), ...patches(story.simulator)]).toEqual([]);
  },
);
