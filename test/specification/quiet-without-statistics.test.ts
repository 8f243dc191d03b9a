import { createHash, randomUUID } from "node:crypto";
import { judgeChanged, judgeDeals } from "../../src/briefing/quiet/stored-silence";
import { type Mails, readMails } from "../../src/briefing/records";
import { type ContactRow, readContacts, timelineOf } from "../../src/briefing/timeline";
import { KNOWN_PARTICIPANTS } from "../../src/connections/journal";
import { activityRecord, dealRecord, personRecord } from "../../src/crm/parsing/records";
import { APPLICATION_ROLE } from "../../src/database/application-role";
import { type CopyScope, type TenantScope } from "../../src/database/database";
import type { DealRow } from "../../src/entities/deal";
import type { SyncResource } from "../../src/entities/sync-run";
import type { HeldCopy } from "../../src/sync/commit";
import { readUnknown } from "../../src/sync/lists";
import { nextDeals } from "../../src/sync/participant-queue";
import { type ClaimedRun, extendLease } from "../../src/sync/runs";
import { writeActivities, writeDeals, writePersons } from "../../src/sync/writers";
import { onOneServer as test } from "../support/blocks";
import { markRead } from "../support/copy";
import { NOW } from "../support/quiet-facts";
import { useDatabase } from "../support/world";

/** A copy that was filled a moment ago: no autovacuum has come by, and PostgreSQL takes each table for nearly empty. */
const DEALS = 3_000;
const MATCHED = 50;
const PAGE = 500;
/** Of each table: of the page, and of each matched deal; and of the deals all of the copy once, where an UPDATE of some finds them so. */
const MOST_ROWS = PAGE + 40 * MATCHED;
const MOST_DEALS = MOST_ROWS + DEALS;

const database = useDatabase();
let tenantId: number;

const [RUN_ID, LEASE_ID] = [randomUUID(), randomUUID()];
const each = "generate_series(1, $2::int) g";
const at = (days: string) => `to_timestamp(${NOW / 1_000}) - (${days}) * interval '1 day'`;
const FILL = [
  `INSERT INTO synced_copy (tenant_id, id, crm_company_id, crm_user_id, state, created_at) SELECT $1, 1, 1, 1, 'LIVE', now() WHERE $2 > 0`,
  `INSERT INTO connection (tenant_id, state, copy_id) SELECT $1, 'CONNECTED', 1 WHERE $2 > 0`,
  `INSERT INTO sync_run (tenant_id, id, copy_id, kind, state, queued_at, lease_id)
   SELECT $1, '${RUN_ID}', 1, 'FULL', 'RUNNING', now(), '${LEASE_ID}' WHERE $2 > 0`,
  `INSERT INTO stage SELECT $1, 1, g, '', g, 1, 20 FROM ${each} WHERE g <= 5`,
  `INSERT INTO person (tenant_id, copy_id, crm_id, name, emails, phones, custom_fields, last_incoming_mail_time, last_outgoing_mail_time)
   SELECT $1, 1, g, '', '[]', '[]', '{}', ${at("g % 40")}, ${at("g % 30")} FROM ${each}`,
  `INSERT INTO person_address (tenant_id, copy_id, address, person_id, mailbox, domain)
   SELECT $1, 1, 'p' || g || '@buyer.example', g, 'p' || g || '@buyer.example', 'buyer.example' FROM ${each}`,
  `INSERT INTO deal (tenant_id, copy_id, crm_id, title, status, person_id, stage_id, participants_count, participants_due,
     participants_known, stage_change_time, add_time, custom_fields)
   SELECT $1, 1, g, '', 'open', g, g % 5 + 1, 1, false, true, ${at("50")}, ${at("60")}, '{}' FROM ${each}`,
  `INSERT INTO deal_participant SELECT $1, 1, g, g % $2 + 1 FROM ${each}`,
  `INSERT INTO activity (tenant_id, copy_id, crm_id, subject, type, deal_id, person_id, participant_ids, due_at, due_has_time, done, happened_at)
   SELECT $1, 1, g, '', 'call', g, g, '{}', ${at("g % 20")}, true, true, ${at("g % 20")} FROM ${each}`,
  // Most changes are of something else, or not to a later day.
  `INSERT INTO deal_change (tenant_id, copy_id, deal_id, seen_at, kind, was, became)
   SELECT $1, 1, g, ${at("c")}, CASE WHEN c < 60 THEN 'CLOSE_DATE' ELSE 'VALUE' END, '2026-10-02', CASE WHEN c < 3 THEN '2026-10-03' ELSE '2026-10-01' END
   FROM ${each} CROSS JOIN generate_series(1, 120) c WHERE g <= ${MATCHED}`,
  // Of deals that nobody asks of.
  `INSERT INTO rejected_record (tenant_id, copy_id, resource, record_key, reason, payload, deal_id, since, seen_at)
   SELECT $1, 1, 'ACTIVITIES', g, '', jsonb_build_object('deal_id', g), g, now(), now() FROM ${each} WHERE g > ${MATCHED}`,
  `INSERT INTO note (tenant_id, copy_id, crm_id, content, deal_id, add_time) SELECT $1, 1, g, '', g, ${at("g % 50")} FROM ${each}`,
  `INSERT INTO meeting (tenant_id, id, external_id, title, starts_at, owner_email, owner_key, search_text, recorded_by, recorded_at)
   SELECT $1, md5(g::text)::uuid, g, '', ${at("g % 25 - 9")}, '', '', '', '', now() FROM ${each}`,
  `INSERT INTO meeting_attendee (tenant_id, meeting_id, position, email, side, match_status, match_reason, candidate_ids, organization_status, organization_reason)
   SELECT $1, md5(g::text)::uuid, 0, '', 'BUYER', 'NONE', '', '{}', 'NONE', '' FROM ${each}`,
  `INSERT INTO meeting_match (tenant_id, meeting_id, copy_id, starts_at, status, reason, deal_id, candidates, matched_at, fingerprint)
   SELECT $1, md5(g::text)::uuid, 1, now(), 'MATCHED', '', g, '[]', now(), '' FROM ${each} WHERE g <= ${MATCHED}`,
  `INSERT INTO matched_record SELECT $1, 1, 'DEAL', g, md5(g::text)::uuid FROM ${each} WHERE g <= ${MATCHED}`,
];

