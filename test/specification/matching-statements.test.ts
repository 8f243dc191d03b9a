import type { Actor } from "../../src/auth/actor";
import { Meetings } from "../../src/briefing/meetings";
import { Rematching } from "../../src/briefing/rematch";
import { KeepOut } from "../../src/connections/keep-out";
import type { Database } from "../../src/database/database";
import type { Rematch } from "../../src/entities/sync-run";
import { SECOND_MS } from "../../src/platform/clock";
import { Keyring } from "../../src/platform/keyring";
import { createLogger } from "../../src/platform/logger";
import { areDealsOfMeetingsDue } from "../../src/sync/participant-queue";
import { isAround } from "../support/database";
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
  const counted = database.opened({
    observe: (text, run) => {
      if (!isAround(text) && !text.startsWith("SELECT pg_notify")) count += 1;
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
  expect(few).toBeLessThanOrEqual(21);
  expect(many).toBe(few);
  // What was told of deals that are matched no more is kept by two more, however many they are.
  expect(await statements(record(everyone.slice(0, 2)))).toBe(few + 2);
});

/** Which version of its rows each of the tenant's records is. */
const versions = async (table: string) =>
  database.query(`SELECT t.xmin::text, t.ctid::text FROM ${table} t WHERE tenant_id = $1 ORDER BY t.ctid`, [
    actor.tenantId,
  ]);

// Seen red: each match wrote anew what its meeting makes readable, and judged all of its deals, of which it may be about one.
test("a meeting that says the same again, about deals of which one may be meant, writes none of them", async () => {
  const again = record([simulator.company.stories.severalDeals.email]);
  await again(database.opened());
  const before = [await versions("matched_record"), await versions("deal_silence")];
  await again(database.opened());
  expect([await versions("matched_record"), await versions("deal_silence")]).toEqual(before);
});

test("whether deals wait that meetings may be about is one look where none waits at all", async () => {
  const [live] = await database.query<{ id: number }>("SELECT id FROM synced_copy WHERE tenant_id = $1", [
    actor.tenantId,
  ]);
  const look = (db: Database) =>
    areDealsOfMeetingsDue({ ...db.tenant(actor.tenantId), copyId: live?.id ?? 0 }, new Date());
  expect(await statements(look)).toBe(1);
});

const rematch = (db: Database, elapsed?: () => number) =>
  new Rematching(db, () => new Date(), createLogger("silent"), elapsed).run(
    actor.tenantId,
    new AbortController().signal,
  );

test("looking through meetings that a sync does not touch costs one set of statements for fifty of them", async () => {
  const forget = async () => {
    await database.query("UPDATE synced_copy SET matched_as_whole = NULL");
    await database.query("UPDATE sync_run SET rematched = false");
  };
  await forget();
  await rematch(database.opened());
  await forget();
  const few = await statements(rematch);
  for (let index = 0; index < 25; index += 1)
    await recordMeeting(service, [simulator.company.stories.severalDeals.email]);
  await forget();
  expect(await statements(rematch)).toBe(few);
  expect(await statements(rematch)).toBeLessThanOrEqual(3);
});

// Seen red: a page of fifty town halls was compared with all that their attendees lead to in one turn, of seconds.
test("looking through town halls serves others between two, and holds what few of them lead to at once", async () => {
  const everyone = [...simulator.company.persons.values()].flatMap(({ emails }) => emails.map(({ value }) => value));
  const hall = [
    ...everyone.filter((value) => value.trim()),
    ...Array.from({ length: 400 }, (_, index) => `guest${index}@hall.example`),
  ].slice(0, 400);
  for (let index = 0; index < 9; index += 1) await recordMeeting(service, hall);
  await database.query("UPDATE synced_copy SET matched_as_whole = true");
  await database.query("UPDATE sync_run SET rematched = false");
  await database.query("UPDATE sync_step SET written = 1");
  let [inDatabase, turns, sets, isOver] = [0, 0, 0, false];
  const turn = () => {
    if (inDatabase === 0) turns += 1;
    if (!isOver) setImmediate(turn);
  };
  const observe = async <T>(text: string, run: () => Promise<T>) => {
    if (text.includes("taking_part")) sets += 1;
    inDatabase += 1;
    return run().finally(() => {
      inDatabase -= 1;
    });
  };
  turn();
  await rematch(database.opened({ observe }));
  isOver = true;
  expect(sets).toBeGreaterThanOrEqual(3);
  expect(turns).toBeGreaterThan(2);
});

// Seen red: while a list was refused for long, each run looked through all meetings that there are.
test("against a copy that is not whole all meetings are matched once, and once more when it is", async () => {
  const set = (sql: string) => database.query(`${sql} WHERE tenant_id = $1`, [actor.tenantId]);
  const runEnds = () => set("UPDATE sync_run SET rematched = false");
  await set("UPDATE sync_list SET watermark = CASE WHEN resource <> 'USERS' THEN watermark END");
  await set("UPDATE synced_copy SET matched_as_whole = NULL");
  await runEnds();
  expect(await statements(rematch)).toBeGreaterThan(6);
  expect(await statements(rematch)).toBeLessThanOrEqual(3);
  await set("UPDATE sync_step SET written = 0, removed = 0");
  await runEnds();
  expect(await statements(rematch)).toBeLessThanOrEqual(4);
  await set("UPDATE sync_list SET watermark = now()");
  await runEnds();
  expect(await statements(rematch)).toBeGreaterThan(6);
  await runEnds();
  expect(await statements(rematch)).toBeLessThanOrEqual(4);
});

describe("a way through many meetings", () => {
  const set = (sql: string) => database.query(`${sql} WHERE tenant_id = $1`, [actor.tenantId]);
  const stands = async () => {
    const [copy] = await database.query<{ rematch: Rematch | null; isOver: boolean }>(
      `SELECT rematch, NOT EXISTS (SELECT 1 FROM sync_run WHERE tenant_id = $1 AND NOT rematched) AS "isOver"
       FROM synced_copy WHERE tenant_id = $1`,
      [actor.tenantId],
    );
    return { ...copy, way: copy?.rematch && [copy.rematch.done, Object.keys(copy.rematch.place ?? {}).join(" ")] };
  };
  /** Each look at this clock is so long after the one before. */
  const everyLook = (seconds: number) => {
    let now = 0;
    return () => {
      now += seconds * SECOND_MS;
      return now;
    };
  };
  /** Rematches; `seen` is told of each statement that reads a page or says where the way stands. */
  const rematching = (seconds: number, seen: (what: "page" | "note") => Promise<unknown> | number) =>
    rematch(
      database.opened({
        observe: async (text, run) => {
          if (text.includes("(starts_at, id) <")) await seen("page");
          if (text.includes("SET rematch =")) await seen("note");
          return run();
        },
      }),
      everyLook(seconds),
    );

  /** A run, with which a record goes that a meeting knew. */
  const anotherEnds = () =>
    database.query(
      `WITH run AS (
         INSERT INTO sync_run (tenant_id, id, copy_id, kind, state, queued_at, finished_at)
         SELECT tenant_id, gen_random_uuid(), copy_id, 'INCREMENTAL', 'SUCCEEDED', now(), now() FROM connection WHERE tenant_id = $1
         RETURNING tenant_id, id)
       INSERT INTO sync_step (tenant_id, run_id, resource, state, removed) SELECT tenant_id, id, 'DEALS', 'SUCCEEDED', 1 FROM run`,
      [actor.tenantId],
    );

  beforeAll(async () => {
    for (const table of ["matched_record", "meeting_match", "meeting_attendee", "meeting"])
      await set(`DELETE FROM ${table}`);
    for (let index = 0; index < 109; index += 1) await recordMeeting(service, [`guest${index}@hall.example`]);
    await recordMeeting(service, [simulator.company.stories.severalDeals.email]);
  });
  beforeEach(async () => {
    await set("UPDATE synced_copy SET matched_as_whole = NULL, rematch = NULL");
    await set("UPDATE sync_run SET rematched = false");
  });

  // Seen red: one job went through all, and held its place among the others however long that took.
  test("is gone in turns, each from where the one before has paused, and again for what has ended meanwhile", async () => {
    const [pages, turns]: [string[], unknown[]] = [[], []];
    for (let goesOn = true; goesOn && turns.length < 20; turns.push((await stands()).way)) {
      goesOn = await rematching(16, (what) => pages.push(what));
      if (turns.length === 0) await anotherEnds();
    }
    const page = "id startsAt";
    const meetings = [50, 100, 110].map((done) => [done, page]);
    expect(turns.slice(0, 4)).toEqual([...meetings, null]);
    expect(turns.slice(4)).toEqual([...meetings, [110, "id entity"], null]);
    expect(pages.filter((what) => what === "page")).toHaveLength(4 + 4);
    expect((await stands()).isOver).toBe(true);
  });

  // Seen red: it waited for the end of the next run.
  test("is gone again for what has ended meanwhile also where a meeting fails, once", async () => {
    const [bad] = await database.query<{ id: string }>("SELECT id FROM meeting WHERE tenant_id = $1", [actor.tenantId]);
    const id = bad?.id ?? "";
    await database.query("UPDATE meeting_match SET fingerprint = '' WHERE meeting_id = $1", [id]);
    await database.query(
      `ALTER TABLE meeting_match ADD CONSTRAINT refused CHECK (meeting_id <> '${id}' OR fingerprint = '')`,
    );
    let turns = 0;
    for (let goesOn = true; goesOn && turns < 20; turns += 1) {
      goesOn = await rematching(16, () => 0);
      if (turns === 0) await anotherEnds();
    }
    await database.query("ALTER TABLE meeting_match DROP CONSTRAINT refused");
    const waits = expect.objectContaining({ again: "WAITS", total: 0 });
    expect([turns, await stands()]).toEqual([8, { rematch: waits, way: [110, "id startsAt"], isOver: false }]);
    // Seen red: each that had ended since it first failed, thousands after months.
    const left = `SELECT s.removed FROM sync_run r JOIN sync_step s ON s.tenant_id = r.tenant_id AND s.run_id = r.id
      WHERE r.tenant_id = $1 AND NOT r.rematched AND s.resource = 'DEALS'`;
    expect(await database.query(left, [actor.tenantId])).toEqual([{ removed: 1 }]);
    expect(await rematching(0, () => 0)).toBe(false);
    expect(await stands()).toMatchObject({ isOver: true });
  });

  // Seen red: none of the tenant's meetings was matched again, at no run's end, until that one was deleted.
  test("is gone to its end where a meeting cannot be looked at, which alone stays as it was", async () => {
    const { email, dealIds } = simulator.company.stories.severalDeals;
    const [bad] = await database.query<{ id: string }>(
      "SELECT meeting_id AS id FROM meeting_attendee WHERE email = $1",
      [email],
    );
    const people = (list: string) =>
      database.query(
        `UPDATE meeting_match SET chosen_deal_id = $2::bigint, chosen_company_id = $3, chosen_by = 'anna', chosen_at = now(),
           last_deal = jsonb_build_object('dealId', $2::bigint, 'since', now(), 'people', '${list}'::jsonb) WHERE meeting_id = $1`,
        [bad?.id, dealIds[0], simulator.company.id],
      );
    await people("{}");
    await set("UPDATE meeting_match SET fingerprint = ''");
    const left = () => database.query("SELECT meeting_id AS id FROM meeting_match WHERE fingerprint = ''");
    expect(await rematching(0, () => 0)).toBe(false);
    expect(await left()).toEqual([bad]);
    await people("[]");
    expect(await rematching(0, () => 0)).toBe(false);
    expect(await left()).toEqual([]);
  });

  test("leaves a run that has not ended to the way after its end", async () => {
    const open = "WHERE tenant_id = $1 AND state = 'QUEUED'";
    await database.query(
      `INSERT INTO sync_run (tenant_id, id, copy_id, kind, state, queued_at)
       SELECT tenant_id, gen_random_uuid(), copy_id, 'INCREMENTAL', 'QUEUED', now() FROM connection WHERE tenant_id = $1`,
      [actor.tenantId],
    );
    await rematching(0, () => 0);
    const left = await database.query(`SELECT rematched FROM sync_run ${open}`, [actor.tenantId]);
    await database.query(`DELETE FROM sync_run ${open}`, [actor.tenantId]);
    expect(left).toEqual([{ rematched: false }]);
  });

  // Seen red: where it stands was written for each page, also of a look through the meetings of a month that took no time.
  test("that takes no time writes once, that it is over", async () => {
    const seen: string[] = [];
    expect(await rematching(0, (what) => seen.push(what))).toBe(false);
    expect(seen).toEqual(["page", "page", "page", "note"]);
    expect((await stands()).isOver).toBe(true);
  });

  // Seen red: the jobs of runs that ended meanwhile went all the way beside each other.
  test("is left to another job that has gone on with it", async () => {
    let pages = 0;
    const goesOn = await rematching(1, async (what) => {
      if (what === "page") pages += 1;
      if (what === "page" && pages === 2)
        await set(`UPDATE synced_copy SET rematch = jsonb_set(rematch, '{done}', '99')`);
    });
    expect([goesOn, pages]).toEqual([false, 2]);
    expect(await stands()).toMatchObject({ way: [99, "id startsAt"], isOver: false });
  });

  // Seen red: what a process had left undone when it was told to end waited for the next run.
  test("is gone on with after the process was told to end", async () => {
    const stopping = new AbortController();
    const stopped = new Rematching(
      database.opened({
        observe: (text, run) => {
          if (text.includes("(starts_at, id) <")) pages += 1;
          if (pages === 2) stopping.abort();
          return run();
        },
      }),
      () => new Date(),
      createLogger("silent"),
    );
    let pages = 0;
    expect(await stopped.run(actor.tenantId, stopping.signal)).toBe(true);
    expect(await stands()).toMatchObject({ way: [50, "id startsAt"], isOver: false });
    expect(await rematching(0, () => 0)).toBe(false);
    expect((await stands()).isOver).toBe(true);
  });
});
