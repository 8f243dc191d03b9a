import { setTimeout as sleep } from "node:timers/promises";
import { onOneServer } from "../support/blocks";
import { markRead } from "../support/copy";
import { type Service, startService } from "../support/service";
import { countStatements, type StatementCounter } from "../support/statements";
import { dataOf, recordMeeting, until } from "../support/stories";
import { useCrm } from "../support/world";

let counter: StatementCounter;
let service: Service;
let meetings: Record<"small" | "large", string>;

const { world, simulator, database } = useCrm({ deals: 10 });
beforeAll(async () => {
  counter = await countStatements(database.url);
  world.cleanup(counter.close);
  service = await world.startService({ roles: ["api"], config: { databaseUrl: counter.url } });
  meetings = { small: await makeTenant("small", 1), large: await makeTenant("large", 10) };
  await addMeetings("large", meetings.large, 100);
  await database.query("ANALYZE");
});

/** A connected tenant whose copy has so much of everything, and one meeting with all its persons. @returns its id */
async function makeTenant(tenant: string, times: number): Promise<string> {
  const tenantId = await database.tenantId(tenant);
  const [copy] = await database.query<{ id: number }>(
    `INSERT INTO synced_copy (tenant_id, crm_company_id, crm_user_id, state, created_at)
     VALUES ($1, 1, 1, 'LIVE', now()) RETURNING id`,
    [tenantId],
  );
  const [persons, deals, activities, organizations] = [20 * times, 10 * times, 50 * times, 10 * times];
  // Each kind of record has owners of its own, so that none is known already where another kind asks for it.
  const owner = (kind: number) => `${kind} + 5 * (g % ${times})`;
  const statements = [
    `INSERT INTO crm_user SELECT $1, $2, g, 'User ' || g, 'user' || g || '@seller.example', 'user' || g || '@seller.example', true
     FROM generate_series(1, ${5 * times}) g`,
    `INSERT INTO pipeline SELECT $1, $2, g, 'Pipeline ' || g, g FROM generate_series(1, ${times}) g`,
    `INSERT INTO stage SELECT $1, $2, g, 'Stage ' || g, g, g % ${times} + 1, 30 FROM generate_series(1, ${3 * times}) g`,
    `INSERT INTO organization (tenant_id, copy_id, crm_id, name, owner_id, custom_fields)
     SELECT $1, $2, g, 'Company ' || g, ${owner(1)}, '{}' FROM generate_series(1, ${organizations}) g`,
    `INSERT INTO person (tenant_id, copy_id, crm_id, name, owner_id, organization_id, emails, phones, custom_fields)
     SELECT $1, $2, g, 'Person ' || g, ${owner(2)}, g % ${organizations} + 1,
       jsonb_build_array(jsonb_build_object('value', 'p' || g || '@buyer.example', 'label', 'work', 'primary', true)), '[]', '{}'
     FROM generate_series(1, ${persons}) g`,
    `INSERT INTO person_address (tenant_id, copy_id, address, mailbox, person_id)
     SELECT $1, $2, 'p' || g || '@buyer.example', 'p' || g || '@buyer.example', g FROM generate_series(1, ${persons}) g`,
    `INSERT INTO deal (tenant_id, copy_id, crm_id, title, value, currency, status, owner_id, person_id, organization_id, pipeline_id,
       stage_id, participants_due, participants_known, add_time, update_time, custom_fields)
     SELECT $1, $2, g, 'Deal ' || g, g, 'EUR', CASE g % 3 WHEN 0 THEN 'won' ELSE 'open' END, ${owner(3)}, g,
       g % ${organizations} + 1, s.pipeline_id, s.crm_id, false, true, now() - interval '9 days',
       now() - g * interval '1 hour', '{}'
     FROM generate_series(1, ${deals}) g JOIN stage s ON s.tenant_id = $1 AND s.copy_id = $2 AND s.crm_id = g % ${3 * times} + 1`,
    `INSERT INTO deal_participant SELECT $1, $2, d, p FROM generate_series(1, ${deals}) d, generate_series(1, ${persons}) p
     WHERE p % ${4 * times} = d % ${4 * times}`,
    `INSERT INTO activity (tenant_id, copy_id, crm_id, subject, type, owner_id, deal_id, person_id, organization_id, participant_ids,
       due_at, due_has_time, done, done_at, happened_at)
     SELECT $1, $2, g, 'Activity ' || g, 'call', ${owner(4)}, g % ${deals} + 1, g % ${persons} + 1, g % ${organizations} + 1, '{}',
       now() + (CASE WHEN done THEN -1 ELSE 1 END) * g * interval '1 hour', true, done,
       CASE WHEN done THEN now() - g * interval '1 hour' END, CASE WHEN done THEN now() - g * interval '1 hour' END
     FROM (SELECT g, g % 5 > 0 AS done FROM generate_series(1, ${activities}) g) g`,
    `INSERT INTO note SELECT $1, $2, g, '<p>Note</p>', ${owner(5)}, g % ${deals} + 1, g % ${persons} + 1,
       g % ${organizations} + 1, now() - g * interval '40 minutes' FROM generate_series(1, ${activities}) g`,
    `INSERT INTO data_gap VALUES ($1, $2, 'DEAL_PARTICIPANTS', 1, 'CRM_UNAVAILABLE', 'The CRM did not answer.', now())`,
    `INSERT INTO connection (tenant_id, state, state_changed_at, copy_id, company_domain)
     VALUES ($1, 'CONNECTED', now(), $2, 'acme')`,
    `INSERT INTO sync_run (tenant_id, id, copy_id, kind, state, queued_at, started_at, finished_at)
     SELECT $1, gen_random_uuid(), $2, 'FULL', 'SUCCEEDED', now() - g * interval '1 hour', now(), now()
     FROM generate_series(1, ${10 * times}) g`,
  ];
  for (const sql of statements) await database.query(sql, [tenantId, copy?.id]);
  await markRead(database, tenantId, copy?.id ?? 0, new Date());
  const emails = Array.from({ length: persons }, (_, index) => `p${index + 1}@buyer.example`);
  const input = { ownerEmail: "user1@seller.example", externalId: "m-0", startsAt: new Date().toISOString() };
  const meeting = await recordMeeting(service, emails, input, { tenant });
  await database.query(
    "UPDATE meeting_match SET status = 'MATCHED', deal_id = 1 WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1) AND meeting_id = $2",
    [tenant, row(meeting)],
  );
  return meeting.id;
}

