import { type Simulator, startSimulator } from "../../simulator";
import { createTestDatabase, type TestDatabase } from "../support/database";
import { notesWith, posts, writeNote } from "../support/notes";
import { type Service, startService } from "../support/service";
import { connect, dataOf, recordMeeting, syncEnds } from "../support/stories";

let simulator: Simulator;
let database: TestDatabase;
let service: Service;

beforeAll(async () => {
  [simulator, database] = await Promise.all([startSimulator({ deals: 50 }), createTestDatabase()]);
  service = await startService(simulator, database);
  await connect(service, simulator);
  await syncEnds(service);
});
afterAll(async () => {
  await service.stop();
  await Promise.all([simulator.stop(), database.drop()]);
});
beforeEach(() => {
  simulator.log.clear();
  simulator.control.clearFaults();
});

test("a note lands on the meeting's deal, written by the authorizing user, and is readable here at once", async () => {
  const { email, dealId, ownerId } = simulator.company.stories.singleDeal;
  const meeting = await recordMeeting(service, [email]);
  const write = await writeNote(service, { meetingId: meeting.id, content: "# Summary\n\nThey *like* it." });
  expect(write).toMatchObject({ entity: "DEAL", state: "WRITTEN", error: null, requestedBy: "anna" });
  expect(write.target?.__typename).toBe("Deal");
  expect(write.meeting).toEqual({ id: meeting.id, title: "Next steps" });

  const [note, ...others] = notesWith(simulator, write.reference);
  expect(others).toEqual([]);
  expect(note).toMatchObject({ id: Number(write.crmNoteId), deal_id: dealId, user_id: ownerId });
  expect(note?.content).toBe(`<h1>Summary</h1>\n<p>They <em>like</em> it.</p>\n<p>Ref. ${write.reference}</p>`);
  const sent = posts(simulator);
  expect(sent.map(({ body }) => Object.keys(body as object).sort())).toEqual([["content", "deal_id"]]);

  const query = `query ($id: ID!) { node(id: $id) { ... on Deal { recentNotes(first: 1) { crmId text author { email } } } } }`;
  const { node } = dataOf(await service.ask<{ node: { recentNotes: object[] } }>(query, { id: write.target?.id }));
  expect(node.recentNotes).toMatchObject([{ crmId: write.crmNoteId }]);
});
