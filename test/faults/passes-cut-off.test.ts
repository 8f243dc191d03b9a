import type { LogEntry } from "../../simulator";
import { startProgram } from "../support/processes";
import { environmentFor, startService } from "../support/service";
import { countStatements, transactions } from "../support/statements";
import { connect, recordMeeting, syncEnds, until } from "../support/stories";
import { CHANGING, isFirstPage, LISTS, type ListName, SyncWorld } from "../support/sync-world";
import { makeStale } from "../support/tokens";

const TIMEOUT_MS = 180_000;
/** Longer than a run's turn, shorter than its lease. */
const OVER_A_TURN_MS = 16_000;
const AS = { tenant: "acme" };
const NAMES = Object.keys(LISTS) as ListName[];

async function withWorld(
  options: Parameters<typeof SyncWorld.start>,
  story: (world: SyncWorld) => Promise<void>,
): Promise<void> {
  const world = await SyncWorld.start(...options);
  try {
    for (const list of CHANGING) world.fill(list, 1_020);
    await story(world);
  } finally {
    await world.stop();
  }
}

const pageOf = ({ path, query }: LogEntry) => JSON.stringify([path, query]);
/** Pages that the CRM has answered more than once. */
function paidTwice(world: SyncWorld, lists: readonly ListName[] = NAMES): number {
  const answered = lists.flatMap((list) => world.asked(list)).filter(({ status }) => status === 200);
  return answered.length - new Set(answered.map(pageOf)).size;
}

test(
  "a run whose turn ends behind every page goes on from there, and asks for no page twice",
  () =>
    withWorld([], async (world) => {
      await world.connect({ tenant: "honest" });
      const honest = world.simulator.log.all().filter(({ path }) => !path.endsWith("/users/me")).length;
      world.simulator.log.clear();
      const headers = () => {
        world.time.aheadMs += OVER_A_TURN_MS;
        return {};
      };
      for (const list of NAMES)
        world.simulator.control.fail({ match: LISTS[list].path, with: { kind: "headers", headers } });
      expect(await world.connect(AS)).toMatchObject({ state: "SUCCEEDED", gaps: [] });
      expect(world.simulator.log.of("GET", /\/users\/me$/).length).toBeGreaterThan(10);
      expect(paidTwice(world)).toBe(0);
      expect(world.simulator.log.all().filter(({ path }) => !path.endsWith("/users/me"))).toHaveLength(honest);
      world.simulator.control.clearFaults();
      await world.isExact(AS);
    }),
  TIMEOUT_MS,
);

test(
  "workers killed at every later page leave their passes to the next, which repeat a page each at most",
  () =>
    withWorld([{}, { roles: new Set(["api"]) }], async (world) => {
      const environment = { ...environmentFor(world.simulator), DATABASE_URL: world.database.url.reveal() };
      await connect(world.api, world.simulator, AS);
      world.simulator.log.clear();
      let kills = 0;
      for (const list of CHANGING) {
        const isLater = (query: LogEntry["query"]) => !isFirstPage(query);
        const answer = world.simulator.control.fail({
          match: LISTS[list].path,
          where: isLater,
          with: { kind: "hang" },
        });
        const hangs = () => world.asked(list).some(({ query, status }) => status === 0 && isLater(query));
        const worker = startProgram("src/main.js", { ...environment, ROLES: "worker", LOG_LEVEL: "info" });
        await until("a later page is asked for", async () => hangs());
        worker.child.kill("SIGKILL");
        await worker.ended;
        kills += 1;
        answer();
        // What time would do: a lease is over, and an unclaimed run is an orphan.
        await world.database.query(
          "UPDATE sync_run SET lease_until = now() - interval '1 hour' WHERE state = 'RUNNING'",
        );
      }
      const worker = startProgram("src/main.js", { ...environment, ROLES: "worker", LOG_LEVEL: "info" });
      expect(await world.runEnds(AS)).toMatchObject({ state: "SUCCEEDED", gaps: [] });
      expect(paidTwice(world)).toBeLessThanOrEqual(kills);
      await world.isExact(AS);
      worker.child.kill("SIGTERM");
      await worker.ended;
    }),
  TIMEOUT_MS,
);

test(
  "lists that the company's tokens stop go on from there when there are more, and no page is paid twice",
  () =>
    withWorld([{ dailyTokens: 30_000 }], async (world) => {
      const { control } = world.simulator;
      // The floor is a tenth: a few pages are left.
      control.otherAppsSpend(30_000 - 3_000 - 130);
      expect(await world.connect(AS)).toMatchObject({ state: "FAILED", error: { code: "BUDGET_LOW" } });
      const begun = await world.database.query("SELECT 1 FROM sync_pass WHERE cursor IS NOT NULL");
      expect(begun).toHaveLength(1);
      control.endDay();
      world.passMinutes(24 * 60);
      expect(await world.sync(AS)).toMatchObject({ state: "SUCCEEDED", gaps: [] });
      // The small ones are read whole by every run that is asked for.
      expect(paidTwice(world, CHANGING)).toBe(0);
      await world.isExact(AS);
    }),
  TIMEOUT_MS,
);

