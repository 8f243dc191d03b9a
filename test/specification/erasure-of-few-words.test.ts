import { KeepOut } from "../../src/connections/keep-out";
import { erasePerson } from "../../src/operator/erasure";
import { exportOf, findPerson, foundIn, type Said, saidOf } from "../../src/operator/person";
import { systemClock } from "../../src/platform/clock";
import { Keyring } from "../../src/platform/keyring";
import { createLogger } from "../../src/platform/logger";
import { recordMeeting, syncAgain } from "../support/stories";
import { rowsOfTenant } from "../support/tenants";
import { useCrm } from "../support/world";

const [WANG, HIS] = ["王小明", "wang@quellwerk.example"];
const [SUHARTO, SUHARTOS] = ["Suharto", "suharto@quellwerk.example"];
const HERS = "ottilie@quellwerk.example";

const { world, simulator, database, serve } = useCrm({ deals: 10 });
const ids = { person: 0, deal: 0 };
beforeAll(() => {
  const { control } = simulator;
  const emails = (value: string) => [{ value, primary: true, label: "work" }];
  const person_id = control.add("person", { name: WANG, emails: emails(HIS) });
  control.add("person", { name: SUHARTO, emails: emails(SUHARTOS) });
  ids.person = control.add("person", { name: "Ottilie Ringelnatz", emails: emails(HERS) });
  ids.deal = control.add("deal", { title: `与${WANG}续约`, status: "open", person_id });
  control.add("note", { content: `<p>${WANG} called, ${SUHARTO} too.</p>`, deal_id: ids.deal });
  const unreadable = { content: "<p>Her knee aches.</p>", add_time: "not a time", deal_id: ids.deal };
  control.add("note", { ...unreadable, person_id: ids.person } as never);
});
const service = serve({ connected: ["acme"], config: { sync: { intervalMs: 0, reconcileIntervalMs: 0 } } });

async function erase(address: string, said?: Said) {
  const keepOut = new KeepOut(new Keyring(world.config.encryptionKeys));
  const parts = { database: database.opened(), clock: systemClock, logger: createLogger("silent") };
  return foundIn(
    (await erasePerson({ ...parts, keepOut }, await database.tenantId("acme"), address, true, said)).person,
  );
}
const tablesWith = async (traces: RegExp) => [
  ...new Set((await rowsOfTenant(database, "acme")).filter(({ text }) => traces.test(text)).map(({ table }) => table)),
];

test("a name of one word in letters that set none apart is looked for, and kept out of its meetings' titles", async () => {
  const record = () => recordMeeting(service, [], { title: `与${WANG}午餐`, attendees: [{ email: HIS, name: WANG }] });
  await record();
  expect(await tablesWith(new RegExp(WANG))).toEqual(
    expect.arrayContaining(["public.deal", "public.note", "public.meeting"]),
  );
  expect(await erase(HIS)).toBe(`\nNames by which texts are found: "${WANG}".`);
  await record();
  expect(await tablesWith(new RegExp(WANG))).toEqual([]);
});

test("any other is told as not looked for, until the operator says it", async () => {
  const told = await erase(SUHARTOS);
  expect(told).toContain(`NOT looked for, one word: "${SUHARTO}".`);
  expect(told).not.toContain("Names by which");
  expect(await tablesWith(/suharto/i)).toEqual(["public.note"]);
  expect(await erase(SUHARTOS, saidOf({ name: [SUHARTO] }))).toContain(`texts are found: "${SUHARTO}".`);
  expect(await tablesWith(/suharto/i)).toEqual([]);
});

test("a note of the person that could not be read is exported, loses its words, and keeps them no more; its deal's gap stays", async () => {
  const all = database.opened();
  const scope = all.tenant(await database.tenantId("acme"));
  const aside = () =>
    database.query("SELECT resource, deal_id::int AS deal FROM rejected_record WHERE resource = 'NOTES'");
  const before = await aside();
  expect(before).toEqual([{ resource: "NOTES", deal: ids.deal }]);
  const { held } = await exportOf(all, scope, await findPerson(scope, HERS));
  expect(JSON.stringify(held.unreadable)).toContain("knee");
  await erase(HERS);
  expect(await tablesWith(/knee/)).toEqual([]);
  for (const kind of ["FULL", "RECONCILE"] as const) await syncAgain(service, database, { tenant: "acme" }, kind);
  expect(await tablesWith(/knee/)).toEqual([]);
  expect(await aside()).toEqual(before);
});

test("a person whose copy is retired is noted for none", async () => {
  const address = "ringo@quellwerk.example";
  simulator.control.add("person", { name: "Ringo Late", emails: [{ value: address, primary: true, label: "work" }] });
  await syncAgain(service, database);
  const noted = () => database.query("SELECT 1 FROM kept_out_person");
  const before = await noted();
  await database.query("UPDATE connection SET copy_id = NULL, state = 'NOT_CONNECTED'");
  await erase(address);
  expect(await noted()).toEqual(before);
});