const row = ({ id }: { id: string }) => Buffer.from(id, "base64url").toString().split(":")[1];

/** Meetings like the first one: with some of its attendees and its match. */
async function addMeetings(tenant: string, meetingId: string, count: number): Promise<void> {
  const first = [tenant, row({ id: meetingId })];
  await database.query(
    `INSERT INTO meeting SELECT tenant_id, gen_random_uuid(), 'm-' || g, title, starts_at - g * interval '1 hour', ends_at,
       owner_email, owner_key, search_text, recorded_by, recorded_at FROM meeting, generate_series(1, ${count - 1}) g
     WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1) AND id = $2`,
    first,
  );
  for (const [table, only] of [
    ["meeting_attendee", "AND t.position < 5"],
    ["meeting_match", ""],
  ]) {
    await database.query(
      `INSERT INTO ${table} SELECT (jsonb_populate_record(t, jsonb_build_object('meeting_id', m.id))).*
       FROM ${table} t JOIN meeting m ON m.tenant_id = t.tenant_id AND m.id <> t.meeting_id
       WHERE t.tenant_id = (SELECT id FROM tenant WHERE external_id = $1) AND t.meeting_id = $2 ${only}`,
      first,
    );
  }
}

const USER = "{ id name email active }";
const ACTIVITIES = "recentActivities { id subject type doneAt owner { name } person { id name } }";
const DEAL = `{ id title status value { amount currency } stage { name daysToRotten pipeline { name } } pipeline { name }
  owner ${USER} organization { id name } person { id name } participants { id name organization { name } } participantsKnown
  ${ACTIVITIES} nextActivity { id subject dueAt owner { name } } recentNotes { id text ours author { name } } crmUrl
  quiet { verdict quietSince quietDays reasons { code message evidence { id } } nextChangeAt asOf }
  lastInteraction { kind at person { name } activity { subject } } }`;