// Seen red: by the second turn nothing said that the list was begun days ago, and the run succeeded without what had changed since.
test(
  "a first list that a later run takes up, and reads in more than one turn, has what changed since it was begun",
  () =>
    withWorld([], async (world) => {
      const { control, log } = world.simulator;
      const { path: match } = LISTS.PERSONS;
      const isLater = (query: LogEntry["query"]) => !isFirstPage(query) && !query.updated_since;
      const end = control.fail({ match, where: isLater, with: { kind: "throttle" } });
      expect(await world.connect(AS)).toMatchObject({ state: "FAILED", error: { code: "RATE_LIMITED" } });
      end();
      world.passMinutes(2 * 24 * 60);
      control.change("person", world.simulator.company.stories.singleDeal.personId, { name: "Named Since" });
      const headers = () => {
        world.time.aheadMs += OVER_A_TURN_MS;
        return {};
      };
      control.fail({ match, where: isLater, times: 1, with: { kind: "headers", headers } });
      log.clear();
      expect(await world.sync(AS)).toMatchObject({ state: "SUCCEEDED", gaps: [] });
      expect(log.of("GET", /\/users\/me$/).length).toBeGreaterThan(1);
      expect(world.asked("PERSONS").map(({ query }) => "updated_since" in query)).toEqual([false, false, true]);
      await world.isExact(AS);
    }),
  TIMEOUT_MS,
);

// Seen red with the walk gone on from its checkpoint.
test(
  "a walk that was cut off begins anew where the user authorizes anew, who may be shown other records by now",
  () =>
    withWorld([], async (world) => {
      const { control, log } = world.simulator;
      await world.connect(AS);
      const where = (query: LogEntry["query"]) => !isFirstPage(query);
      const end = control.fail({ match: LISTS.PERSONS.path, where, with: { kind: "throttle" } });
      expect(await world.sync(AS, "RECONCILE")).toMatchObject({ state: "FAILED" });
      end();
      control.revoke(world.userId);
      await makeStale(world.database, AS.tenant);
      expect(await world.sync(AS)).toMatchObject({ state: "FAILED" });
      log.clear();
      expect(await world.connect(AS)).toMatchObject({ state: "SUCCEEDED", gaps: [] });
      const walked = world.asked("PERSONS").filter(({ query }) => !query.updated_since);
      expect(walked.slice(0, 2).map(({ query }) => isFirstPage(query))).toEqual([true, false]);
      await world.isExact(AS);
    }),
  TIMEOUT_MS,
);

// Seen red, both ways: only a walk's own pages said of what they show that it is there, and the second walk had passed by already.
test.each(["what changed", "a look at a matched record"])(
  "a record that is back after both walks have passed it by stays, where %s shows it before the second one goes on",
  (way) =>
    withWorld([], async (world) => {
      const { control } = world.simulator;
      await world.connect(AS);
      const { personId, email } = world.simulator.company.stories.singleDeal;
      if (way !== "what changed") await recordMeeting(world.api, [email], {}, AS);
      world.passMinutes(20);
      control.hide("person", personId);
      const where = ({ cursor, updated_since, ids }: LogEntry["query"]) => Boolean(cursor && !updated_since && !ids);
      const laterPages = Math.ceil(control.visibleTo(world.userId).persons.length / 500) - 1;
      // The second walk is cut off behind its first page.
      control.fail({ match: LISTS.PERSONS.path, where, after: laterPages, with: { kind: "throttle" } });
      expect(await world.sync(AS, "RECONCILE")).toMatchObject({ error: { code: "RATE_LIMITED" } });
      expect(await world.database.query("SELECT walk FROM sync_pass WHERE resource = 'PERSONS'")).toEqual([
        { walk: 2 },
      ]);
      control.clearFaults();
      control.show("person", personId);
      if (way === "what changed") control.change("person", personId, {});
      // The next round through what is matched.
      else world.passMinutes(24 * 60);
      expect(await world.sync(AS)).toMatchObject({ state: "SUCCEEDED", gaps: [] });
      await world.isExact(AS);
    }),
  TIMEOUT_MS,
);

/**
 * What a page may take besides BEGIN, COMMIT and the word to watchers, which few have: the copy's lock, the lease, the rows,
 * what hangs on persons, deals or users, and where the pass stands. Nothing is judged where no deal is matched.
 */
const MOST_A_PAGE = 5;
/** Their days are what deals will be judged by. */
const MOST_A_PAGE_OF_STAGES = 10;

test(
  "a page of a first sync takes five statements at most, and a word to watchers",
  () =>
    withWorld([{}, { roles: new Set(["api"]) }], async (world) => {
      const counter = await countStatements(world.database.url);
      await connect(world.api, world.simulator, AS);
      const worker = await startService(world.simulator, world.database, {
        databaseUrl: counter.url,
        sync: { intervalMs: 0, reconcileIntervalMs: 0 },
      });
      const sent = await counter.sentDuring(() => syncEnds(world.api, AS));
      await worker.stop();
      await counter.close();
      const pages = transactions(sent).filter((statements) =>
        statements.some(({ sql }) => /UPDATE sync_pass SET|DELETE FROM sync_pass/.test(sql)),
      );
      const counted = pages.map((statements) => {
        const list = NAMES.find((name) => statements.some(({ values }) => values.includes(name)));
        const texts = statements.map(({ sql }) => sql.trim().slice(0, 60)).filter((sql) => !sql.includes("pg_notify"));
        return { list, statements: texts.length, texts };
      });
      expect(counted.length).toBeGreaterThanOrEqual(CHANGING.length * 3);
      const most = (list?: string) => (list === "STAGES" ? MOST_A_PAGE_OF_STAGES : MOST_A_PAGE);
      expect(counted.filter(({ list, statements }) => statements > most(list))).toEqual([]);
    }),
  TIMEOUT_MS,
);
