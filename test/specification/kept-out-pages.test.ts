import { KeepOut, type KeptOut } from "../../src/connections/keep-out";
import { activityRecord, noteRecord, personRecord } from "../../src/crm/parsing/records";
import type { CopyScope } from "../../src/database/database";
import { ERASED } from "../../src/platform/email-address";
import { encryptionKeys, Keyring } from "../../src/platform/keyring";
import { emptyCopy } from "../support/copy";
import { ENCRYPTION_KEYS } from "../support/service";
import { useDatabase } from "../support/world";

// Planted and seen red: who is named by a participant alone, or in a record that cannot be read by its id alone, told of; who has
// another address by now kept out for ever, or all others let in with a page; a deletion that was kept from who is to leave.

const [HERS, HER_OTHER, HIS] = ["ottilie@quellwerk.example", "ottilie@heim.example", "hans@quellwerk.example"];
const NOW = new Date("2026-11-20T10:00:00Z");

const database = useDatabase();
const keepOut = new KeepOut(new Keyring(encryptionKeys.parse(ENCRYPTION_KEYS)));
let copy: CopyScope;
let kept: KeptOut;
const add = (...addresses: string[]) =>
  copy.transaction((scope) => keepOut.add(scope, { mailboxes: new Set(addresses), records: [] }, NOW));
beforeAll(async () => {
  copy = await emptyCopy(database, NOW);
  await add(HERS);
  await add(HIS);
  const found = await keepOut.read(copy);
  if (!found) throw new Error("nothing is kept out");
  kept = found;
});

const person = (id: number, value: string, is_deleted = false) =>
  personRecord.parse({ id, name: "Somebody", emails: [{ value, primary: true, label: "work" }], is_deleted });
const persons = async (...page: ReturnType<typeof person>[]) =>
  (await kept.persons(copy, page)).map(({ id, deleted }) => (deleted ? `${id} deleted` : `${id}`));
const named = (person_id: number | null, ...participants: number[]) => ({
  id: 1,
  subject: "Call",
  type: "call",
  person_id,
  participants: participants.map((one) => ({ person_id: one, primary: false })),
});
const subjects = async (...page: ReturnType<typeof named>[]) =>
  (await kept.activities(copy, activityRecord.array().parse(page))).map(({ subject }) => subject);
const subjectsOf = (...ids: number[]) => subjects(...ids.map((id) => named(id)));

test("no text is stored that hangs on who is kept out, by whatever it does, and the others are", async () => {
  expect(await persons(person(1, HERS), person(2, "else@quellwerk.example"))).toEqual(["2"]);
  const activities = [named(1, 2), named(2, 2, 1), named(null, 1), named(2, 2), named(null)];
  expect(await subjects(...activities)).toEqual([ERASED, ERASED, ERASED, "Call", "Call"]);
  const note = (person_id: number | null) => ({
    id: 1,
    content: "Called.",
    person_id,
    add_time: "2026-11-20 10:00:00",
  });
  const notes = await kept.notes(copy, noteRecord.array().parse([note(1), note(2), note(null)]));
  expect(notes.map(({ content }) => content)).toEqual([ERASED, "Called.", "Called."]);
});

test("of what could not be read stays only what names nobody who is kept out", async () => {
  const payloads = [
    { ...named(1), id: 9 },
    named(2, 1),
    { subject: `Ask <${HERS}>` },
    named(2),
    { subject: "Ask x@y.example" },
  ];
  const rejected = payloads.map((payload) => ({ key: "1", reason: "", payload }));
  const left = async (areOfPeople: boolean) =>
    (await kept.rejected(copy, rejected, areOfPeople)).map(({ payload }) => payload);
  expect(await left(false)).toEqual([
    { id: 9, person_id: 1, participants: [] },
    { id: 1, person_id: 2, participants: [{ person_id: 1, primary: false }] },
    {},
    ...payloads.slice(3),
  ]);
  expect(await left(true)).toEqual(payloads.map(() => null));
});

test("who comes to have such an address loses the texts that are stored, and who has it no more is stored again; others stay out", async () => {
  await database.query(
    `INSERT INTO activity (tenant_id, copy_id, crm_id, subject, type, person_id, participant_ids, due_has_time, done)
     SELECT $1, 1, g, 'Call', 'call', g, '{}', false, false FROM generate_series(3, 5) g`,
    [copy.tenantId],
  );
  expect(await persons(person(3, HERS), person(4, HIS))).toEqual([]);
  const stored = await database.query("SELECT subject FROM activity ORDER BY crm_id");
  expect(stored.map(({ subject }) => subject)).toEqual([ERASED, ERASED, "Call"]);
  expect(await persons(person(3, "elsewhere@quellwerk.example"))).toEqual(["3"]);
  expect(await subjectsOf(1, 3, 4)).toEqual([ERASED, "Call", ERASED]);
});

test("whom the copy holds leaves it once, and whenever the CRM shows a deletion", async () => {
  await database.query(
    `INSERT INTO person (tenant_id, copy_id, crm_id, name, emails, phones, custom_fields)
     VALUES ($1, 1, 6, 'Hans', '[]', '[]', '{}')`,
    [copy.tenantId],
  );
  expect(await persons(person(6, HIS), person(7, HIS))).toEqual(["6 deleted"]);
  // As an erasure that was cut off has left it.
  expect(await persons(person(6, HIS))).toEqual([]);
  expect(await persons(person(6, HIS, true), person(7, HIS, true))).toEqual(["6 deleted", "7 deleted"]);
});

test("a record of an earlier copy is nobody's of the present one, who may have its number", async () => {
  await database.query("UPDATE connection SET state = 'CONNECTED', copy_id = 1");
  const records = [8, 9].map((crmId) => ({ copyId: crmId === 8 ? copy.copyId : copy.copyId + 1, crmId }));
  await copy.transaction((scope) => keepOut.add(scope, { mailboxes: new Set([HER_OTHER]), records }, NOW));
  expect(await subjectsOf(8, 9)).toEqual([ERASED, "Call"]);
  await keepOut.letIn(copy, HER_OTHER);
  // Planted and seen red: with the number went the texts of who has it now, and what was known of who had it.
  const earlier = { ...copy, copyId: copy.copyId + 1 };
  await kept.persons(earlier, [person(10, HIS)]);
  expect(await subjectsOf(10)).toEqual(["Call"]);
  await persons(person(10, "else@quellwerk.example"));
  const [activity] = await kept.activities(earlier, activityRecord.array().parse([named(10)]));
  expect(activity?.subject).toBe(ERASED);
});

test("who was kept out by several commands is let in by any of the addresses, and nobody else is", async () => {
  await add(HER_OTHER, HERS);
  expect(await keepOut.letIn(copy, HERS)).toBe(2);
  expect(await keepOut.letIn(copy, HER_OTHER)).toBe(0);
  expect(await subjectsOf(1, 4)).toEqual(["Call", ERASED]);
});
