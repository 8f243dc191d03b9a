import { KeepOut } from "../../src/connections/keep-out";
import { Database } from "../../src/database/database";
import { type Erased, erasePerson } from "../../src/operator/erasure";
import { exportOf, findPerson } from "../../src/operator/person";
import { systemClock } from "../../src/platform/clock";
import { Keyring } from "../../src/platform/keyring";
import { createLogger } from "../../src/platform/logger";
import { fieldOf, setMapping, writeFields } from "../support/fields";
import { recordMeeting, syncAgain } from "../support/stories";
import { rowsOfTenant } from "../support/tenants";
import { useCrm } from "../support/world";

// Seen red with: one spelling of a mailbox; JSON read as text; a user's name not looked for; values erased while looked up;
// the words beside an address not looked at.

const NAME = "Ottilie Ringelnatz";
const DOTTED = "ottilie.ringelnatz@gmail.com";
const IDN = "ottilie@büro-quelle.example";
/** Of one person, in one of the spellings in which people write them. */
const SPELLINGS = [DOTTED, "Ottilie.Ringelnatz+crm@googlemail.com", "ottilieringelnatz@gmail.com", IDN];
const TRACES = /ottilie|ringelnatz/i;
const SELLER = { name: "Albrecht Sommerfeld", email: "albrecht.sommerfeld+crm@seller.example" };
const SELLERS_TRACES = /albrecht|sommerfeld/i;

const { world, simulator, database, serve } = useCrm({ deals: 10 });
const field = (entity: "DEAL" | "PERSON", type: string) => fieldOf(simulator, entity, type).field_code;
const ids = { person: 0, deal: 0 };
beforeAll(() => {
  const { control, company } = simulator;
  const emails = [DOTTED, IDN].map((value) => ({ value, primary: value === DOTTED, label: "work" }));
  ids.person = control.add("person", { name: NAME, emails });
  const said = `Contact:\n${NAME.replace(" ", "\n")}\n${DOTTED}`;
  ids.deal = control.add("deal", {
    title: "Renewal",
    status: "open",
    person_id: ids.person,
    custom_fields: { [field("DEAL", "text")]: said },
  });
  const content = `<p>${NAME.replace(" ", "&nbsp;")}: ${SPELLINGS.join(", ")}</p>`;
  control.add("note", { content, deal_id: ids.deal });
  control.add("note", { content: `<p>${SELLER.name} called.</p>`, deal_id: ids.deal });
  control.change("user", company.stories.singleDeal.ownerId, SELLER);
});
const config = { sync: { intervalMs: 0, reconcileIntervalMs: 0 } };
const service = serve({ connected: ["acme"], config });

async function erase(address: string, keepsOut = false): Promise<Erased> {
  const keepOut = new KeepOut(new Keyring(world.config.encryptionKeys));
  const parts = { database: new Database(database.dataSource), clock: systemClock, logger: createLogger("silent") };
  return erasePerson({ ...parts, keepOut }, await database.tenantId("acme"), address, keepsOut);
}
const rowsThatShow = async (traces: RegExp) =>
  (await rowsOfTenant(database, "acme")).filter(({ text }) => traces.test(text));
async function exported(address: string) {
  const all = new Database(database.dataSource);
  const scope = all.tenant(await database.tenantId("acme"));
  return (await exportOf(all, scope, await findPerson(scope, address))).held;
}

test("the export has the journal's entries that name the person, and no address of another who attends", async () => {
  const { control, company } = simulator;
  const attendees = [{ email: DOTTED, name: NAME }, { email: "somebody@quellwerk.example" }];
  await recordMeeting(service, [], { title: `Renewal with ${NAME}`, attendees });
  control.change("deal", ids.deal, { person_id: company.stories.singleDeal.personId });
  await syncAgain(service, database);
  const held = await exported(DOTTED);
  expect(held.changes).toEqual([expect.objectContaining({ deal_id: ids.deal, kind: "PERSON", was: `${ids.person}` })]);
  expect(JSON.stringify(held)).not.toContain("somebody@quellwerk.example");
});

test("a value that is still looked up stays whole until it is settled, and goes when the erasure is run again", async () => {
  const { id } = await recordMeeting(service, [DOTTED]);
  await setMapping(service, "PERSON", field("PERSON", "varchar"));
  const { writes } = await writeFields(service, id, [{ entity: "PERSON", value: `likes ${NAME}` }]);
  expect(writes?.[0]?.state).toBe("WRITTEN");
  const become = (state: string) =>
    database.query("UPDATE field_write SET state = $1, settled_at = NULL, next_look_up_at = NULL", [state]);
  const values = async () =>
    (await database.query<{ value: unknown }>("SELECT value FROM field_write")).map(({ value }) => value);
  await become("UNKNOWN");
  expect(await erase(DOTTED)).toMatchObject({ receipts: 0, unsettled: 1 });
  expect(await values()).toEqual([`likes ${NAME}`]);
  await become("WRITTEN");
  expect(await erase(DOTTED)).toMatchObject({ receipts: 1, unsettled: 0, records: 1 });
  expect(await values()).toEqual([null]);
});

test("in every spelling of the mailbox, and across lines, the person is gone", async () => {
  expect(await rowsThatShow(TRACES)).toEqual([]);
});

test("the user who authorized is exported by name, and erased with it everywhere", async () => {
  const held = await exported(SELLER.email);
  expect(held.users).toEqual([expect.objectContaining({ name: SELLER.name })]);
  expect((await rowsThatShow(SELLERS_TRACES)).map(({ table }) => table)).toEqual(
    expect.arrayContaining(["public.connection", "public.crm_user", "public.note"]),
  );
  await erase("Albrecht.Sommerfeld@seller.example");
  expect(await rowsThatShow(SELLERS_TRACES)).toEqual([]);
});

test("a name that stands beside the attendee's address alone is found in the title, and kept out of it", async () => {
  const email = `"Konrad O'Lindqvist" <konrad@lindqvist-bau.example>`;
  const record = () => recordMeeting(service, [], { title: "Visit of Konrad O'Lindqvist", attendees: [{ email }] });
  await record();
  expect(await erase("konrad@lindqvist-bau.example", true)).toMatchObject({ meetings: 1 });
  expect(await rowsThatShow(/konrad/i)).toEqual([]);
  await record();
  expect(await rowsThatShow(/konrad/i)).toEqual([]);
});
