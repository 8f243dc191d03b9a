import { pino } from "pino";
import { recordAudit, sweepAudit } from "../../src/auth/policies";
import { KEPT_MS } from "../../src/database/upsert";
import { createLogger, type Logger } from "../../src/platform/logger";
import { tokenFor } from "../support/actors";
import { earlier } from "../support/database";
import { leaked } from "../support/dump";
import { clearMapping, fieldOf, setMapping } from "../support/fields";
import { askNote } from "../support/notes";
import { CONNECT, completeConsent, connect, dataOf, recordMeeting, startConsent, syncEnds } from "../support/stories";
import { makeStale } from "../support/tokens";
import { useService } from "../support/world";

// Seen red with: an event written in a session of its own; said in the log before the commit; members allowed to
// read; each repeated refusal a row.

const { simulator, database, service } = useService({ deals: 20 });

interface Event {
  action: string;
  refused: boolean;
  code: string | null;
  subject: string | null;
  userId: string | null;
  role: string | null;
  was: string | null;
  became: string | null;
}

const EVENTS = `query ($first: Int, $after: String) { auditEvents(first: $first, after: $after) {
  nodes { action refused code subject userId role was became } pageInfo { hasNextPage endCursor } } }`;
interface Page {
  auditEvents: { nodes: Event[]; pageInfo: { hasNextPage: boolean; endCursor: string | null } };
}

/** The oldest first. */
async function eventsOf(tenant: string): Promise<Event[]> {
  const answer = await service.ask<Page>(EVENTS, { first: 100 }, { tenant, role: "owner", plan: "free" });
  return dataOf(answer).auditEvents.nodes.reverse();
}

const PLAIN = { action: "", refused: false, code: null, subject: null, was: null, became: null };
const by = (event: Partial<Event>): Event => ({ ...PLAIN, userId: "anna", role: "ADMIN", ...event });
const ofService = (event: Partial<Event>) => by({ ...event, userId: null, role: null });
// Seen red without: to which account a tenant had been connected in between, and notes had gone, nothing told.
const account = (user = simulator.company.stories.singleDeal.ownerId) =>
  `company ${simulator.company.id}, user ${user}`;
const connectedEvents = () => [
  ...["CONSENT_STARTED", "CONSENT_COMPLETED"].map((action) => by({ action })),
  by({ action: "CONNECTED", subject: account() }),
];

/** The CRM's number of what a global id names. */
const numberIn = (id: string) => Buffer.from(id, "base64url").toString().split(":").at(-1);

const DISCONNECT = "mutation { disconnect { __typename ... on Refusal { code } } }";
const SYNC = "mutation { requestSync { __typename ... on SyncRequested { run { id } } ... on Refusal { code } } }";

test("a connection's life is told once each, by whom and with its reason", async () => {
  const as = { tenant: "life" };
  await connect(service, simulator, as);
  await syncEnds(service, as);
  await database.query(`UPDATE sync_run SET ${earlier("finished_at", "1 minute")}`);
  const asked = dataOf(
    await service.ask<{ requestSync: { run: { id: string } } }>(SYNC, {}, { ...as, role: "member" }),
  );
  await syncEnds(service, as);
  simulator.control.revoke(simulator.company.stories.singleDeal.ownerId);
  await makeStale(database, "life");
  await service.ask(SYNC, {}, as);
  await syncEnds(service, as);
  await connect(service, simulator, as);
  for (let time = 0; time < 2; time += 1) dataOf(await service.ask(DISCONNECT, {}, as));
  const sync = { action: "SYNC_REQUESTED", code: "INCREMENTAL" };
  const events = await eventsOf("life");
  expect(events).toEqual([
    ...connectedEvents(),
    by({ ...sync, subject: asked.requestSync.run.id, role: "MEMBER" }),
    by({ ...sync, subject: events[4]?.subject }),
    ofService({ action: "NEEDS_REAUTHORIZATION", code: "GRANT_REVOKED" }),
    by({ action: "CONSENT_STARTED" }),
    by({ action: "CONSENT_COMPLETED" }),
    by({ action: "REAUTHORIZED", code: "SAME_USER", subject: account() }),
    by({ action: "DISCONNECTED" }),
  ]);
});