beforeAll(async () => {
  tenantId = await database.tenantId("acme");
  const tables = await database.query<{ name: string }>(
    "SELECT relname AS name FROM pg_stat_user_tables WHERE schemaname = 'public'",
  );
  for (const { name } of tables) await database.query(`ALTER TABLE ${name} SET (autovacuum_enabled = off)`);
  for (const sql of FILL) await database.query(sql, [tenantId, DEALS]);
  await markRead(database, tenantId, 1, new Date(NOW));
});

/** Under row policies an index compares less than without. */
async function asService(scope: TenantScope): Promise<CopyScope> {
  await scope.rows(`SET LOCAL ROLE ${APPLICATION_ROLE}`);
  return { ...scope, copyId: 1 };
}

/** By table, what a transaction has read of it so far. */
async function rowsRead({ rows }: CopyScope): Promise<Record<string, number>> {
  const found = await rows<{ name: string; read: number }>(
    `SELECT relname::text AS name, coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) AS read FROM pg_stat_xact_user_tables`,
    [],
    { name: "text", read: "number" },
  );
  return Object.fromEntries(found.filter(({ read }) => read > 0).map(({ name, read }) => [name, read]));
}

const page = Array.from({ length: PAGE }, (_, index) => index + 1);

// Seen red with the deals found by a join and their facts by plain conditions: 9,000,000 participants and persons, 450,000 activities.
test.each<[SyncResource, number]>([
  ["DEALS", MATCHED],
  ["PERSONS", MATCHED],
  ["DEAL_PARTICIPANTS", MATCHED],
  ["ACTIVITIES", MATCHED],
  ["NOTES", MATCHED],
])(
  "a page of %s reads what its matched deals are judged by, however little is known of the tables",
  async (resource, judged) => {
    for (const round of ["first", "again"]) {
      const read = await database.scope(tenantId).transaction(async (scope) => {
        const copy = await asService(scope);
        if (resource === "DEALS")
          await copy.rows("UPDATE deal_silence SET judged_as = '' WHERE tenant_id = $1", [tenantId]);
        const before = await rowsRead(copy);
        await judgeChanged(copy, resource, page, [], new Date(NOW));
        const after = await rowsRead(copy);
        return Object.entries(after).map(([name, rows]): [string, number] => [name, rows - (before[name] ?? 0)]);
      });
      expect([round, ...read.filter(([table, rows]) => rows > (table === "deal" ? MOST_DEALS : MOST_ROWS))]).toEqual([
        round,
      ]);
      const marked = "SELECT 1 FROM deal_silence WHERE tenant_id = $1 AND is_listed";
      expect((await database.query(marked, [tenantId])).length).toBe(judged);
    }
  },
);

