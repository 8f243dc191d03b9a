import { openGate } from "../support/gate";
import { connect, dataOf, noJobIsDue, until } from "../support/stories";
import { useCrm } from "../support/world";

const { world, simulator, database } = useCrm({ deals: 10 });

// Seen red: a line of level 50 with "a sync run failed for a reason of our own", which someone must look at.
test("a run whose copy is disconnected and purged just before it looks at what is matched is over, and no fault", async () => {
  let [isNear, isMet] = [false, false];
  let meet = async () => undefined;
  const gate = await openGate(
    () => Number(new URL(database.url.reveal()).port),
    async (said) => {
      isNear ||= said.includes("FROM missed_record");
      if (isNear && !isMet && said.includes("probe_cursor")) {
        isMet = true;
        await meet();
      }
      return said;
    },
  );
  world.cleanup(() => gate.close());
  const { program, service } = await world.startProcess({ DATABASE_URL: gate.urlOf(database.url).reveal() });
  meet = async () => {
    dataOf(await service.ask("mutation { disconnect { __typename } }"));
    await until("it is purged", async () => (await database.query("SELECT 1 FROM synced_copy")).length === 0);
    return undefined;
  };
  await connect(service, simulator);
  await until("it has met", async () => isMet);
  await noJobIsDue(database);
  await program.says(/is no longer this worker's|reason of our own/);
  expect(program.output()).not.toContain('"level":50');
});
