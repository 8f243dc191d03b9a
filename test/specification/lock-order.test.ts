import { lockMeeting } from "../../src/briefing/match-meeting";
import { eraseTexts, holdCopyToJudge } from "../../src/connections/copies";
import { KeepOut } from "../../src/connections/keep-out";
import { erasePerson } from "../../src/operator/erasure";
import { Keyring } from "../../src/platform/keyring";
import { createLogger } from "../../src/platform/logger";
import { writeNote } from "../support/notes";
import { countStatements, transactions } from "../support/statements";
import { recordMeeting, syncAgain, until } from "../support/stories";
import { useCrm } from "../support/world";

let aheadMs = 0;
const clock = () => new Date(Date.now() + aheadMs);
const { world, simulator, database } = useCrm({ deals: 10, clock });

// Seen red: a page wrote its notes first. One that was written at this moment waited for the page, and the page for it:
// PostgreSQL ended one of the two, and who had written was told of a fault.
test("whoever writes a note locks the receipt and then, with that in no hand, the note; a sync that reads it the receipt first", async () => {
  const counter = await countStatements(database.url);
  world.cleanup(counter.close);
  const service = await world.startService({ config: { databaseUrl: counter.url }, connected: ["acme"] });
  const { id: meetingId } = await recordMeeting(service, [simulator.company.stories.singleDeal.email]);
  const orders = async (work: () => Promise<unknown>) =>
    transactions(await counter.sentDuring(work))
      .map((statements) => statements.map(({ sql }) => /UPDATE "?note_write|INSERT INTO note /.exec(sql)?.[0] ?? ""))
      .map((locked) => locked.filter(Boolean).map((text) => text.split(/[ "]/).at(-1) || "note"))
      .filter((locked) => locked.length > 0);
  expect(await orders(() => writeNote(service, { meetingId }))).toEqual([["note_write"], ["note"]]);
  aheadMs += 3_600_000;
  expect(await orders(() => syncAgain(service, database))).toEqual([["note_write", "note"]]);
}, 60_000);

// Seen red: the erasure held the copy and waited for the meeting, whose recording held it and waited for the copy. PostgreSQL
// ended one of the two: who recorded was told to try again, or the operator of a deadlock.
test("who erases a person waits for no meeting with the copy in hand, and matches anew one that is recorded meanwhile", async () => {
  const { freeMail, singleDeal } = simulator.company.stories;
  const service = await world.startService({ roles: ["api"] });
  const { id } = await recordMeeting(service, [singleDeal.email]);
  const meetingId = Buffer.from(id, "base64url").toString().split(":")[1] ?? "";
  const db = database.opened();
  const scope = db.tenant(await database.tenantId("acme"));
  const [{ copyId = 0 } = {}] = await database.query<{ copyId: number }>(`SELECT copy_id AS "copyId" FROM connection`);
  const knows = "FROM matched_record WHERE entity = 'PERSON' AND crm_id = $1 AND meeting_id = $2";
  const known = [freeMail.personId, meetingId];
  await database.query(
    `INSERT INTO matched_record (tenant_id, copy_id, entity, crm_id, meeting_id) SELECT tenant_id, $3, 'PERSON', $1, $2
     FROM connection`,
    [...known, copyId],
  );
  const keepOut = new KeepOut(new Keyring(world.config.encryptionKeys));
  const parts = { database: db, keepOut, clock, logger: createLogger("silent") };
  let erasing: Promise<unknown> | undefined;
  await scope.transaction(async (held) => {
    await lockMeeting(held, meetingId);
    erasing = erasePerson(parts, scope.tenantId, freeMail.email, false);
    await until("the erasure waits for the meeting", async () => (await database.lockWaits()).length > 0);
    expect(await holdCopyToJudge(held, Number(copyId))).toBe(true);
  });
  expect(await erasing).toMatchObject({ records: 1 });
  expect(await database.query(`SELECT 1 ${knows}`, known)).toEqual([]);
}, 60_000);

// Seen red: PostgreSQL ended one of the two. Who recorded was told to try again, or the operator of a deadlock.
test("an erasure and a recording of several meetings that wait for each other both go on", async () => {
  const service = await world.startService({ roles: ["api"] });
  const email = "erased@nowhere.example";
  const record = (names: string[]) =>
    service.ask("mutation ($inputs: [RecordMeetingInput!]!) { recordMeetings(inputs: $inputs) { __typename } }", {
      inputs: names.map((externalId) => ({
        ...{ externalId, title: `With ${email}`, ownerEmail: "anna@seller.example", attendees: [{ email }] },
        startsAt: clock().toISOString(),
      })),
    });
  await record(["x", "y", "z"]);
  // The first by its key is the last by its name.
  await database.query(
    `UPDATE meeting m SET external_id = o.name FROM (
       SELECT id, chr(100 - row_number() OVER (ORDER BY id)::int) AS name FROM meeting WHERE external_id IN ('x', 'y', 'z')) o
     WHERE m.id = o.id AND m.tenant_id = (SELECT id FROM tenant WHERE external_id = 'acme')`,
  );
  const tenantId = await database.tenantId("acme");
  const holder = database.dataSource.createQueryRunner();
  await holder.startTransaction();
  await holder.query("SELECT 1 FROM meeting WHERE tenant_id = $1 AND external_id = 'b' FOR UPDATE", [tenantId]);
  const keepOut = new KeepOut(new Keyring(world.config.encryptionKeys));
  const parts = { database: database.opened(), keepOut, clock, logger: createLogger("silent") };
  const erasing = erasePerson(parts, tenantId, email, false);
  await until("the erasure waits", async () => (await database.lockWaits()).length > 0);
  const recording = record(["a", "b", "c"]);
  await until("the recording waits", async () => (await database.lockWaits()).length > 1);
  await holder.commitTransaction();
  await holder.release();
  expect((await recording).errors).toBeUndefined();
  expect(await erasing).toMatchObject({ meetings: 3 });
}, 60_000);

// Seen red: a row that changed while the statement waited for it was passed by, and taken for the last.
test("a text in whose row something else is kept at that moment is erased as well", async () => {
  const scope = database.scope(await database.tenantId("acme"));
  const { personId } = simulator.company.stories.singleDeal;
  const [{ copyId = 0 } = {}] = await database.query<{ copyId: number }>(`SELECT copy_id AS "copyId" FROM connection`);
  await database.query("UPDATE note SET person_id = $1", [personId]);
  const reader = database.dataSource.createQueryRunner();
  await reader.startTransaction();
  await reader.query("UPDATE note SET shown_rules = 1");
  const erasing = eraseTexts(scope, copyId, personId);
  await until("the erasure waits for what is kept", async () => (await database.lockWaits()).length > 0);
  await reader.commitTransaction();
  await reader.release();
  expect(await erasing).toBeGreaterThan(0);
  expect(await database.query("SELECT content FROM note WHERE content !~ '^\\[erased\\]'")).toEqual([]);
});