/** Within a transaction that is rolled back. @returns how many activities were read to judge deals after their values have changed */
function activitiesRead(before: string, change: string): Promise<number> {
  class Undone extends Error {}
  let read = Number.NaN;
  return database
    .scope(tenantId)
    .transaction(async (scope) => {
      const copy = await asService(scope);
      await copy.rows(before, [tenantId]);
      await judgeDeals(copy, page, new Date(NOW));
      const { activity = 0 } = await rowsRead(copy);
      await copy.rows(`UPDATE deal SET value = 1, update_time = now() WHERE tenant_id = $1`, [tenantId]);
      await copy.rows(change, [tenantId]);
      await judgeChanged(copy, "DEALS", page, [], new Date(NOW));
      read = ((await rowsRead(copy)).activity ?? 0) - activity;
      const marked = "SELECT 1 FROM deal_silence WHERE tenant_id = $1 AND is_listed AND negative_value = -1";
      expect((await copy.rows(marked, [tenantId])).length).toBe(MATCHED);
      throw new Undone();
    })
    .catch((error: unknown) => {
      if (!(error instanceof Undone)) throw error;
      return read;
    });
}

const CLEARED = "DELETE FROM deal_participant WHERE tenant_id = $1";
const NOTHING = "SELECT $1::bigint";
const counted = (count: string) => `UPDATE deal SET participants_count = ${count} WHERE tenant_id = $1`;

// Seen red with deals of no participants judged by each page.
test.each([
  ["with participants", NOTHING, NOTHING, 0],
  ["of which it is not known who takes part", counted("NULL"), NOTHING, 0],
  ["with nobody, and none was there before", `WITH gone AS (${CLEARED}) ${counted("0")}`, NOTHING, 0],
  ["with nobody, which has taken those that there were", counted("0"), CLEARED, MATCHED],
])(
  "a page that changes the values of deals %s judges those whose participants it took",
  async (_kind, before, change, activities) => {
    expect(await activitiesRead(before, change)).toBe(activities);
  },
);

const DUE = "UPDATE deal SET participants_due = true, participants_known = false, participants_once_known = true";

/** What a piece of work reads of each table, and is then undone. */
function readBy(work: (copy: CopyScope) => Promise<unknown>, first = [DUE]): Promise<Record<string, number>> {
  class Undone extends Error {}
  let read: Record<string, number> = {};
  return database
    .scope(tenantId)
    .transaction(async (scope) => {
      const copy = await asService(scope);
      for (const sql of first) await copy.rows(sql);
      const before = await rowsRead(copy);
      await work(copy);
      const after = await rowsRead(copy);
      read = Object.fromEntries(Object.entries(after).map(([name, rows]) => [name, rows - (before[name] ?? 0)]));
      throw new Undone();
    })
    .catch((error: unknown) => {
      if (!(error instanceof Undone)) throw error;
      return read;
    });
}

const ALONE =
  "WITH gone AS (DELETE FROM deal_participant) UPDATE deal SET participants_known = true, participants_count = 0";
const deals = (count: number) =>
  page.map((id) => dealRecord.parse({ id, title: "Renewed", status: "open", participants_count: count }));
