import { hasTriggers } from "../support/database";
import type { Program } from "../support/processes";
import { connect, syncEnds } from "../support/stories";
import { useService } from "../support/world";

const TIMEOUT_MS = 150_000;

let program: Program;

const { world, simulator, database, service } = useService({ deals: 10, roles: ["api"] });
beforeAll(async () => {
  await connect(service, simulator);
  ({ program } = await world.startProcess());
  await syncEnds(service);
}, TIMEOUT_MS);

// Seen red: a sweep took it over at the end of each lease, or it waited ten seconds for ever, and each time the customer paid for a look.
// A cluster's tables can have no trigger.
(hasTriggers() ? test : test.skip).each([
  ["a reason of our own", "raise_exception", "a sync run could not be ended yet"],
  ["a full disk", "disk_full", "the database holds a sync run up"],
])(
  "a run whose end fails for %s says so each time, waits ever longer, and ends once that is mended",
  async (_why, code, says) => {
    await database.query(
      `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''no end'' USING ERRCODE = ''${code}''; END'`,
    );
    await database.query("CREATE TRIGGER endless BEFORE UPDATE OF finished_at ON sync_run EXECUTE FUNCTION refuse()");
    simulator.log.clear();
    await service.ask("mutation { requestSync { __typename } }");
    for (const waitMs of [10_000, 20_000]) {
      expect(await program.says(new RegExp(`^{"level":50.*"waitMs":${waitMs}.*${says}`, "m"))).toBeDefined();
    }
    expect(simulator.log.of("GET", "/api/v1/users/me")).toHaveLength(2);
    await database.query("DROP FUNCTION refuse CASCADE");
    expect(await syncEnds(service)).toMatchObject({ state: "SUCCEEDED" });
    expect(program.output()).not.toMatch("has lost its worker");
  },
  TIMEOUT_MS,
);
