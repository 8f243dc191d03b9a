import { DAY_MS, MINUTE_MS, systemClock } from "../../src/platform/clock";
import { createLogger } from "../../src/platform/logger";
import { Schedule } from "../../src/sync/schedule";
import { connect, dataOf } from "../support/stories";
import { loseAuthorization } from "../support/tokens";
import { useService } from "../support/world";

// Planted and seen red, each: a run that could only fail, one of a copy that was none by then, and a second one beside the first.

const { simulator, database, service } = useService({ deals: 10, roles: ["api"] });

const openRuns = "SELECT 1 FROM sync_run WHERE state = 'QUEUED' AND tenant_id = $1";
/** No worker is there, and all its lists are still due. */
const ended = (tenantId: number) =>
  database.query("UPDATE sync_run SET state = 'SUCCEEDED', finished_at = now() WHERE tenant_id = $1", [tenantId]);

test.each<[what: string, runs: number, happens: (as: { tenant: string }, tenantId: number) => Promise<unknown>]>([
  ["the authorization ends", 0, ({ tenant }) => loseAuthorization(database, tenant)],
  [
    "the CRM is disconnected and connected anew",
    0,
    async (as, tenantId) => {
      dataOf(await service.ask("mutation { disconnect { __typename } }", {}, as));
      await connect(service, simulator, as);
      await ended(tenantId);
    },
  ],
  [
    "somebody asks for a run",
    1,
    async (as) => dataOf(await service.ask("mutation { requestSync { __typename } }", {}, as)),
  ],
])("where %s while the schedule looks at what is due, it makes no run", async (what, runs, happens) => {
  const as = { tenant: what };
  await connect(service, simulator, as);
  const tenantId = await database.tenantId(as.tenant);
  await ended(tenantId);
  const view = async () => {
    await happens(as, tenantId);
    return null;
  };
  const budget = { left: async () => Number.POSITIVE_INFINITY, shortUntil: async () => null, view };
  const intervals = { intervalMs: 15 * MINUTE_MS, reconcileIntervalMs: 30 * DAY_MS };
  const parts = { database: database.opened(), clock: systemClock, logger: createLogger("silent") };
  await new Schedule({ ...parts, budget, ...intervals }).due(tenantId);
  expect(await database.query(openRuns, [tenantId])).toHaveLength(runs);
});