const persons = page.map((id) => personRecord.parse({ id, name: "Ada", emails: [{ value: `p${id}@buyer.example` }] }));
const activities = page.map((id) => activityRecord.parse({ id, subject: "Call", type: "call", deal_id: id }));

// Seen red with the rows before and those that are named compared by ANY, and with addresses and participants deleted
// without a look, and with deals that keep our first mail joined to their update: 3,000 of each.
test.each<[string, (copy: HeldCopy, now: Date) => Promise<unknown>, string]>([
  ["writes persons", writePersons(persons, 0), DUE],
  ["writes deals", writeDeals(deals(1), 0), DUE],
  ["writes deals with nobody", writeDeals(deals(0), 0), ALONE],
  ["writes activities", writeActivities(activities, 0), DUE],
  ["asks what deals name", (copy, now) => readUnknown(copy, "DEALS", page, now), DUE],
])("a page that %s reads its own rows, however little is known of the tables", async (_what, work, first) => {
  const held = { hasMatchedDeals: true, keepsOut: false };
  const read = await readBy((copy) => work({ ...copy, ...held }, new Date(NOW)), [first]);
  expect(Object.entries(read).filter(([, rows]) => rows > 5 * PAGE)).toEqual([]);
});

// Seen red with a look that finds none of the deals that are not known.
test("of deals that have nobody any more, nobody is left, and that is known", async () => {
  await readBy(async (copy) => {
    await writeDeals(deals(0), 0)(copy, new Date(NOW));
    const left = `SELECT count(*) FILTER (WHERE NOT d.participants_known)::int AS unknown, count(x.person_id)::int AS people
      FROM deal d LEFT JOIN deal_participant x ON x.deal_id = d.crm_id WHERE d.crm_id <= ${PAGE}`;
    expect(await copy.rows(left)).toEqual([{ unknown: 0, people: 0 }]);
  });
});

// Seen red with the ids compared by ANY: 3,000 persons.
test("the persons of deals that are asked next, and who took part in those of a batch, are found by their keys", async () => {
  const now = new Date(NOW);
  const queue = { mark: now, now, ruleOfOne: false, againBefore: now, meetings: [] };
  const next = await readBy((copy) => nextDeals(copy, "OPEN", queue, MATCHED));
  expect(next.person).toBe(MATCHED);
  const known = `SELECT (${KNOWN_PARTICIPANTS("$3::bigint[]")}) AS known`;
  const read = await readBy((copy) => copy.rows(known, [tenantId, 1, page.slice(0, MATCHED)], { known: "json" }));
  expect(read).toMatchObject({ deal: MATCHED, deal_participant: MATCHED });
});

const MEETS = [
  `INSERT INTO meeting_match (tenant_id, meeting_id, copy_id, starts_at, status, reason, deal_id, candidates, matched_at, fingerprint)
   SELECT tenant_id, id, 1, starts_at, 'MATCHED', '', external_id::bigint, '[]', now(), '' FROM meeting ON CONFLICT DO NOTHING`,
  `INSERT INTO matched_record SELECT tenant_id, 1, entity, external_id::bigint, id
   FROM meeting, unnest('{DEAL,PERSON}'::text[]) entity ON CONFLICT DO NOTHING`,
  `UPDATE meeting_attendee b SET person_id = m.external_id::bigint FROM meeting m
   WHERE m.tenant_id = b.tenant_id AND m.id = b.meeting_id`,
];
const ALSO =
  "INSERT INTO matched_record SELECT tenant_id, 1, 'PERSON', 10, id FROM meeting WHERE external_id IN ('11', '12')";
const meetingOf = (externalId: string) => createHash("md5").update(externalId).digest("hex");
const MEETING_10 = meetingOf("10");
const SELLS = "UPDATE meeting_attendee SET person_id = 10, side = 'SELLER' WHERE meeting_id = md5('12')::uuid";
type FirstMail = Pick<DealRow, "firstMailAt" | "firstMailPersonId">;
const wroteTo = (person: number) =>
  `UPDATE deal SET first_mail_at = ${at("70")}, first_mail_person_id = ${person} WHERE crm_id = 10`;

