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

const time = () => v2Time(clock().getTime() / 1_000);
/** By record, a change on which no verdict hangs, as most are, and one on which it may. */
const CHANGES = {
  person: [() => ({ name: "Somebody Else" }), () => ({ last_incoming_mail_time: time() })],
  activity: [() => ({ subject: "Call again" }), () => ({ due_date: "2030-01-01", due_time: "" })],
  deal: [() => ({ title: "Renewal" }), () => ({ stage_change_time: time() })],
  note: [() => ({}), () => ({ content: "They called again." })],
};

let aheadMs = 0;
const clock = () => new Date(Date.now() + aheadMs);
const { world, simulator, database } = useCrm({ deals: 60, clock });

test("a sync's page takes nine statements at most, also where it changes a matched deal's facts; where it does not, no deal is judged", async () => {
  const counter = await countStatements(database.url);
  world.cleanup(counter.close);
  const service = await world.startService({ config: { databaseUrl: counter.url }, connected: ["acme"] });
  const { singleDeal: story } = simulator.company.stories;
  await recordMeeting(service, [story.email]);
  await noJobIsDue(database);
  const changed = { person: story.personId, activity: story.plannedActivityId, deal: story.dealId, note: story.noteId };
  for (const [entity, id] of Object.entries(changed) as [keyof typeof changed, number][]) {
    for (const [index, change] of CHANGES[entity].entries()) {
      aheadMs += 11 * MINUTE_MS;
      simulator.control.change(entity, id, change());
      const sent = await counter.sentDuring(async () => {
        dataOf(await service.ask("mutation { requestSync { ... on SyncRequested { run { id } } } }"));
        await syncEnds(service);
      });
      // The word to watchers goes with a page now and then, not with each.
      const pages = transactions(sent)
        .map((statements) => statements.filter(({ sql }) => !sql.startsWith("SELECT pg_notify")))
        .filter((page) => page.some(({ sql }) => headOf(sql).includes(`INSERT INTO ${entity} AS t`)));
      expect(pages.length).toBeGreaterThan(0);
      expect(pages.map((page) => page.map(({ sql }) => headOf(sql))).filter(({ length }) => length > MOST)).toEqual([]);
      const judging = pages.flat().filter(({ sql }) => sql.includes("DELETE FROM deal_silence"));
      expect({ entity, index, judging: judging.length }).toEqual({ entity, index, judging: index });
    }
  }
});
