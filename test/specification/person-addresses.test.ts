import { KeepOut } from "../../src/connections/keep-out";
import { erasePerson } from "../../src/operator/erasure";
import { systemClock } from "../../src/platform/clock";
import { Keyring } from "../../src/platform/keyring";
import { createLogger } from "../../src/platform/logger";
import { recordMeeting, syncAgain } from "../support/stories";
import { useService } from "../support/world";

// Seen red with a look that finds no address to delete; a field's text taken for one address or none.

const { world, simulator, database, service } = useService({ deals: 10, connected: ["acme"] });

const emails = (names: string[]) =>
  names.map((name) => ({ value: `${name}@moved.example`, primary: false, label: "" }));
const HAD = { "two addresses": ["one", "both"], "one address": ["alone"], "one of another": ["both", "other"] };
const HAS = [["both"], [], ["one", "Other", "other"]];

test("a person is found by the addresses that it has now, and by no other", async () => {
  const { control } = simulator;
  const ids = Object.entries(HAD).map(([name, had]) => control.add("person", { name, emails: emails(had) }));
  const held = async () => {
    const rows = await database.query<{ at: number; name: string }>(
      `SELECT array_position($1::bigint[], person_id) AS at, split_part(address, '@', 1) AS name
       FROM person_address WHERE person_id = ANY ($1) ORDER BY 1, 2`,
      [ids],
    );
    return ids.map((_, index) => rows.filter(({ at }) => at === index + 1).map(({ name }) => name));
  };
  await syncAgain(service, database);
  expect(await held()).toEqual([["both", "one"], ["alone"], ["both", "other"]]);
  for (const [index, id] of ids.entries()) control.change("person", id, { emails: emails(HAS[index] ?? []) });
  await syncAgain(service, database);
  expect(await held()).toEqual([["both"], [], ["one", "other"]]);
});

/** What people put into one field of the CRM, and the addresses that it holds, each without its domain. */
const FIELDS: [text: string, names: string[]][] = [
  ["a1@f.example;", ["a1"]],
  ["a2@f.example, ", ["a2"]],
  ["Ada <a3@f.example>;", ["a3"]],
  ["a4@f.example; B4@f.example", ["a4", "b4"]],
  ["a5@f.example / b5@f.example", ["a5", "b5"]],
  ["a6@f.example/b6@f.example", ["a6", "b6"]],
  ["a7@f.example b7@f.example", ["a7", "b7"]],
  ["a8@f.example\nb8@f.example | a8@f.example", ["a8", "b8"]],
  ['"Berg, Ada" <a9@f.example>, Bo <b9@f.example>', ["a9", "b9"]],
  ["a10@f.example (private), b10@f.example", ["a10", "b10"]],
  ['"Berg; Ada" <a11@f.example>', ["a11"]],
  ['"a0@f.example" <a16@f.example>', ["a16"]],
  ["x/a12@f.example; b12@f.example", ["b12", "x/a12"]],
  ["Ada a13@f.example", []],
  ["a14@f.example@f.example", []],
  ["ask Ada; or Bo", []],
];

test("a field of the CRM that holds several addresses, or a separator behind one, is all that it holds", async () => {
  const ids = FIELDS.map(([value]) => {
    const person = { name: value, emails: [{ value, primary: true, label: "work" }] };
    return simulator.control.add("person", person);
  });
  await syncAgain(service, database);
  const rows = await database.query<{ id: number; names: string[] }>(
    `SELECT person_id::int AS id, array_agg(split_part(address, '@', 1) ORDER BY address) AS names
     FROM person_address WHERE person_id = ANY ($1) GROUP BY 1`,
    [ids],
  );
  const namesOf = new Map(rows.map(({ id, names }) => [id, names]));
  expect(ids.map((id, at) => [FIELDS[at]?.[0], namesOf.get(id) ?? []])).toEqual(FIELDS);
  const { attendees } = await recordMeeting(service, ["a4@f.example", "b5@f.example", "a13@f.example"]);
  expect(attendees.map(({ match }) => match.rule)).toEqual(["EMAIL_EXACT", "EMAIL_EXACT", null]);
});

test("who is erased by one of the addresses of a field is found by it, and does not come back by it", async () => {
  const value = "Ottilie <ottilie@quellwerk.example>; o.ringelnatz@quellwerk.example";
  const id = simulator.control.add("person", { name: "Ottilie", emails: [{ value, primary: true, label: "work" }] });
  await syncAgain(service, database);
  const keepOut = new KeepOut(new Keyring(world.config.encryptionKeys));
  const parts = { database: database.opened(), keepOut, clock: systemClock };
  const tenant = await database.tenantId("acme");
  const erased = await erasePerson(
    { ...parts, logger: createLogger("silent") },
    tenant,
    "o.ringelnatz@quellwerk.example",
    true,
  );
  expect(erased).toMatchObject({ records: 1 });
  simulator.control.change("person", id, { name: "Ottilie Ringelnatz" });
  await syncAgain(service, database);
  expect(await database.query("SELECT name FROM person WHERE crm_id = $1", [id])).toEqual([]);
});
