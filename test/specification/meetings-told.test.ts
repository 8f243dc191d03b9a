import { hasTriggers } from "../support/database";
import { type Subscription, subscribe } from "../support/sockets";
import { connect, dataOf, recordMeeting, syncEnds, until } from "../support/stories";
import { useService } from "../support/world";

const { simulator, database, service, serve } = useService({ deals: 20, connected: ["acme"] });
const other = serve({ roles: ["api"] });

interface Told {
  meetingMatched: { externalId: string; match: { status: string; rule: string | null } };
}
const TOLD = "subscription { meetingMatched { externalId match { status rule } } }";
async function watch(tenant = "acme", at = other): Promise<Subscription<Told>> {
  const watching = await subscribe<Told>(at.url, TOLD, { as: { tenant, role: "member" } });
  await watching.listens();
  return watching;
}
const toldOf = ({ results }: Subscription<Told>) =>
  results.map(({ meetingMatched: { externalId, match } }) => `${externalId} ${match.rule ?? match.status}`);
const comes = (watching: Subscription<Told>, told: string) =>
  until(`"${told}" is told`, async () => toldOf(watching).includes(told));

test("each meeting whose match changes is told once, to every process and to nobody of another tenant", async () => {
  const watchers = await Promise.all([watch(), watch(), watch("acme", service)]);
  const stranger = await watch("stranger");
  const { severalDeals, singleDeal } = simulator.company.stories;
  const { id } = await recordMeeting(service, [severalDeals.email], { externalId: "a" });
  const query = "query ($id: ID!) { meeting(id: $id) { match { candidates { deal { id } } } } }";
  interface Candidates {
    meeting: { match: { candidates: { deal: { id: string } }[] } };
  }
  const { meeting } = dataOf(await service.ask<Candidates>(query, { id }));
  const mutations = [
    ["chooseDeal", `, dealId: "${meeting.match.candidates[0]?.deal.id}"`],
    ["unchooseDeal", ""],
    ["cancelMeeting", ""],
  ];
  for (const [name, more] of mutations) {
    dataOf(await service.ask(`mutation ($id: ID!) { ${name}(meetingId: $id${more}) { __typename } }`, { id }));
  }
  // What says the same as before is not told.
  const startsAt = new Date().toISOString();
  await recordMeeting(service, [singleDeal.email], { externalId: "b", startsAt });
  await recordMeeting(service, [singleDeal.email], { externalId: "b", startsAt, title: "Renamed" });
  // Seen red: a page with its briefing open went on with the old hour.
  const moved = { externalId: "b", startsAt: new Date(Date.parse(startsAt) + 3_600_000).toISOString() };
  // Its end is when it counts as contact.
  const longer = { ...moved, endsAt: new Date(Date.parse(startsAt) + 7_200_000).toISOString() };
  for (const input of [moved, moved, longer, longer]) await recordMeeting(service, [singleDeal.email], input);
  const inputs = ["c", "d", "e"].map((externalId) => ({
    externalId,
    title: externalId,
    startsAt: new Date().toISOString(),
    ownerEmail: "anna@seller.example",
    attendees: [{ email: "nobody@nowhere.example" }],
  }));
  const many = "mutation ($inputs: [RecordMeetingInput!]!) { recordMeetings(inputs: $inputs) { __typename } }";
  dataOf(await service.ask(many, { inputs }));
  for (const watching of watchers) {
    await comes(watching, "e NONE");
    const told = toldOf(watching);
    expect(told.filter((one) => one.startsWith("a ")).length).toBe(4);
    expect(told.filter((one) => !one.startsWith("a ")).sort()).toEqual([
      "b ONLY_CANDIDATE",
      "b ONLY_CANDIDATE",
      "b ONLY_CANDIDATE",
      "c NONE",
      "d NONE",
      "e NONE",
    ]);
  }
  expect(stranger.results).toEqual([]);
  await Promise.all([...watchers, stranger].map((one) => one.end()));
});

