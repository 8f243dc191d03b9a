import type { Actor } from "../../src/auth/actor";
import { Meetings } from "../../src/briefing/meetings";
import { Rematching } from "../../src/briefing/rematch";
import { KeepOut } from "../../src/connections/keep-out";
import { Database } from "../../src/database/database";
import { Keyring } from "../../src/platform/keyring";
import { createLogger } from "../../src/platform/logger";
import { seller } from "../support/notes";
import { recordMeeting } from "../support/stories";
import { useService } from "../support/world";

let actor: Actor;

const { world, simulator, database, service } = useService({ deals: 60, connected: ["acme"] });
beforeAll(async () => {
  actor = await seller(database);
});

/** Counts what goes to the database while `work` is done, but for the one word to watchers where a deal is judged for the first time. */
async function statements(work: (db: Database) => Promise<unknown>): Promise<number> {
  let count = 0;
  const counted = new Database(database.dataSource, {
    observe: (text, run) => {
      if (!text.startsWith("SELECT pg_notify")) count += 1;
      return run();
    },
  });
  await work(counted);
  return count;
}

const record = (attendees: string[]) => (db: Database) =>
  new Meetings(
    db,
    new KeepOut(new Keyring(world.config.encryptionKeys)),
    () => new Date(),
    createLogger("silent"),
  ).record(actor, {
    externalId: "counted",
    title: "Counted",
    startsAt: new Date(),
    endsAt: null,
    ownerEmail: "anna@seller.example",
    attendees: attendees.map((email) => ({ email, name: null })),
  });

test("the number of statements is the same for a meeting with two attendees and with four hundred", async () => {
  const everyone = [...simulator.company.persons.values()]
    .flatMap(({ emails }) => emails.map(({ value }) => value))
    .filter((value) => value.trim());
  await statements(record(everyone.slice(0, 2)));
  // Our first mail to a deal's people is kept once, when it is first seen.
  await statements(record(everyone.slice(0, 400)));
  await statements(record(everyone.slice(0, 2)));
  const few = await statements(record(everyone.slice(0, 2)));
  const many = await statements(record(everyone.slice(0, 400)));
  expect(few).toBeGreaterThan(8);
  expect(few).toBeLessThanOrEqual(20);
  expect(many).toBe(few);
  // What was told of deals that are matched no more is kept by two more, however many they are.
  expect(await statements(record(everyone.slice(0, 2)))).toBe(few + 2);
});

test("looking through meetings that a sync does not touch costs one set of statements for fifty of them", async () => {
  const rematch = (db: Database) =>
    new Rematching(db, () => new Date(), createLogger("silent")).run(actor.tenantId, new AbortController().signal);
  const forget = () =>
    database.query(
      "UPDATE synced_copy SET rematched_at = NULL WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = 'acme')",
    );
  await forget();
  await rematch(new Database(database.dataSource));
  await forget();
  const few = await statements(rematch);
  for (let index = 0; index < 25; index += 1)
    await recordMeeting(service, [simulator.company.stories.severalDeals.email]);
  await forget();
  expect(await statements(rematch)).toBe(few);
  expect(await statements(rematch)).toBeLessThanOrEqual(3);
});
