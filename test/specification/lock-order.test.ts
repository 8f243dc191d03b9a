import { writeNote } from "../support/notes";
import { countStatements, transactions } from "../support/statements";
import { recordMeeting, syncAgain } from "../support/stories";
import { useCrm } from "../support/world";

let aheadMs = 0;
const clock = () => new Date(Date.now() + aheadMs);
const { world, simulator, database } = useCrm({ deals: 10, clock });

// Seen red: a page wrote its notes first. One that was written at this moment waited for the page, and the page for it:
// PostgreSQL ended one of the two, and who had written was told of a fault.
test("whoever writes a note and a sync that reads it lock the receipt first, and then the note", async () => {
  const counter = await countStatements(database.url);
  world.cleanup(counter.close);
  const service = await world.startService({ config: { databaseUrl: counter.url }, connected: ["acme"] });
  const { id: meetingId } = await recordMeeting(service, [simulator.company.stories.singleDeal.email]);
  const orders = async (work: () => Promise<unknown>) =>
    transactions(await counter.sentDuring(work))
      .map((statements) => statements.map(({ sql }) => /UPDATE "?note_write|INSERT INTO note /.exec(sql)?.[0] ?? ""))
      .map((locked) => locked.filter(Boolean).map((text) => text.split(/[ "]/).at(-1) || "note"))
      .filter((locked) => new Set(locked).size > 1);
  const first = ["note_write", "note"];
  expect(await orders(() => writeNote(service, { meetingId }))).toEqual([first]);
  aheadMs += 3_600_000;
  expect(await orders(() => syncAgain(service, database))).toEqual([first]);
}, 60_000);