test("what a sync changes is told for each meeting; what the first one finds is told as a whole", async () => {
  const as = { tenant: "newcomer" };
  const email = "late@late-trading.example";
  const known = simulator.company.stories.singleDeal.email;
  await recordMeeting(service, [known], { externalId: "known" }, as);
  await recordMeeting(service, [email], { externalId: "late" }, as);
  const watching = await watch("newcomer");
  const whole = await subscribe<object>(
    other.url,
    "subscription { connectionStatusChanged { state sync { matching { done total } } } }",
    {
      as: { ...as, role: "member" },
    },
  );
  await until("the present state is there", async () => whole.results.length > 0);
  await connect(service, simulator, as);
  await syncEnds(service, as);
  const matchOf = async (externalId: string) => {
    const query = `query ($id: String!) { meeting(externalId: $id) { match { status } } }`;
    return dataOf(await service.ask<{ meeting: { match: { status: string } } }>(query, { id: externalId }, as)).meeting
      .match.status;
  };
  await until("the meetings are matched", async () => {
    return (await matchOf("late")) === "NONE" && (await matchOf("known")) === "MATCHED";
  });
  const last = () => JSON.stringify(whole.results.at(-1));
  await until("the whole is told", async () => last().includes('"matching":null') && last().includes("CONNECTED"));
  expect(watching.results).toEqual([]);
  simulator.control.add("person", { name: "Late", emails: [{ value: email, primary: true, label: "work" }] });
  simulator.control.add("deal", {
    title: "Late",
    status: "open",
    person_id: simulator.control.add("person", { name: "L", emails: [{ value: email, primary: true, label: "work" }] }),
  });
  dataOf(await service.ask("mutation { requestSync { __typename } }", {}, as));
  await syncEnds(service, as);
  await until("it is told", async () => watching.results.length > 0);
  expect(toldOf(watching)).toEqual([expect.stringMatching(/^late (ONLY_CANDIDATE|ONE_DEAL_OF_ALL)$/)]);
  await Promise.all([watching.end(), whole.end()]);
});

test("how far matching again has come is shown, and null when it is done", async () => {
  const query = "{ connection { sync { matching { done total } } } }";
  const read = async () =>
    dataOf(await service.ask<{ connection: { sync: { matching: unknown } } }>(query)).connection.sync.matching;
  expect(await read()).toBeNull();
  await database.query(
    `UPDATE synced_copy SET rematch = '{"runs": [], "done": 50, "total": 120, "failed": 0, "isWhole": true, "isLess": false, "since": null, "place": null}'
     WHERE state = 'LIVE' AND tenant_id = $1`,
    [await database.tenantId("acme")],
  );
  expect(await read()).toEqual({ done: 50, total: 120 });
  simulator.control.change("deal", simulator.company.stories.singleDeal.dealId, { title: "Renamed" });
  dataOf(await service.ask("mutation { requestSync { __typename } }"));
  await syncEnds(service);
  // What was on its way is gone on with first, and then what the run brought that ended meanwhile.
  await until("it is over", async () => {
    const [copy] = await database.query<{ isOver: boolean }>(
      `SELECT rematch IS NULL AND NOT EXISTS (SELECT 1 FROM sync_run r WHERE r.tenant_id = c.tenant_id AND r.copy_id = c.id AND NOT r.rematched) AS "isOver"
       FROM synced_copy c WHERE state = 'LIVE' AND tenant_id = $1`,
      [await database.tenantId("acme")],
    );
    return copy?.isOver;
  });
  expect(await read()).toBeNull();
});

// Seen red: the copy counted as new for as long as one failed, so that no change of any other was ever told.
(hasTriggers() ? test : test.skip)(
  "a meeting whose matching fails each time keeps no other's change from being told, and is matched once it can be",
  async () => {
    const as = { tenant: "hindered" };
    const email = "later@later-trading.example";
    const { id } = await recordMeeting(
      service,
      [simulator.company.stories.singleDeal.email],
      { externalId: "odd" },
      as,
    );
    await recordMeeting(service, [email], { externalId: "later" }, as);
    await database.query(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''odd''; END'`);
    await database.query(`CREATE TRIGGER refuse BEFORE UPDATE ON meeting_match FOR EACH ROW
      WHEN (NEW.meeting_id = '${Buffer.from(id, "base64url").toString().split(":").at(-1)}') EXECUTE FUNCTION refuse()`);
    const tenantId = await database.tenantId(as.tenant);
    const statusIs = (externalId: string, status: string) => async () =>
      (
        await database.query(
          `SELECT 1 FROM meeting m JOIN meeting_match x ON x.tenant_id = m.tenant_id AND x.meeting_id = m.id
           WHERE m.tenant_id = $1 AND m.external_id = $2 AND x.status = $3 AND x.copy_id IS NOT NULL`,
          [tenantId, externalId, status],
        )
      ).length > 0;
    const watching = await watch(as.tenant);
    await connect(service, simulator, as);
    await syncEnds(service, as);
    await until("the other one is matched", statusIs("later", "NONE"));
    expect(await statusIs("odd", "MATCHED")()).toBe(false);
    simulator.control.add("person", { name: "Later", emails: [{ value: email, primary: true, label: "work" }] });
    const sync = async () => {
      dataOf(await service.ask("mutation { requestSync { __typename } }", {}, as));
      await syncEnds(service, as);
    };
    await sync();
    await until("its change is told", async () => toldOf(watching).some((told) => told.startsWith("later ")));
    await database.query("DROP TRIGGER refuse ON meeting_match");
    await sync();
    await comes(watching, "odd ONLY_CANDIDATE");
    await watching.end();
  },
  180_000,
);
