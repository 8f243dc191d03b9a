import "reflect-metadata";
import { randomUUID } from "node:crypto";
import { MEETING_ORDERS, readMeetings } from "../../src/briefing/lists/contact-and-meeting-lists";
import { upsertMeetings } from "../../src/briefing/meeting-rows";
import { asApplication } from "../../src/database/application-role";
import { createDataSource, migrate } from "../../src/database/data-source";
import { Database } from "../../src/database/database";
import { entities } from "../../src/entities";
import { findPerson } from "../../src/operator/person";
import { Secret } from "../../src/platform/keyring";
import { onServer, serverUrl } from "../support/database";

// Seen red: a database whose letters are ASCII, as several operators make them, found "łukasik" nowhere; what a Mac wrote was not found as others write it;
// nobody was told that an erasure there left "АННА" standing, and took "Анна" out of "Марианна".

const NAME = `letters_${randomUUID().replaceAll("-", "")}`;
beforeAll(() => onServer(`CREATE DATABASE ${NAME} TEMPLATE template0 ENCODING 'UTF8' LOCALE_PROVIDER libc LOCALE 'C'`));
afterAll(() => onServer(`DROP DATABASE ${NAME} WITH (FORCE)`));

test("a meeting is found in whatever case, also where the database knows no other letters than ASCII; and no person by halves", async () => {
  const url = new Secret(serverUrl(NAME));
  await migrate(await asApplication(url));
  const dataSource = await createDataSource({ url: await asApplication(url), entities }).initialize();
  try {
    const db = new Database(dataSource);
    const scope = db.tenant(await db.idOf("acme"));
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
    await dataSource.destroy();
  }
});