test("another user's authorization, and a user whom the CRM has deactivated, are told", async () => {
  const as = { tenant: "users" };
  const { ownerId } = simulator.company.stories.singleDeal;
  const users = [...simulator.company.users.values()];
  const another = users.find(({ id, active_flag }) => active_flag && id !== ownerId)?.id ?? 0;
  simulator.control.signIn(another);
  await connect(service, simulator, as);
  await syncEnds(service, as);
  simulator.control.change("user", another, { active_flag: false });
  await service.ask(SYNC, {}, as);
  await syncEnds(service, as);
  simulator.control.signIn(ownerId);
  await connect(service, simulator, as);
  const events = await eventsOf("users");
  expect(events[2]).toEqual(by({ action: "CONNECTED", subject: account(another) }));
  expect(events.slice(4)).toEqual([
    ofService({ action: "NEEDS_REAUTHORIZATION", code: "GRANT_REVOKED" }),
    by({ action: "CONSENT_STARTED" }),
    by({ action: "CONSENT_COMPLETED" }),
    by({ action: "REAUTHORIZED", code: "OTHER_USER", subject: account() }),
  ]);
});

test("each way in which a consent comes to nothing is told with its code", async () => {
  const as = { tenant: "refused" };
  const rejected = async (code: string, input: object) => {
    const answer = await completeConsent(service, input, as);
    expect(answer.code).toBe(code);
    expect((await eventsOf("refused")).at(-1)).toEqual(by({ action: "CONSENT_REJECTED", refused: true, code }));
  };
  await rejected("INVALID_INPUT", { state: "never issued" });
  await rejected("AUTHORIZATION_STATE_INVALID", { state: "never issued", code: "x" });
  await rejected("AUTHORIZATION_DENIED_BY_USER", { state: await startConsent(service, as), error: "access_denied" });
  await rejected("AUTHORIZATION_REJECTED", { state: await startConsent(service, as), code: "no code of the CRM's" });
  const state = await startConsent(service, as);
  await connect(service, simulator, as);
  await rejected("ANOTHER_CRM_CONNECTED", { state, code: simulator.control.approve() });
});

