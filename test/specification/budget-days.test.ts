import { DAY_MS, HOUR_MS } from "../../src/platform/clock";
import { createTestDatabase, type TestDatabase } from "../support/database";
import { type Days, startDays } from "../support/days";
import { connect } from "../support/stories";

let database: TestDatabase;
let days: Days;

afterEach(async () => {
  await days?.stop();
  await database?.drop();
});

test("smoke", async () => {
  const t0 = performance.now();
  const lap = (s: string) => process.stderr.write(`${((performance.now() - t0) / 1000).toFixed(1)} ${s}\n`);
  database = await createTestDatabase();
  days = await startDays(database, { deals: Number(process.env.DEALS ?? 5000), openPercent: 20, dailyTokens: 30_000 });
  lap("started");
  await connect(days.service, days.simulator);
  await days.until(new Date(days.clock().getTime() + 60_000));
  lap(JSON.stringify(days.simulator.control.ledger()));
  const runs = await database.query("SELECT kind, state, error_code, queued_at, finished_at FROM sync_run ORDER BY queued_at");
  lap(JSON.stringify(runs));
  for (let day = 0; day < Number(process.env.N ?? 2); day += 1) {
    const spent = await days.endDay();
    lap(JSON.stringify(spent));
    lap(JSON.stringify(await database.query("SELECT state, error_code, count(*) FROM sync_run GROUP BY 1,2")));
    lap(JSON.stringify(await database.query("SELECT status, participants_known, participants_due, count(*) FROM deal GROUP BY 1,2,3 ORDER BY 1,2,3")));
    lap(JSON.stringify(await database.query("SELECT * FROM crm_budget")));
  }
  expect([DAY_MS, HOUR_MS]).toBeTruthy();
}, 600_000);
