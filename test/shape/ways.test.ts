import { MINUTE_MS } from "../../src/platform/clock";
import { useFilesRun } from "../support/files-run";
import type { Service } from "../support/service";
import { connect, dataOf, recordMeeting, syncEnds, until } from "../support/stories";
import { useCrm } from "../support/world";

/** How many files a newcomer reads to follow one thing that the service does. */
const MOST_FILES = { note: 15, briefing: 17, connect: 15, page: 15 };

let aheadMs = 0;
const { simulator, world } = useCrm({ deals: 10, clock: () => new Date(Date.now() + aheadMs) });
/** Its activities are six pages. */
const large = useCrm({ deals: 1_300 });
let service: Service;
const filesRunIn = useFilesRun();

beforeAll(async () => {
  const first = await world.startService();
  await connect(first, simulator);
  await syncEnds(first);
  // What a worker does meanwhile by itself is nobody's way.
  await first.stop();
  service = await world.startService({ roles: ["api"] });
});

const ask = async () => {
  dataOf(await service.ask("{ viewer { userId connectRefusal } }"));
  // Within a minute the list that was read is shown, and the CRM not called.
  aheadMs += MINUTE_MS;
  dataOf(await service.ask("{ connection { fields(entity: DEAL) { key } } }"));
};

/** What a timer of the service does meanwhile does not happen each time. */
const TIMES = 3;

/** The files that run each time. */
async function filesOf(work: () => Promise<unknown>): Promise<string[]> {
  await work();
  let files = await filesRunIn(work);
  for (let time = 1; time < TIMES; time += 1) {
    const again = new Set(await filesRunIn(work));
    files = files.filter((file) => again.has(file));
  }
  return files;
}

/** Files of a thing done again, `platform` aside, without those that any operation and any call to the CRM cross. */
async function wayOf(work: () => Promise<unknown>, any: () => Promise<unknown> = ask): Promise<string[]> {
  const crossed = new Set(await filesOf(any));
  return (await filesOf(work)).filter((file) => !file.startsWith("platform/") && !crossed.has(file));
}

const WRITE_NOTE = `mutation ($input: WriteNoteInput!) { writeNote(input: $input) {
  ... on WriteNoteSuccess { write { state } } ... on Refusal { code } } }`;

test("a note crosses few files of its own", async () => {
  const { id: meetingId } = await recordMeeting(service, [simulator.company.stories.singleDeal.email]);
  let notes = 0;
  const way = await wayOf(async () => {
    const input = { meetingId, content: "Agreed.", idempotencyKey: `way-${++notes}` };
    expect(dataOf(await service.ask(WRITE_NOTE, { input }))).toEqual({ writeNote: { write: { state: "WRITTEN" } } });
  });
  expect(way).toContain("writeback/notes.ts");
  expect([way.length <= MOST_FILES.note, way]).toEqual([true, way]);
});

const BRIEFING = `query ($id: ID!) { briefing(meetingId: $id) { asOf gaps { code } deal { title stage { name } owner { name }
  quiet { verdict reasons { message } } recentNotes { html } recentActivities { subject } } persons { name } } }`;

test("a briefing crosses few files of its own", async () => {
  const { id } = await recordMeeting(service, [simulator.company.stories.singleDeal.email]);
  const way = await wayOf(async () => dataOf(await service.ask(BRIEFING, { id })));
  expect(way).toContain("briefing/meeting-rows.ts");
  expect([way.length <= MOST_FILES.briefing, way]).toEqual([true, way]);
});

test("a connect crosses few files of its own", async () => {
  let tenants = 0;
  const way = await wayOf(() => connect(service, simulator, { tenant: `way-${++tenants}` }));
  expect(way).toContain("connections/grants.ts");
  expect([way.length <= MOST_FILES.connect, way]).toEqual([true, way]);
});

const ACTIVITIES = "/api/v2/activities";

const PAGE = 500;

/** Holds the answer to the next page of activities, however often it is asked for. @returns lets it go */
const holdNextPage = () =>
  large.simulator.control.fail({
    match: ACTIVITIES,
    where: ({ cursor }) => cursor !== undefined,
    with: { kind: "hang" },
  });

// What its files are compared with is looked at before the first page is held: the CRM is waited for half a minute at most.
test("a page of a sync crosses few files of its own, from its answer to its commit", async () => {
  let letGo: (() => void) | null = null;
  let pages = 0;
  const way = await wayOf(async () => {
    const before = letGo;
    letGo = holdNextPage();
    pages += 1;
    if (before) before();
    else await connect(await large.world.startService(), large.simulator);
    await until("the page is committed", async () => {
      const sql = "SELECT 1 FROM sync_step WHERE resource = 'ACTIVITIES' AND fetched >= $1";
      return (await large.database.query(sql, [pages * PAGE])).length > 0;
    });
  });
  expect(way).toContain("sync/walk.ts");
  expect([way.length <= MOST_FILES.page, way]).toEqual([true, way]);
}, 120_000);
