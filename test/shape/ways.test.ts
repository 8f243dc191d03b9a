import { type Simulator, startSimulator } from "../../simulator";
import { createTestDatabase, type TestDatabase } from "../support/database";
import { filesRunIn } from "../support/files-run";
import { type Service, startService } from "../support/service";
import { connect, dataOf, recordMeeting, syncEnds } from "../support/stories";

/** How many files a newcomer reads to follow one thing that the service does. */

const MOST_FILES = 15;

let simulator: Simulator;
let database: TestDatabase;
let service: Service;

beforeAll(async () => {
  [simulator, database] = await Promise.all([startSimulator({ deals: 10 }), createTestDatabase()]);
  service = await startService(simulator, database);
  await connect(service, simulator);
  await syncEnds(service);
  // What a worker does meanwhile by itself is nobody's way.
  await service.stop();
  service = await startService(simulator, database, { roles: new Set(["api"]) });
});
afterAll(async () => {
  await service.stop();
  await Promise.all([simulator.stop(), database.drop()]);
});

/** Files of a thing done for the second time, `platform` aside, without those that any operation and any call to the CRM cross. */
async function wayOf(work: () => Promise<unknown>): Promise<string[]> {
  const any = async () => {
    dataOf(await service.ask("{ viewer { userId } }"));
    dataOf(await service.ask("{ connection { fields(entity: DEAL) { key } } }"));
  };
  await any();
  const crossed = new Set(await filesRunIn(any));
  await work();
  const files = await filesRunIn(work);
  return files.filter((file) => !file.startsWith("platform/") && !crossed.has(file));
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
  expect([way.length <= MOST_FILES, way]).toEqual([true, way]);
});
