import type { Fault } from "../../simulator";
import { CrmApi, type CrmPageRequest } from "../../src/crm/api";
import { CrmHttp } from "../../src/crm/http";
import { CrmOAuth } from "../../src/crm/oauth";
import type { CrmNote } from "../../src/crm/parsing/records";
import { HOUR_MS } from "../../src/platform/clock";
import { readConfig } from "../../src/platform/config";
import { copiedIds, visibleIds } from "../support/copy";
import { createTestDatabase } from "../support/database";
import { startDays } from "../support/days";
import { startProgram } from "../support/processes";
import { environmentFor } from "../support/service";
import { connect, syncEnds, until } from "../support/stories";
import { CHANGING, isFirstPage, LISTS, type ListName, SyncWorld } from "../support/sync-world";
import { useStarted } from "../support/world";

const TIMEOUT_MS = 180_000;
/** How long a process may take to end. */
const ENDS_WITHIN_MS = 20_000;
const PAGED = ["PIPELINES", "STAGES", ...CHANGING] as const;
/** Whatever their failure, the run goes on without them. */
const SMALL = new Set<ListName>(["PIPELINES", "STAGES"]);

const world = useStarted(() => SyncWorld.start());
beforeAll(() => {
  for (const list of CHANGING) world.fill(list, 1_020);
});
beforeEach(() => world.beginAnew());

const allAre = (fault: Fault, after = 0) => {
  for (const list of PAGED) {
    world.simulator.control.fail({ match: LISTS[list].path, after: SMALL.has(list) ? 0 : after, with: fault });
  }
};
const asked = () => Object.fromEntries(PAGED.map((list) => [list, world.asked(list).length]));

test.each([
  ["again", 0],
  ["again", 1],
  ["empty", 0],
  ["empty", 1],
  ["circle", 0],
] as const)(
  "lists that show %s from page %i on end the walks, in the first run and in later ones, and are mended by one run",
  async (kind, after) => {
    const as = { tenant: `${kind} ${after}` };
    await world.connect({ tenant: `honest beside ${as.tenant}` });
    const honest = asked();
    world.simulator.log.clear();
    allAre({ kind }, after);
    const isSaid = {
      state: "FAILED",
      error: { code: "CRM_ANSWER_UNREADABLE" },
      gaps: PAGED.map((resource) => ({ resource, code: "CRM_ANSWER_UNREADABLE" })).sort(byResource),
    };
    const isBounded = () => {
      for (const [list, requests] of Object.entries(asked())) {
        expect([list, requests <= 2 * (honest[list] ?? 0)]).toEqual([list, true]);
        expect([list, requests > 0]).toEqual([list, true]);
      }
    };
    expect(await world.connect(as)).toMatchObject(isSaid);
    isBounded();
    world.simulator.log.clear();
    world.simulator.control.clearFaults();
    allAre({ kind }, after);
    expect(await world.sync(as)).toMatchObject(isSaid);
    isBounded();
    world.simulator.control.clearFaults();
    expect(await world.sync(as)).toMatchObject({ state: "SUCCEEDED", gaps: [] });
    await world.isExact(as);

    for (const list of CHANGING) if (list !== "DEALS") world.touch(list);
    world.simulator.log.clear();
    world.passMinutes(10);
    world.touch("NOTES");
    allAre({ kind });
    expect((await world.sync(as)).state).toBe("FAILED");
    isBounded();
    world.simulator.control.clearFaults();
    expect(await world.sync(as)).toMatchObject({ state: "SUCCEEDED", gaps: [] });
    await world.isExact(as);
  },
  TIMEOUT_MS,
);

test(
  "a list without an end is begun anew ever more rarely, at once when somebody asks, and is mended all the same",
  async () => {
    const database = await createTestDatabase();
    const days = await startDays(database, { deals: 60, dailyTokens: 10_000_000 });
    const { service, simulator, clock } = days;
    try {
      for (let count = 0; count < 520; count += 1) simulator.control.add("person");
      const asked = () => simulator.log.of("GET", LISTS.PERSONS.path).filter(({ query }) => !query.ids).length;
      const { path: match } = LISTS.PERSONS;
      const end = simulator.control.fail({ match, where: (query) => !isFirstPage(query), with: { kind: "again" } });
      await connect(service, simulator);
      await days.until(new Date(clock().getTime() + 20 * HOUR_MS));
      const inVain = asked();
      expect(inVain).toBeGreaterThan(2 * 3);
      expect(inVain).toBeLessThanOrEqual(2 * 10);
      await service.ask("mutation { requestSync(kind: INCREMENTAL) { __typename } }");
      expect(await syncEnds(service)).toMatchObject({ state: "FAILED", error: { code: "CRM_ANSWER_UNREADABLE" } });
      expect(asked()).toBe(inVain + 2);
      end();
      await days.until(new Date(clock().getTime() + 24 * HOUR_MS));
      expect(await copiedIds(database)).toEqual(visibleIds(simulator, simulator.company.stories.singleDeal.ownerId));
    } finally {
      await days.stop();
      await database.drop();
    }
  },
  TIMEOUT_MS,
);