// Seen red with participants, activities, notes and the meetings of attendees found by joins: 3,000 and more of each; and
// with what hangs on the deal and on the attendee shown twice, and either condition of a meeting or the one of a first mail left out.
test.each<[string, string[], string[]]>([
  ["what hangs on its deal and its attendee once", [], []],
  ["no meeting that its attendee attends no more, or without a buyer", [ALSO, SELLS], []],
  ["no first mail to somebody else", [wroteTo(2_000)], []],
  ["the first mail to one of its deal's people", [wroteTo(11)], ["OUTGOING_MAIL"]],
])("a timeline has %s, and is read by keys however little is known of the tables", async (_has, more, added) => {
  const now = new Date(NOW);
  let [contacts, mails, deals]: [ContactRow[], Mails[], FirstMail[]] = [[], [], []];
  const read = await readBy(
    async (copy) => {
      contacts = await readContacts(copy, [MEETING_10], 20, now);
    },
    [...MEETS, ...more],
  );
  await readBy(
    async (copy) => {
      mails = await readMails(copy, [10, 11]);
      const sql = `SELECT first_mail_at AS "firstMailAt", first_mail_person_id AS "firstMailPersonId" FROM deal WHERE crm_id = 10`;
      deals = await copy.rows<FirstMail>(sql, [], { firstMailAt: "instant", firstMailPersonId: "number" });
    },
    [...MEETS, ...more],
  );
  const kinds = timelineOf({ contacts, deals, people: new Set([10, 11]), mails }, 20)
    .map(({ kind }) => kind)
    .sort();
  const mailed = ["INCOMING_MAIL", "INCOMING_MAIL", "OUTGOING_MAIL", "OUTGOING_MAIL"];
  expect(kinds).toEqual(["ACTIVITY", "MEETING", "NOTE", ...mailed, ...added].sort());
  expect(Object.entries(read).filter(([, rows]) => rows > 20)).toEqual([]);
});

const UNCERTAIN = `UPDATE meeting_match SET status = 'NEEDS_CHOICE', deal_id = NULL WHERE meeting_id = md5('10')::uuid`;
const ANOTHER = "INSERT INTO matched_record SELECT tenant_id, 1, 'DEAL', 11, id FROM meeting WHERE external_id = '10'";
const OF_BOTH = ["ACTIVITY 10", "MEETING 0", "NOTE 10"];

// Each seen red: the same contact twice in the statement, only the certain deal, a deal not looked at, a match of whatever copy.
test.each<[string, string[], string[]]>([
  ["what hangs on its deal and its attendee once, where there is room for no more", [], OF_BOTH],
  ["only its attendee's where its deal is gone", ["DELETE FROM deal WHERE crm_id = 10"], ["ACTIVITY 10", "MEETING 0"]],
  [
    "its attendee's alone where no deal is known to be meant",
    [UNCERTAIN, "DELETE FROM matched_record WHERE entity = 'DEAL'"],
    ["ACTIVITY 10", "MEETING 0"],
  ],
  [
    "the latest of all deals that it could be about",
    [UNCERTAIN, ANOTHER, `UPDATE note SET add_time = ${at("0")} WHERE crm_id = 11`],
    ["MEETING 0", "NOTE 11", "MEETING 0"],
  ],
  ["none while its match is of no copy", ["UPDATE meeting_match SET copy_id = NULL"], []],
])("the contacts around a meeting are %s", async (_which, changes, expected) => {
  let contacts: ContactRow[] = [];
  await readBy(
    async (copy) => {
      contacts = await readContacts(copy, [MEETING_10], 3, new Date(NOW));
    },
    [...MEETS, ...changes],
  );
  expect(contacts.map(({ kind, crmId }) => `${kind} ${crmId}`).sort()).toEqual([...expected].sort());
  for (const { kind, crmId, activityId } of contacts) expect(activityId).toBe(kind === "ACTIVITY" ? crmId : null);
});

const RECURRING = 40;
const SAME = [
  `UPDATE meeting_match SET deal_id = 10 WHERE deal_id <= ${RECURRING}`,
  `INSERT INTO matched_record SELECT tenant_id, 1, 'DEAL', 10, id FROM meeting WHERE external_id::int <= ${RECURRING} ON CONFLICT DO NOTHING`,
  `UPDATE meeting_attendee SET person_id = 10 WHERE person_id <= ${RECURRING}`,
];

