import { v2Time } from "../../simulator/model/times";
import { MINUTE_MS } from "../../src/platform/clock";
import { countStatements, transactions } from "../support/statements";
import { dataOf, noJobIsDue, recordMeeting, syncEnds } from "../support/stories";
import { useCrm } from "../support/world";

/** One of them finds the deals to judge: where there are none, as on most pages of a first sync, no more is asked. */
const MOST = 9;

/** What a statement begins with; one that tells of a row as it was reads it first. */
const headOf = (sql: string) =>
  sql
    .trim()
    .replace(/^WITH before AS .*written AS \(\s*/s, "")
    .slice(0, 60);

let aheadMs = 0;
const clock = () => new Date(Date.now() + aheadMs);
const { world, simulator, database } = useCrm({ deals: 60, clock });

test("a sync's page that changes a matched deal's facts takes nine statements at most, the judging among them", async () => {
  const counter = await countStatements(database.url);
  world.cleanup(counter.close);
  const service = await world.startService({ config: { databaseUrl: counter.url }, connected: ["acme"] });
  const { singleDeal: story } = simulator.company.stories;
  await recordMeeting(service, [story.email]);
  await noJobIsDue(database);
  const changed = { person: story.personId, activity: story.plannedActivityId, deal: story.dealId, note: story.noteId };
  for (const [entity, id] of Object.entries(changed) as [keyof typeof changed, number][]) {
    aheadMs += 11 * MINUTE_MS;
    // Of a deal most changes are no reason to judge it.
    const moved = entity === "deal" ? { stage_change_time: v2Time(clock().getTime() / 1_000) } : {};
    simulator.control.change(entity, id, moved);
    const sent = await counter.sentDuring(async () => {
      dataOf(await service.ask("mutation { requestSync { ... on SyncRequested { run { id } } } }"));
      await syncEnds(service);
    });
    // The word to watchers goes with a page now and then, not with each.
    const pages = transactions(sent)
      .map((statements) => statements.map(({ sql }) => headOf(sql)))
      .map((page) => page.filter((sql) => !sql.startsWith("SELECT pg_notify")))
      .filter((page) => page.some((sql) => sql.includes(`INSERT INTO ${entity} AS t`)));
    expect(pages.flat()).toContainEqual(expect.stringContaining("INSERT INTO deal_silence"));
    expect(pages.filter(({ length }) => length > MOST)).toEqual([]);
  }
});
