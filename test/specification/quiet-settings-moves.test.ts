import type { Simulator } from "../../simulator";
import type { TestDatabase } from "../support/database";
import {
  previewQuiet,
  type QuietWorld,
  quietSettings,
  rejudged,
  setQuiet,
  startQuietWorld,
} from "../support/quiet-settings";
import type { Service } from "../support/service";
import { connect, dataOf, syncEnds } from "../support/stories";

let world: QuietWorld;
let simulator: Simulator;
let database: TestDatabase;
let service: Service;

beforeAll(async () => {
  world = await startQuietWorld();
  ({ simulator, database, service } = world);
  await world.startWorker();
});
afterAll(() => world.stop());

test("settings outlive a disconnect; days of pipelines and stages mean those of one CRM company", async () => {
  const as = await world.tenantWithDeals("moves");
  const [deal] = (await world.seen(as)).deals;
  if (!deal) throw new Error("no deal is there");
  const code = "NO_RECENT_ACTIVITY";
  const all = { code, days: 20 };
  const { settings } = await setQuiet(
    service,
    {
      timeZone: "Europe/Tallinn",
      businessDays: true,
      thresholds: [all, { code, days: 21, pipelineId: deal.pipeline.id }, { code, days: 22, stageId: deal.stage.id }],
    },
    as,
  );
  await rejudged(service, as);
  const disconnect = () => service.ask("mutation { disconnect { __typename } }", {}, as);
  dataOf(await disconnect());
  const zone = { timeZone: "Europe/Tallinn", timeZoneIsSet: true };
  // It is of what is stored, shown or not.
  const version = settings?.version;
  const apart = { version, businessDays: true, ...zone, twoWayActivityTypes: [], rejudging: null };
  const ofAll = { scope: "ALL", pipeline: null, stage: null, ...all };
  expect(await quietSettings(service, as)).toEqual({ ...apart, thresholds: [ofAll] });
  expect(await setQuiet(service, {}, as)).toMatchObject({ code: "NOT_CONNECTED" });
  expect(await previewQuiet(service, {}, as)).toMatchObject({ code: "NOT_CONNECTED" });
  // Another company's copy: the same numbers mean other pipelines there.
  const { ownerId } = simulator.company.stories.singleDeal;
  const data = {
    ...simulator.company.users.get(ownerId),
    company_id: 99,
    company_name: "Other",
    company_domain: "other",
  };
  const mend = simulator.control.fail({
    match: "/api/v1/users/me",
    with: { status: 200, body: { success: true, data } },
  });
  await connect(service, simulator, as);
  await syncEnds(service, as);
  expect(await quietSettings(service, as)).toEqual({ ...apart, thresholds: [ofAll] });
  const standards = () =>
    database.query<{ thresholds: { days: number }[] }>(
      `SELECT j.standards -> 'thresholds' AS thresholds FROM judged_copy j JOIN connection c USING (tenant_id, copy_id)
       WHERE j.tenant_id = (SELECT id FROM tenant WHERE external_id = 'moves')`,
    );
  expect((await standards())[0]?.thresholds.map(({ days }) => days)).toEqual([20]);
  dataOf(await disconnect());
  mend();
  // The first company again, in a new copy.
  await connect(service, simulator, as);
  await syncEnds(service, as);
  const back = await quietSettings(service, as);
  expect(back.version).toBe(version);
  expect(
    back.thresholds.map(({ scope, days, stage, pipeline }) => [scope, days, stage?.crmId ?? pipeline?.crmId ?? null]),
  ).toEqual([
    ["ALL", 20, null],
    ["PIPELINE", 21, Buffer.from(deal.pipeline.id, "base64url").toString().split(":")[2]],
    ["STAGE", 22, Buffer.from(deal.stage.id, "base64url").toString().split(":")[2]],
  ]);
  // An id of the copy before names nothing any more.
  expect(await setQuiet(service, { thresholds: [{ code, days: 5, stageId: deal.stage.id }] }, as)).toMatchObject({
    code: "INVALID_INPUT",
    field: "thresholds.0.stageId",
    message: expect.stringContaining("connection.pipelines"),
  });
});

test("a pipeline that is deleted in the CRM takes its days out of sight, and the next save forgets them", async () => {
  const as = await world.tenantWithDeals("deleted");
  const query =
    "{ connection { pipelines { id crmId name stages { id crmId position pipeline { crmId } } } users { crmId active } } }";
  interface Setup {
    pipelines: {
      id: string;
      crmId: string;
      stages: { id: string; crmId: string; position: number; pipeline: { crmId: string } }[];
    }[];
    users: { crmId: string; active: boolean }[];
  }
  const { pipelines, users } = dataOf(await service.ask<{ connection: Setup }>(query, {}, as)).connection;
  expect(pipelines.map(({ crmId }) => Number(crmId)).sort()).toEqual([...simulator.company.pipelines.keys()].sort());
  for (const { crmId, stages } of pipelines) {
    expect(stages.length).toBeGreaterThan(0);
    expect(stages.map(({ pipeline }) => pipeline.crmId)).toEqual(stages.map(() => crmId));
    expect(stages.map(({ position }) => position)).toEqual(
      stages.map(({ position }) => position).sort((a, b) => a - b),
    );
  }
  expect(users.length).toBe(simulator.company.users.size);
  const used = String(simulator.company.stories.singleDeal.pipelineId);
  const gone = pipelines.find(({ crmId }) => crmId !== used);
  if (!gone) throw new Error("there is one pipeline only");
  const thresholds = [
    { code: "GHOSTED", days: 5, pipelineId: gone.id },
    { code: "GHOSTED", days: 6, stageId: gone.stages[0]?.id ?? "" },
    { code: "GHOSTED", days: 8 },
  ];
  const { settings } = await setQuiet(service, { thresholds }, as);
  for (const { crmId } of gone.stages) simulator.control.remove("stage", Number(crmId));
  simulator.control.remove("pipeline", Number(gone.crmId));
  dataOf(await service.ask("mutation { requestSync(kind: RECONCILE) { __typename } }", {}, as));
  await syncEnds(service, as);
  const { version, thresholds: left } = await rejudged(service, as);
  expect(left).toEqual([{ scope: "ALL", pipeline: null, stage: null, code: "GHOSTED", days: 8 }]);
  expect(version).toBe(settings?.version);
  await setQuiet(service, { thresholds: [{ code: "GHOSTED", days: 8 }], version }, as);
  expect((await quietSettings(service, as)).version).not.toBe(version);
  const [stored] = await database.query<{ thresholds: object[] }>(
    "SELECT thresholds FROM quiet_settings WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = 'deleted')",
  );
  expect(stored?.thresholds).toEqual([{ scope: "ALL", crmId: 0, code: "GHOSTED", days: 8 }]);
});