// Seen red with the deals and persons of each meeting gone through by themselves: 80 activities.
test("what hangs on a deal and on a person is read once, around however many meetings with them", async () => {
  const ids = Array.from({ length: RECURRING }, (_, index) => meetingOf(String(index + 1)));
  let contacts: ContactRow[] = [];
  const read = await readBy(
    async (copy) => {
      contacts = await readContacts(copy, ids, 3, new Date(NOW));
    },
    [...MEETS, ...SAME],
  );
  expect(contacts).toHaveLength(RECURRING * 3);
  // An activity twice: how far back the latest go is looked at first.
  expect(read).toMatchObject({ activity: 4, note: 1 });
});

/** The twelve newest are ours, but for three. */
const NOTES = `INSERT INTO note (tenant_id, copy_id, crm_id, content, deal_id, add_time)
  SELECT tenant_id, 1, ${DEALS} + g, CASE WHEN g <= 12 AND g % 4 > 0 THEN 'Ref. CRM-0123456789' ELSE '' END, 10, ${at("g / 1000.0")}
  FROM connection, generate_series(1, 2000) g`;

// Seen red without an order: 2,001 notes.
test("of thousands of notes on a deal only the latest are opened, until enough are not ours", async () => {
  let contacts: ContactRow[] = [];
  const read = await readBy(
    async (copy) => {
      contacts = await readContacts(copy, [MEETING_10], 3, new Date(NOW));
    },
    [...MEETS, NOTES],
  );
  expect(contacts.map(({ kind, crmId }) => `${kind} ${crmId}`)).toEqual(
    [4, 8, 12].map((number) => `NOTE ${DEALS + number}`),
  );
  expect(read.note).toBeLessThan(40);
});

// Seen red with the buyers of all of them looked for: 1,922 attendees.
test("of thousands of meetings about a deal only the attendees of the latest are looked at", async () => {
  let contacts: ContactRow[] = [];
  const read = await readBy(
    async (copy) => {
      contacts = await readContacts(copy, [MEETING_10], 3, new Date(NOW));
    },
    [...MEETS, "UPDATE meeting_match SET deal_id = 10"],
  );
  expect(contacts.map(({ kind, at }) => `${kind} ${at.toISOString()}`)).toEqual(
    Array.from({ length: 3 }, () => `MEETING ${new Date(NOW).toISOString()}`),
  );
  expect(read.meeting_attendee).toBeLessThan(20);
});

const MANY = 60_000;
const LARGE = [
  `INSERT INTO deal (tenant_id, copy_id, crm_id, title, status, participants_count, participants_due, participants_known, participants_once_known, custom_fields)
   SELECT tenant_id, 1, g, '', 'open', 0, false, true, true, '{}' FROM connection, generate_series(${DEALS + 1}, ${MANY}) g`,
  "DELETE FROM deal_participant",
];

// Seen red without the order that decides: 30,000,000 deals.
test("a page reads its own rows also of a copy of which a key has a level more than the other indexes", async () => {
  const nobody = page.map((id) =>
    dealRecord.parse({ id: MANY - id, title: "", status: "open", participants_count: 0 }),
  );
  const now = new Date(NOW);
  const run: ClaimedRun = {
    tenantId,
    runId: RUN_ID,
    copyId: 1,
    kind: "FULL",
    leaseId: LEASE_ID,
    startedAt: now,
    leaseUntil: now,
    toldAt: 0,
  };
  const { deal } = await readBy(async (copy) => {
    expect(await extendLease(copy, run, now)).not.toBeNull();
    await writeDeals(nobody, 0)(copy, now);
    const known = `SELECT (${KNOWN_PARTICIPANTS("$3::bigint[]")}) AS known`;
    await copy.rows(known, [tenantId, 1, nobody.map(({ id }) => id)], { known: "json" });
  }, LARGE);
  expect(deal).toBeLessThan(2 * MANY);
});