test("fields, a chosen deal, and what role or plan refuse are told; a refusal that comes again within a minute once", async () => {
  const as = { tenant: "daily" };
  await connect(service, simulator, as);
  await syncEnds(service, as);
  const { email } = simulator.company.stories.severalDeals;
  const { id: meetingId } = await recordMeeting(service, [email], {}, as);
  const query = "query ($id: ID!) { meeting(id: $id) { match { candidates { deal { id } } } } }";
  const meeting = dataOf(
    await service.ask<{ meeting: { match: { candidates: { deal: { id: string } }[] } } }>(query, { id: meetingId }, as),
  ).meeting;
  const choose = `mutation ($meetingId: ID!, $dealId: ID!) { chooseDeal(meetingId: $meetingId, dealId: $dealId) {
    __typename ... on Refusal { code } } }`;
  const dealIds = meeting.match.candidates.map(({ deal }) => deal.id);
  for (const dealId of dealIds.slice(0, 2))
    dataOf(await service.ask(choose, { meetingId, dealId }, { ...as, role: "member" }));
  for (const mutation of ["unchooseDeal", "cancelMeeting", "cancelMeeting"])
    dataOf(
      await service.ask(`mutation ($id: ID!) { ${mutation}(meetingId: $id) { __typename } }`, { id: meetingId }, as),
    );
  const keys = (["varchar", "double"] as const).map((type) => fieldOf(simulator, "DEAL", type).field_code);
  for (const key of keys) await setMapping(service, "DEAL", key, as);
  for (let time = 0; time < 2; time += 1) await clearMapping(service, "DEAL", as);
  const member = { ...as, role: "member" };
  for (let time = 0; time < 3; time += 1) {
    await clearMapping(service, "DEAL", member);
    await setMapping(service, "DEAL", "x", member);
    await service.ask(DISCONNECT, {}, member);
    await service.ask("mutation { startConnect { __typename } }", {}, member);
    await service.ask(CONNECT, { input: { state: "x", code: "x" } }, member);
    await askNote(service, { meetingId }, { ...member, plan: "free" });
    const write = "mutation ($input: WriteFieldsInput!) { writeFields(input: $input) { __typename } }";
    await service.ask(
      write,
      { input: { meetingId, values: [{ entity: "DEAL", value: "x" }], idempotencyKey: "x" } },
      { ...member, plan: "free" },
    );
    const refused = await service.ask(EVENTS, {}, member);
    expect(refused.errors?.[0]).toMatchObject({
      message: "Only an owner or admin of your organization may read its security events. Ask one of them.",
      extensions: { code: "NOT_ALLOWED_FOR_ROLE" },
    });
  }
  const policy = (subject: string, code = "NOT_ALLOWED_FOR_ROLE") =>
    by({ action: "POLICY_REFUSED", refused: true, code, subject, role: "MEMBER" });
  const plan = "NOT_ALLOWED_ON_PLAN";
  const [chosen, deals] = [{ action: "DEAL_CHOSEN", subject: meetingId }, dealIds.map(numberIn)];
  expect((await eventsOf("daily")).slice(3)).toEqual([
    // Seen red: which deal or field it was was told nowhere, and so nothing of how it had been before.
    by({ ...chosen, became: deals[0], role: "MEMBER" }),
    by({ ...chosen, was: deals[0], became: deals[1], role: "MEMBER" }),
    by({ ...chosen, was: deals[1], code: "TAKEN_BACK" }),
    // Seen red: who had cancelled a meeting, and so taken its deal away, was told nowhere.
    by({ action: "MEETING_CANCELLED", subject: meetingId }),
    by({ action: "FIELD_MAPPING_SET", subject: "DEAL", became: keys[0] }),
    by({ action: "FIELD_MAPPING_SET", subject: "DEAL", was: keys[0], became: keys[1] }),
    by({ action: "FIELD_MAPPING_CLEARED", subject: "DEAL", was: keys[1] }),
    ...["clearFieldMapping", "setFieldMapping", "disconnect", "startConnect", "connect"].map((one) => policy(one)),
    policy("writeNote", plan),
    policy("writeFields", plan),
    policy("auditEvents"),
  ]);
});

test("pages follow each other to the end, and a tenant reads its own events alone", async () => {
  const events: Event[] = [];
  let after: string | null = null;
  do {
    const { auditEvents }: Page = dataOf(await service.ask<Page>(EVENTS, { first: 3, after }, { tenant: "daily" }));
    events.push(...auditEvents.nodes);
    after = auditEvents.pageInfo.hasNextPage ? auditEvents.pageInfo.endCursor : null;
  } while (after);
  expect(events.reverse()).toEqual(await eventsOf("daily"));
  expect(events.length).toBeGreaterThan(10);
  expect(await eventsOf("nobody")).toEqual([]);
});

/** From here on no row can be written into the table. */
async function withBroken(table: string, work: () => Promise<void>): Promise<void> {
  await database.query(`ALTER TABLE ${table} ADD CONSTRAINT broken CHECK (false) NOT VALID`);
  try {
    await work();
  } finally {
    await database.query(`ALTER TABLE ${table} DROP CONSTRAINT broken`);
  }
}

test("what fails leaves no event, and what cannot be told is not done", async () => {
  const as = { tenant: "broken" };
  const state = await startConsent(service, as);
  const input = { state, code: simulator.control.approve({ state }) };
  await withBroken("sync_run", async () => {
    const answer = await service.ask(CONNECT, { input }, as);
    expect(answer.errors?.[0]?.extensions.code).toBe("INTERNAL_SERVER_ERROR");
  });
  expect((await eventsOf("broken")).map(({ action }) => action)).toEqual(["CONSENT_STARTED"]);
  await connect(service, simulator, as);
  await withBroken("audit_event", async () => {
    const answer = await service.ask(DISCONNECT, {}, as);
    expect(answer.errors?.[0]?.extensions.code).toBe("INTERNAL_SERVER_ERROR");
  });
  const [connection] = await database.query(
    "SELECT state FROM connection WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = 'broken')",
  );
  expect(connection).toEqual({ state: "CONNECTED" });
});

