import "reflect-metadata";
import { MEETING_ORDERS, readMeetings } from "../../src/briefing/lists/contact-and-meeting-lists";
import { upsertMeetings } from "../../src/briefing/meeting-rows";
import { asApplication } from "../../src/database/application-role";
import { migrate } from "../../src/database/data-source";
import { distribute } from "../../src/operator/commands";
import { findPerson } from "../../src/operator/person";
import { createTestDatabase, workers } from "../support/database";

// Seen red: a database whose letters are ASCII, as several operators make them, found "łukasik" nowhere; what a Mac wrote was not found as others write it;
// nobody was told that an erasure there left "АННА" standing, and took "Анна" out of "Марианна".
// A cluster's coordinator was asked for what its nodes know.

test("a meeting is found in whatever case, also where the database knows no other letters than ASCII; and no person by halves", async () => {
  const database = await createTestDatabase({ plain: true });
  try {
    await migrate(await asApplication(database.url));
    if (workers().length > 0) await distribute(database.url);
    const scope = database.scope(await database.tenantId("acme"));
    const meeting = {
      title: "ANNA ŁUKASIK, Zoe\u0308 and Zoé",
      startsAt: new Date(),
      endsAt: null,
      recordedBy: "u",
      recordedAt: new Date(),
    };
    await upsertMeetings(scope, [{ externalId: "a", ownerEmail: "ŻANETA@seller.example", attendees: [], ...meeting }]);
    const any = { from: null, to: null, status: null, ownerEmail: null, includeCancelled: false, search: null };
    const page = { order: MEETING_ORDERS.STARTS_AT_DESC, first: 5, after: null };
    for (const filter of [
      { search: "łukasik" },
      { ownerEmail: "żaneta@Seller.example" },
      { search: "ukasik" },
      { search: "ZOË" },
      { search: "zoe\u0301" },
    ])
      expect((await readMeetings(scope, { ...any, ...filter }, page)).rows).toHaveLength(1);
    await expect(findPerson(scope, "anna@buyer.example")).rejects.toThrow(
      "LC_CTYPE is C, so names are not found: move it",
    );
  } finally {
    await database.drop();
  }
});
