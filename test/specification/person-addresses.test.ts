import { syncAgain } from "../support/stories";
import { useService } from "../support/world";

// Seen red with a look that finds no address to delete.

const { simulator, database, service } = useService({ deals: 10, connected: ["acme"] });

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