const BRIEFING = `query ($id: ID!) { briefing(meetingId: $id) {
  meeting { id title startsAt owner ${USER}
    attendees { email name side match { status rule reason person { id name } organization { name } candidates { id name } } }
    match { status rule reason deal { id title } candidates { reason deal { id title } } persons { id } organizations { id } } }
  deal ${DEAL}
  otherDeals { id title status value { amount currency } stage { name } pipeline { name } owner ${USER} organization { name } }
  persons { id name emails { address } organization { id name } owner ${USER} openDeals { id title stage { name } owner { name } }
    ${ACTIVITIES} recentNotes { id text author { name } } }
  organizations { id name website owner ${USER} openDeals { id title } ${ACTIVITIES} recentNotes { id text } }
  timeline { kind at person { name owner { name } } activity { subject owner { name } } }
  asOf gaps { resource code count message } } }`;

/**
 * All of them, and those that are not the setting of a session to its tenant, which a session that has it goes without.
 * What keeps notes as they are shown comes after the answer, and may be seen in the next one's time.
 */
async function statementsOf(query: string, variables: object, tenant: string): Promise<{ all: number; own: number }> {
  const sent = await counter.during(async () => dataOf(await service.ask(query, variables, { tenant })));
  const own = sent.filter((sql) => !sql.includes("set_config") && !sql.includes("UPDATE note"));
  return { all: sent.length, own: own.length };
}

test("a full briefing takes at most 4 statements, and as many when everything is ten times as many", async () => {
  const small = await statementsOf(BRIEFING, { id: meetings.small }, "small");
  const large = await statementsOf(BRIEFING, { id: meetings.large }, "large");
  expect(small.all).toBeLessThanOrEqual(4);
  expect(large.all).toBeLessThanOrEqual(4);
  expect(large.own).toBe(small.own);
});

const isJoint = (sql: string) => sql.startsWith("SELECT json_build_array(json_build_array(");

// Seen red: two, beside those of the operation, for a field that nobody asked for.
test("who asks is told without a look at the database, and whether they may connect by one statement of the operation", async () => {
  const sentFor = (asked: string) =>
    counter.during(async () => dataOf(await service.ask(asked, {}, { tenant: "small", role: "admin" })));
  expect(await sentFor("{ viewer { userId role canManageConnection } }")).toEqual([]);
  const sent = await sentFor("{ viewer { connectRefusal again: connectRefusal } }");
  const own = sent.filter((sql) => !/set_config|FROM crm_stop/.test(sql));
  expect(own.filter((sql) => !isJoint(sql))).toEqual([]);
  expect(own).toHaveLength(1);
  expect(own.at(0)).toMatch(/FROM connection.*FROM audit_event/s);
});

test("what hangs on a meeting is read in the statement that finds it, and what hangs on that", async () => {
  const asked = `query ($id: ID!) { briefing(meetingId: $id) { meeting { match { status reason deal { title } } }
    deal { title stage { name } participants { id } } otherDeals { title stage { name } }
    timeline { person { name } activity { subject owner { name } } } } }`;
  const sent = await counter.during(async () =>
    dataOf(await service.ask(asked, { id: meetings.small }, { tenant: "small" })),
  );
  const reads = sent.filter(isJoint);
  expect(reads).toHaveLength(1);
  expect(reads.at(0)).toMatch(/FROM stage.*FROM person.*FROM deal_participant/s);
});

test.each<[string, () => Record<string, string>]>([
  ["its id", () => ({ id: meetings.small })],
  ["the id that it was recorded with", () => ({ externalId: "m-0" })],
])("a meeting by %s is read with all that hangs on it", async (_by, variables) => {
  const asked = `query ($id: ID, $externalId: String) { meeting(id: $id, externalId: $externalId) { title attendees { name match { person { name } } }
    match { status deal { title stage { name } } candidates { reason deal { title } } persons { name } } } }`;
  type Shown = { meeting: { title: string; attendees: object[]; match: { deal: object; persons: object[] } } };
  const sent = await counter.during(async () => {
    const { meeting } = dataOf(await service.ask<Shown>(asked, variables(), { tenant: "small" }));
    expect([meeting.attendees.length, meeting.match.persons.length]).toEqual([20, 20]);
    expect(meeting.match.deal).toMatchObject({ title: "Deal 1" });
  });
  expect(sent.filter(isJoint)).toHaveLength(1);
  expect(sent.filter((sql) => !sql.includes("set_config") && !isJoint(sql))).toEqual([]);
});

