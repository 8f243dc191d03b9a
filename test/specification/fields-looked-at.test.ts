import { fieldOf, fieldsIn, listPath, mappingsOf, setMapping, showFields } from "../support/fields";
import { connect, noJobIsDue, syncAgain, syncEnds } from "../support/stories";
import { useService } from "../support/world";

const { simulator, database, service } = useService({ deals: 20 });
afterEach(() => simulator.control.clearFaults());

/** A tenant that has nominated a field of deals and one of persons. */
async function nominated(tenant: string) {
  const as = { tenant };
  await connect(service, simulator, as);
  await syncEnds(service, as);
  await noJobIsDue(database);
  for (const entity of ["DEAL", "PERSON"] as const)
    await setMapping(service, entity, fieldOf(simulator, entity, "varchar").field_code, as);
  await anHourLater(as);
  simulator.log.clear();
  return as;
}

async function anHourLater({ tenant }: { tenant: string }): Promise<void> {
  const ofTenant = "WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)";
  const hour = (column: string) => `${column} = ${column} - interval '1 hour'`;
  await database.query(`UPDATE field_mapping SET ${hour("checked_at")}, ${hour("nominated_at")} ${ofTenant}`, [tenant]);
  await database.query(`UPDATE field_list SET ${hour("asked_at")}, ${hour("read_at")} ${ofTenant}`, [tenant]);
}

const asked = () => simulator.log.of("GET", /Fields$/).map(({ path }) => path);
const BOTH = [listPath("DEAL"), listPath("PERSON")];

// Seen red with: the refused list alone, after each sync.
test("a nominated field whose list is refused is looked for hourly, and keeps no other from being looked at", async () => {
  const as = await nominated("refused");
  const field = fieldOf(simulator, "PERSON", "varchar");
  showFields(
    simulator,
    "PERSON",
    fieldsIn(simulator, "PERSON").filter((one) => one !== field),
  );
  simulator.control.fail({ match: listPath("DEAL"), with: { status: 403 } });
  for (let syncs = 0; syncs < 3; syncs += 1) await syncAgain(service, database, as);
  expect(asked()).toEqual(BOTH);
  expect(await mappingsOf(service, as)).toMatchObject([{ health: "UNKNOWN" }, { health: "MISSING_IN_CRM" }]);
  await anHourLater(as);
  simulator.control.clearFaults();
  await syncAgain(service, database, as);
  expect(asked()).toEqual([...BOTH, ...BOTH]);
  expect(await mappingsOf(service, as)).toMatchObject([{ health: "OK" }, { health: "OK" }]);
});

test("where all calls would meet it, no other list is asked for, and all are after the next sync", async () => {
  const as = await nominated("throttled");
  simulator.control.fail({ match: listPath("DEAL"), times: 1, with: { kind: "throttle" } });
  await syncAgain(service, database, as);
  expect(asked()).toEqual([listPath("DEAL")]);
  await syncAgain(service, database, as);
  expect(asked()).toEqual([listPath("DEAL"), ...BOTH]);
});