test("an event is said in the log after its commit, and not where its transaction fails; old ones are deleted in batches", async () => {
  const lines: string[] = [];
  const logger: Logger = pino({ level: "info" }, { write: (line: string) => void lines.push(line) });
  const db = database.opened();
  const now = new Date();
  const entry = (action: "DISCONNECTED" | "CONNECTED", at = now) => ({
    action,
    at,
    actor: { tenant: "log", userId: "anna", role: "owner" as const },
  });
  const failing = db.tenant(await database.tenantId("log")).transaction(async (scope) => {
    await recordAudit(scope, logger, entry("CONNECTED"));
    throw new Error("the transaction fails");
  });
  await expect(failing).rejects.toThrow("the transaction fails");
  expect(lines).toEqual([]);
  await db.tenant(await database.tenantId("log")).transaction(async (scope) => {
    await recordAudit(scope, logger, entry("DISCONNECTED"));
    await recordAudit(scope, logger, entry("CONNECTED", new Date(now.getTime() - KEPT_MS - 1)));
    expect(lines).toEqual([]);
  });
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { msg: "audit", tenant: "log", audit: { action: "DISCONNECTED", userId: "anna", role: "owner", refused: false } },
    { msg: "audit", audit: { action: "CONNECTED" } },
  ]);
  // Seen red: a clock that was far ahead for some seconds took all events.
  for (const at of [now, new Date(now.getTime() + 2 * KEPT_MS)]) await sweepAudit(db, createLogger("silent"), at);
  expect((await eventsOf("log")).map(({ action }) => action)).toEqual(["DISCONNECTED"]);
});

// Seen red: the number of events of all tenants, in each cursor.
test("where a page of events ends tells nothing of other tenants, and those of one instant stand as they came", async () => {
  const [db, at] = [database.opened(), new Date()];
  const record = async (tenant: string, subject: string) =>
    recordAudit(db.tenant(await database.tenantId(tenant)), createLogger("silent"), {
      ...{ action: "DEAL_CHOSEN", actor: null, at, subject },
    });
  const subjects = Array.from({ length: 12 }, (_, index) => `${index}`);
  for (const subject of subjects) {
    await record("counting", subject);
    for (let index = 0; index < 3; index += 1) await record("counted", subject);
  }
  const query = "{ auditEvents(first: 100) { edges { cursor node { subject } } } }";
  const { auditEvents } = dataOf(
    await service.ask<{ auditEvents: { edges: { cursor: string; node: { subject: string } }[] } }>(
      ...[query, {}, { tenant: "counting", role: "owner" }],
    ),
  );
  const ids = auditEvents.edges.map(({ cursor }) => JSON.parse(Buffer.from(cursor, "base64url").toString()).at(-1));
  expect(new Set(ids).size).toBe(subjects.length);
  expect(ids.filter((id) => Number.isSafeInteger(Number(id)))).toEqual([]);
  const shown = auditEvents.edges.map(({ node }) => Buffer.from(node.subject, "base64url").toString());
  expect(shown.map((id) => id.split(":").at(-1)).reverse()).toEqual(subjects);
});

test("no event holds a secret, a text or a record", async () => {
  const rows = await database.query<{ text: string }>("SELECT to_jsonb(e)::text AS text FROM audit_event e");
  const { email, dealId } = simulator.company.stories.singleDeal;
  const secrets = [simulator.clientSecret, email, "We agreed on", await tokenFor(), `"Deal:${dealId}`];
  const texts = rows.map(({ text }) => text);
  expect(leaked(secrets, texts)).toEqual([]);
  expect(rows.length).toBeGreaterThan(30);
});
