import { startSimulator } from "../../simulator";
import { v2Time } from "../../simulator/model/times";
import { MINUTE_MS } from "../../src/platform/clock";
import { createTestDatabase } from "../support/database";
import { startService } from "../support/service";
import { countStatements } from "../support/statements";
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
    simulator.control.change(
      entity,
      id,
      entity === "deal" ? { stage_change_time: v2Time(clock().getTime() / 1_000) } : {},
    );
    const sent = await counter.sentDuring(async () => {
      dataOf(await service.ask("mutation { requestSync { ... on SyncRequested { run { id } } } }"));
      await syncEnds(service);
    });
    const writing = sent.find(({ sql }) => sql.includes(`INSERT INTO ${entity} AS t`));
    // Of the session that wrote the page; on a cluster without what only tells the nodes whose rows are meant.
    const own = sent
      .filter(({ session, isFraming }) => session === writing?.session && !isFraming)
      .map(({ sql }) => sql);
    const upsert = own.findIndex((sql) => sql.includes(`INSERT INTO ${entity} AS t`));
    const begin = own.findLastIndex((sql, index) => index < upsert && sql.startsWith("START TRANSACTION"));
    const page = own.slice(begin + 1, own.findIndex((sql, at) => at > upsert && /^\s*WITH counted/.test(sql)) + 1);
    expect(page.some((sql) => sql.includes("INSERT INTO deal_silence"))).toBe(true);
    expect(page.length > MOST ? page.map((sql) => sql.trim().slice(0, 60)) : []).toEqual([]);
  }
  await service.stop();
  await counter.close();
  await Promise.all([simulator.stop(), database.drop()]);
});
