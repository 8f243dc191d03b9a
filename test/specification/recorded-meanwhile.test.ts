import { Client } from "pg";
import { connect, noJobIsDue, recordMeeting, syncAgain, syncEnds, until } from "../support/stories";
import { useService } from "../support/world";

// Seen red: the copy was read, and held only afterwards. What a sync brought in between, and had matched again before the recording was
// in sight, was matched by nobody until a later run changed something.

const { world, simulator, database, service } = useService({ deals: 10, connected: ["acme"] });
let holder: Client;
beforeAll(async () => {
  holder = new Client({ connectionString: database.url.reveal() });
  await holder.connect();
  world.cleanup(() => holder.end());
});

test.each([
  [
    "the sync that brings its attendee",
    { tenant: "acme" },
    async (address: string) => {
      const { personId } = simulator.company.stories.singleDeal;
      const { emails = [] } = simulator.company.persons.get(personId) ?? {};
      simulator.control.change("person", personId, {
        emails: [...emails, { value: address, primary: false, label: "work" }],
      });
      await syncAgain(service, database);
    },
  ],
  [
    "the first connect and sync",
    { tenant: "newcomer" },
    async () => {
      await connect(service, simulator, { tenant: "newcomer" });
      await syncEnds(service, { tenant: "newcomer" });
      await noJobIsDue(database);
    },
  ],
])(
  "a meeting that is recorded beside %s is matched by it",
  async (_, as, sync) => {
    const address = as.tenant === "acme" ? "newcomer@fresh-domain.example" : simulator.company.stories.singleDeal.email;
    const externalId = `beside-${as.tenant}`;
    await noJobIsDue(database);
    await holder.query("BEGIN");
    await holder.query("LOCK TABLE meeting_match IN SHARE MODE"); // reads pass, the match that is made waits
    const recording = recordMeeting(service, [address], { externalId }, as);
    await until("the recording waits", async () => (await database.lockWaits()).length > 0);
    let isOver = false;
    const syncing = sync(address).finally(() => {
      isOver = true;
    });
    await until("the sync is over, or waits", async () => isOver || (await database.lockWaits()).length > 1);
    await holder.query("COMMIT");
    await recording;
    await syncing;
    await noJobIsDue(database);
    const matched = `SELECT match_status AS status FROM meeting_attendee a JOIN meeting m ON m.id = a.meeting_id WHERE external_id = $1`;
    expect(await database.query(matched, [externalId])).toEqual([{ status: "MATCHED" }]);
  },
  60_000,
);
