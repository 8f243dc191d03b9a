import { startSimulator } from "../../simulator";
import { MINUTE_MS } from "../../src/platform/clock";
import { createTestDatabase } from "../support/database";
import { startService } from "../support/service";
import { countStatements, transactions } from "../support/statements";
import { connect, dataOf, noJobIsDue, recordMeeting, syncEnds } from "../support/stories";

const MOST = 8;

test("a sync's page that changes a matched deal's facts takes eight statements at most, the judging among them", async () => {
  let aheadMs = 0;
  const clock = () => new Date(Date.now() + aheadMs);
  const [simulator, database] = await Promise.all([startSimulator({ deals: 60, now: clock }), createTestDatabase()]);
  const counter = await countStatements(database.url);
  const service = await startService(simulator, database, { clock, databaseUrl: counter.url });
  await connect(service, simulator);
  await syncEnds(service);
  const { singleDeal: story } = simulator.company.stories;
  await recordMeeting(service, [story.email]);
  await noJobIsDue(database);
  const changed = { person: story.personId, activity: story.plannedActivityId, deal: story.dealId, note: story.noteId };
  for (const [entity, id] of Object.entries(changed) as [keyof typeof changed, number][]) {
    aheadMs += 11 * MINUTE_MS;
    simulator.control.change(entity, id, {});
    const sent = await counter.sentDuring(async () => {
      dataOf(await service.ask("mutation { requestSync { ... on SyncRequested { run { id } } } }"));
      await syncEnds(service);
    });
    // The word to watchers goes with a page now and then, not with each.
    const pages = transactions(sent)
      .map((statements) => statements.map(({ sql }) => sql.trim().slice(0, 60)))
      .map((page) => page.filter((sql) => !sql.startsWith("SELECT pg_notify")))
      .filter((page) => page.some((sql) => sql.includes(`INSERT INTO ${entity} AS t`)));
    expect(pages.flat()).toContainEqual(expect.stringContaining("INSERT INTO deal_silence"));
    expect(pages.filter(({ length }) => length > MOST)).toEqual([]);
  }
  await service.stop();
  await counter.close();
  await Promise.all([simulator.stop(), database.drop()]);
});