test("what may be larger than all the rest of a row is read only for whoever asks: custom fields, candidates, texts that are searched", async () => {
  const record = (fields: string) => `{ id crmUrl createdAt updatedAt ${fields} }`;
  const readOf = async (fields: string) => {
    const asked = `query ($id: ID!) { briefing(meetingId: $id) { meeting { title match { status } attendees { name } } deal ${record(fields)}
      otherDeals ${record(fields)} persons { id ${fields} } organizations { id ${fields} } } }`;
    const sent = await counter.during(async () =>
      dataOf(await service.ask(asked, { id: meetings.small }, { tenant: "small" })),
    );
    return sent.filter(isJoint);
  };
  const [without, others] = await readOf("");
  expect(others).toBeUndefined();
  expect(without).not.toMatch(/custom_fields|search_text|"candidates"/);
  // By one statement all the same.
  const [asked, second] = await readOf("customFields");
  expect(second).toBeUndefined();
  expect(asked?.match(/custom_fields/g)).toHaveLength(3);
});

test("a page of deals by silence is read with whether the copy is fresh, and all by which it is judged, our own writes too", async () => {
  const asked = `{ deals(filter: { verdict: [ACTIVE, COOLING, QUIET, GHOSTED] }, orderBy: QUIET_DAYS_DESC) {
    nodes { title stage { name } quiet { verdict } } } }`;
  const sent = await counter.during(async () => {
    const { deals } = dataOf(await service.ask<{ deals: { nodes: object[] } }>(asked, {}, { tenant: "small" }));
    expect(deals.nodes).not.toEqual([]);
  });
  const reads = sent.filter(isJoint);
  expect(reads).toHaveLength(1);
  expect(reads.at(0)).toMatch(/FROM sync_list.*FROM deal_silence.*FROM note_write.*FROM field_write/s);
});

const PERSON = `{ id name emails { address } owner ${USER} organization { id name owner { name } }
  openDeals { id title owner { name } } ${ACTIVITIES} recentNotes { id text author { name } } }`;
const LISTS = {
  deals: DEAL,
  persons: PERSON,
  organizations: `{ id name owner ${USER} persons(first: 3) { id name owner ${USER} openDeals(first: 1) { id } } openDeals(first: 1) { id owner { name } stage { name pipeline { name } } } ${ACTIVITIES} recentNotes { id author { name } } }`,
  meetings:
    "{ id title owner { name } attendees { email match { person { name organization { name } } } } match { deal { title } } }",
  syncRuns: "{ id state progress steps { resource state } }",
};

test.each(Object.entries(LISTS))(
  "a page of %s takes as many statements for 20 rows as for 100, and no more than 12",
  async (list, nodes) => {
    const query = `query ($first: Int) { ${list}(first: $first) { nodes ${nodes} pageInfo { hasNextPage endCursor } } }`;
    const count = async (first: number) => {
      const data = dataOf(
        await service.ask<Record<string, { nodes: object[] }>>(query, { first }, { tenant: "large" }),
      );
      expect(data[list]?.nodes).toHaveLength(first);
      return statementsOf(query, { first }, "large");
    };
    const few = await count(20);
    expect(few.all).toBeLessThanOrEqual(12);
    expect((await count(100)).own).toBe(few.own);
  },
);

// Seen red: twice, and with a hundred meetings a hundred times.
test("deals of which nobody was asked who takes part are counted once, for however many meetings", async () => {
  const id = await makeTenant("unasked", 1);
  const ofTenant = "tenant_id = (SELECT id FROM tenant WHERE external_id = 'unasked')";
  await database.query(`DELETE FROM matched_record WHERE entity = 'DEAL' AND ${ofTenant}`);
  await database.query(`UPDATE deal SET participants_known = false, participants_due = true WHERE ${ofTenant}`);
  const query = "query ($id: ID!) { briefing(meetingId: $id) { gaps { resource count } again: gaps { count } } }";
  const sent = await counter.during(async () => {
    const { briefing } = dataOf(
      await service.ask<{ briefing: { gaps: object[] } }>(query, { id }, { tenant: "unasked" }),
    );
    expect(briefing.gaps).toContainEqual({ resource: "DEAL_PARTICIPANTS", count: 9 });
  });
  const times = (part: string) => sent.join("\n").split(part).length - 1;
  expect([times("d.participants_due AND NOT d.participants_known"), times("sum(s.requests)")]).toEqual([1, 1]);
});

