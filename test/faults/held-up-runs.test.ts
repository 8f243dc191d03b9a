import { Client } from "pg";
import { FILL_DISK } from "../support/database";
import { connect, syncEnds, until } from "../support/stories";
import { useService } from "../support/world";

let holder: Client;

const { world, simulator, database, service } = useService({ deals: 10, roles: ["api"] });
beforeAll(async () => {
  await connect(service, simulator);
  holder = new Client({ connectionString: database.url.reveal() });
  await holder.connect();
  world.cleanup(() => holder.end());
});

// Seen red: each ten seconds it looked anew, for an hour of a table that was locked, at the customer's cost; a full disk was a bug of ours.
test("a run whose session is ended under a page, or whose disk is full, says so, waits ever longer, and fails for nothing", async () => {
  await holder.query("BEGIN");
  await holder.query("LOCK TABLE person IN SHARE MODE"); // reads pass, a page waits
  const { program } = await world.startProcess();
  for (const waitMs of [10_000, 20_000]) {
    const [waiting] = await until("a page waits for the lock", async () => {
      const found = await database.lockWaits();
      return found.length > 0 && found;
    });
    await database.query("SELECT pg_terminate_backend($1::int)", [waiting?.pid]);
    const line = new RegExp(`^{"level":40.*"waitMs":${waitMs}.*the database holds a sync run up`, "m");
    expect(await program.says(line)).toBeDefined();
  }
  await holder.query("ROLLBACK");
  expect(await syncEnds(service)).toMatchObject({ state: "SUCCEEDED" });
  await database.query(FILL_DISK);
  await database.query("CREATE TRIGGER full_disk BEFORE INSERT ON note EXECUTE FUNCTION fill()");
  simulator.control.add("note", { deal_id: simulator.company.stories.singleDeal.dealId });
  await service.ask("mutation { requestSync { __typename } }");
  const line = /^{"level":50.*"waitMs":10000.*the database holds a sync run up/m;
  expect(await program.says(line).finally(() => database.query("DROP FUNCTION fill CASCADE"))).toBeDefined();
  expect(await syncEnds(service)).toMatchObject({ state: "SUCCEEDED" });
  expect(await database.query("SELECT DISTINCT state FROM sync_run")).toEqual([{ state: "SUCCEEDED" }]);
}, 150_000);