const byResource = (one: { resource: string }, other: { resource: string }) => (one.resource < other.resource ? -1 : 1);

describe("what a user's request walks through", () => {
  let api: CrmApi;
  let http: CrmHttp;
  beforeEach(async () => {
    const { simulator } = world;
    http = new CrmHttp();
    const oauth = new CrmOAuth(http, readConfig(environmentFor(simulator)).crm);
    const { accessToken } = await oauth.exchangeCode(simulator.control.approve());
    const token = async () => accessToken;
    api = new CrmApi({ http, baseUrl: simulator.url, tokens: { current: token, renewed: token } });
  });
  afterEach(() => http.close());

  test.each(["again", "empty", "circle"] as const)("a list of fields that shows %s ends", async (kind) => {
    world.simulator.control.fail({ match: /Fields$/, with: { kind } });
    for (const entity of ["DEAL", "PERSON", "ORGANIZATION"] as const) {
      await expect(api.fields(entity)).rejects.toMatchObject({ code: "UNREADABLE" });
    }
    expect(world.simulator.log.of("GET", /Fields$/).length).toBeLessThanOrEqual(3 * 2);
  });

  test.each(["again", "empty", "circle"] as const)("the notes of a record that show %s end", async (kind) => {
    const { dealId } = world.simulator.company.stories.singleDeal;
    for (let count = 0; count < 520; count += 1) world.simulator.control.add("note", { deal_id: dealId });
    const walk = async () => {
      const found: CrmNote[] = [];
      let cursor: CrmPageRequest["cursor"] = null;
      do {
        const page: Awaited<ReturnType<CrmApi["notesOf"]>> = await api.notesOf(
          { entity: "DEAL", id: dealId },
          { cursor },
        );
        found.push(...page.records);
        cursor = page.next;
      } while (cursor !== null);
      return found;
    };
    expect(new Set((await walk()).map(({ id }) => id)).size).toBeGreaterThan(520);
    const honest = world.asked("NOTES").length;
    world.simulator.log.clear();
    world.simulator.control.fail({ match: LISTS.NOTES.path, with: { kind } });
    await expect(walk()).rejects.toMatchObject({ code: "UNREADABLE" });
    expect(world.asked("NOTES").length).toBeLessThanOrEqual(2 * honest);
  });
});

async function stopsAndGoesOn(own: SyncWorld, match: RegExp, as: { tenant: string }): Promise<void> {
  const environment = { ...environmentFor(own.simulator), DATABASE_URL: own.database.url.reveal() };
  const worker = () => startProgram("src/main.js", { ...environment, ROLES: "worker", LOG_LEVEL: "info" });
  await connect(own.api, own.simulator, as);
  const answer = own.simulator.control.fail({ match, with: { kind: "hang" } });
  own.simulator.log.clear();
  const first = worker();
  await until("the CRM is asked", async () => own.simulator.log.of("GET", match).length > 0);
  const began = Date.now();
  first.child.kill("SIGTERM");
  expect(await first.ended).toBe(0);
  expect(Date.now() - began).toBeLessThan(ENDS_WITHIN_MS);
  answer();
  const second = worker();
  expect(await own.runEnds(as)).toMatchObject({ state: "SUCCEEDED", gaps: [] });
  await own.isExact(as);
  second.child.kill("SIGTERM");
  expect(await second.ended).toBe(0);
}

describe("SIGTERM", () => {
  const HANGING: [string, RegExp][] = [
    ["a page of a list", LISTS.PERSONS.path],
    ["the users", LISTS.USERS.path],
    ["a deal's participants", /\/participants$/],
    ["whose the token is", /\/users\/me$/],
  ];
  test.each(HANGING)(
    "ends the process while %s is not answered, and another goes on with the run",
    async (what, match) => {
      const own = await SyncWorld.start({ deals: 60 }, { roles: new Set(["api"]) });
      try {
        await stopsAndGoesOn(own, match, { tenant: `hangs: ${what}` });
      } finally {
        await own.stop();
      }
    },
    TIMEOUT_MS,
  );
});
