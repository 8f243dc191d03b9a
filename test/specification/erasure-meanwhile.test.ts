import { Database, reachOf } from "../../src/database/database";
import { eraseTenant } from "../../src/operator/erasure";
import { systemClock } from "../../src/platform/clock";
import { createLogger } from "../../src/platform/logger";
import { connect, noJobIsDue, recordMeeting, until } from "../support/stories";
import { rowsOfTenant } from "../support/tenants";
import { useService } from "../support/world";

const { simulator, database, service } = useService({ deals: 20 });

// Seen red: it was told as erased, and what was connected meanwhile stayed. At other moments a foreign key ended the erasure, and
// a live copy that no connection had was left: from then on each connect was an error of ours.
test.each([
  ["connects", false],
  ["connects and disconnects", true],
])("who %s while the tenant is erased is erased as well, and may connect afterwards", async (_, andDisconnects) => {
  const as = { tenant: `leaves-${andDisconnects}` };
  await connect(service, simulator, as);
  await recordMeeting(service, ["somebody@quellwerk.example"], {}, as);
  await noJobIsDue(database);
  const tenantId = await database.tenantId(as.tenant);
  const holder = database.dataSource.createQueryRunner();
  await holder.startTransaction();
  await holder.query("SELECT 1 FROM meeting WHERE tenant_id = $1 FOR UPDATE", [tenantId]);
  const parts = {
    database: new Database(database.dataSource, { reach: await reachOf(database.dataSource) }),
    clock: systemClock,
    logger: createLogger("silent"),
  };
  const erasing = eraseTenant(parts, tenantId, new AbortController().signal);
  await until("the erasure is under way", async () => (await database.lockWaits()).length > 0);
  expect(await connect(service, simulator, as)).toHaveProperty("connection");
  if (andDisconnects) await service.ask("mutation { disconnect { __typename } }", {}, as);
  await holder.commitTransaction();
  await holder.release();
  await erasing;
  await noJobIsDue(database);
  expect((await rowsOfTenant(database, as.tenant)).map(({ table }) => table)).toEqual(["public.audit_event"]);
  expect(await connect(service, simulator, as)).toHaveProperty("connection");
});
