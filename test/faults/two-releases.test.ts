import { setTimeout as sleep } from "node:timers/promises";
import { RULES } from "../../src/briefing/quiet/rules";
import type { NextRules } from "../support/programs/next-rules";
import { setQuiet } from "../support/quiet-settings";
import { connect, noJobIsDue, recordMeeting, syncAgain, syncEnds, until } from "../support/stories";
import { useCrm } from "../support/world";

// Releases that judge silence by other rules, side by side while one takes the other's place, and back again.

jest.setTimeout(300_000);

const { world, simulator, database } = useCrm({ deals: 20 });
const environment = { SYNC_INTERVAL_SECONDS: "0", RECONCILE_INTERVAL_SECONDS: "0", ROLES: "api,worker" };
const NEXT_RULES: NextRules = "test/support/programs/next-rules.js";
const NEXT = { NODE_OPTIONS: `--require ${process.cwd()}/dist/${NEXT_RULES}` };
type Process = Awaited<ReturnType<typeof world.startProcess>>;
const OWNER = { role: "owner" };

interface Judged {
  held: number;
  coming: number | null;
  generation: number;
}
async function judged(): Promise<Judged> {
  const [found] = await database.query<Judged>(
    "SELECT (standards ->> 'version')::int AS held, (coming ->> 'version')::int AS coming, generation FROM judged_copy",
  );
  if (!found) throw new Error("the copy was never judged");
  return found;
}

/** By which rules the deals were judged whose verdicts are shown. */
const rulesOfDeals = async () =>
  (
    await database.query<{ rules: number }>(
      `SELECT DISTINCT split_part(judged_as, ' ', 1)::int AS rules FROM deal_silence
       JOIN judged_copy USING (tenant_id, copy_id, generation) ORDER BY 1`,
    )
  ).map(({ rules }) => rules);

/** What was judged by others is judged anew with a run at the latest. */
const areJudgedBy = (version: number, { service }: Process) =>
  until(`all deals are judged by rules ${version}`, async () => {
    await syncAgain(service, database, OWNER);
    const { held, coming } = await judged();
    return held === version && coming === null && (await rulesOfDeals()).join() === String(version);
  });

// Seen red: whoever walked enqueued what the other took at once, and walked the other way. The verdicts of a tenant of four
// deals changed twice a second, forty generations in half a minute, all places of both workers were taken, and no sync ended.
test("of two releases side by side the newer judges, whoever saves settings, syncs or records; and the older when it is alone again", async () => {
  const { singleDeal, severalDeals } = simulator.company.stories;
  const before = await world.startProcess(environment);
  await connect(before.service, simulator);
  await syncEnds(before.service);
  await recordMeeting(before.service, [singleDeal.email]);
  await noJobIsDue(database);
  await areJudgedBy(RULES, before);
  const next = await world.startProcess({ ...environment, ...NEXT });
  await setQuiet(before.service, { thresholds: [{ code: "NO_RECENT_ACTIVITY", days: 5 }] });
  await setQuiet(next.service, { thresholds: [{ code: "NO_RECENT_ACTIVITY", days: 6 }] });
  await areJudgedBy(RULES + 1, next);
  const { generation } = await judged();
  await areJudgedBy(RULES + 1, before);
  await sleep(2_000);
  expect((await judged()).generation).toBeLessThanOrEqual(generation + 1);
  // What the older judges, it judges by its own rules: all are judged anew.
  await recordMeeting(before.service, [severalDeals.email]);
  expect(await rulesOfDeals()).toEqual([RULES, RULES + 1]);
  await areJudgedBy(RULES + 1, before);
  next.program.child.kill("SIGTERM");
  expect(await next.program.ended).toBe(0);
  await areJudgedBy(RULES, before);
});