test("nested lists that have no first of their own are bounded", async () => {
  await database.query(
    `INSERT INTO deal_participant SELECT c.tenant_id, c.copy_id, 1, g FROM connection c, generate_series(1, 200) g
     WHERE c.tenant_id = (SELECT id FROM tenant WHERE external_id = 'large') ON CONFLICT DO NOTHING`,
  );
  const query = `query ($id: ID!) { briefing(meetingId: $id) {
    deal { participants { name } } otherDeals { status updatedAt } persons { id } organizations { id } meeting { attendees { email } } } }`;
  const { briefing } = dataOf(
    await service.ask<{ briefing: Bounded }>(query, { id: meetings.large }, { tenant: "large" }),
  );
  const names = briefing.deal.participants.map(({ name }) => name);
  expect(names).toHaveLength(100);
  const byName = Array.from({ length: 200 }, (_, index) => `Person ${index + 1}`).sort();
  expect([...names].sort()).toEqual(byName.slice(0, 100));
  expect(briefing.otherDeals).toHaveLength(50);
  expect(briefing.otherDeals.every(({ status }) => status === "OPEN")).toBe(true);
  const changes = briefing.otherDeals.map(({ updatedAt }) => updatedAt);
  expect(changes).toEqual([...changes].sort().reverse());
  expect(briefing.persons).toHaveLength(200);
  expect(briefing.meeting.attendees).toHaveLength(200);
});

/** Rows of a table that a service of its own looked at; its sessions tell what they counted when they end. */
async function rowsReadBy(table: string, work: (reader: Service) => Promise<unknown>): Promise<number> {
  const read = async () => {
    const [row] = await database.query<{ n: number }>(
      "SELECT (idx_tup_fetch + seq_tup_read)::int AS n FROM pg_stat_user_tables WHERE relname = $1",
      [table],
    );
    return row?.n ?? 0;
  };
  const before = await read();
  const reader = await startService(simulator, database, { roles: new Set(["api"]) });
  await work(reader);
  await reader.stop();
  let last = 0;
  return until("its sessions have ended", async () => {
    const counted = (await read()) - before;
    const isAll = counted > 0 && counted === last;
    last = counted;
    return isAll ? counted : sleep(300, null);
  });
}

// On a cluster each node counts the rows that it reads, and 20,000 meetings by one statement of several INSERTs take it too long.
onOneServer("where each tenant has 200 other meetings a briefing reads none of them", async () => {
  await database.query(
    `WITH others AS (
       INSERT INTO tenant (external_id) SELECT 'other-' || g FROM generate_series(1, 100) g RETURNING id
     ), copies AS (
       INSERT INTO synced_copy (tenant_id, crm_company_id, crm_user_id, state, created_at)
       SELECT id, 1, 1, 'LIVE', now() FROM others RETURNING tenant_id, id
     ), meetings AS (
       SELECT tenant_id, copy_id, gen_random_uuid() AS id, g FROM (
         SELECT tenant_id, id FROM copies UNION ALL SELECT tenant_id, copy_id FROM connection WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = 'small')
       ) c (tenant_id, copy_id), generate_series(1, 200) g
     ), recorded AS (
       INSERT INTO meeting SELECT m.tenant_id, m.id, 'other-' || g, title, starts_at, ends_at, owner_email, owner_key, search_text,
         recorded_by, recorded_at
       FROM meeting s, meetings m WHERE s.tenant_id = (SELECT id FROM tenant WHERE external_id = 'small')
     )
     INSERT INTO meeting_match SELECT (jsonb_populate_record(s, jsonb_build_object('tenant_id', m.tenant_id,
       'copy_id', m.copy_id, 'meeting_id', m.id, 'status', 'NONE', 'deal_id', NULL))).*
     FROM meeting_match s, meetings m WHERE s.tenant_id = (SELECT id FROM tenant WHERE external_id = 'small')`,
  );
  await database.query("ANALYZE");
  const ask = (reader: Service) => reader.ask(BRIEFING, { id: meetings.small }, { tenant: "small" });
  // What other sessions counted before may come up to ten seconds late, and so among the first of the two.
  const read = [await rowsReadBy("meeting_match", ask), await rowsReadBy("meeting_match", ask)];
  expect(Math.min(...read)).toBeLessThan(100);
});

interface Bounded {
  deal: { participants: { name: string }[] };
  otherDeals: { status: string; updatedAt: string }[];
  persons: object[];
  meeting: { attendees: object[] };
}
