import { DAY_MS } from "../../src/platform/clock";
import { dataOf, recordMeeting, syncAgain } from "../support/stories";
import { useCrm } from "../support/world";

/** How far the clocks of both sides are ahead. */
let aheadMs = 0;
const clock = () => new Date(Date.now() + aheadMs);

const { simulator, database, serve } = useCrm({ deals: 60, clock });
const service = serve({ connected: ["acme"] });

const LIST = `query ($filter: DealFilter, $orderBy: DealOrder, $first: Int, $after: String) {
  deals(filter: $filter, orderBy: $orderBy, first: $first, after: $after) {
    nodes { crmId quiet { verdict quietSince } } pageInfo { endCursor } } }`;
interface List {
  nodes: { crmId: string; quiet: { verdict: string; quietSince: string | null } }[];
  pageInfo: { endCursor: string | null };
}
const list = async (variables: object) => dataOf(await service.ask<{ deals: List }>(LIST, variables)).deals;

// Seen red: behind a page of the stale copy, whose deals all stand where nothing is silent, no silent one came.
test("a walk that begins on a stale copy leaves no deal out when a sync comes between its pages", async () => {
  const { ghosted, severalDeals, singleDeal } = simulator.company.stories;
  for (const { email } of [ghosted, severalDeals, singleDeal]) await recordMeeting(service, [email]);
  aheadMs += 3 * DAY_MS;
  for (const variables of [{ orderBy: "QUIET_DAYS_DESC" }, { filter: { verdict: ["UNKNOWN"], status: ["OPEN"] } }]) {
    const all = await list({ ...variables, first: 100 });
    const walked = await list({ ...variables, first: 2 });
    expect(walked.nodes.map(({ quiet }) => quiet.verdict)).toContain("UNKNOWN");
    await syncAgain(service, database);
    const { nodes } = await list({ ...variables, first: 100, after: walked.pageInfo.endCursor });
    expect([...walked.nodes, ...nodes].map(({ crmId }) => crmId)).toEqual(all.nodes.map(({ crmId }) => crmId));
    aheadMs += 3 * DAY_MS;
  }
});
