import type { Simulator } from "../../simulator";
import type { ActorClaims } from "./actors";
import type { TestDatabase } from "./database";
import { type DumpedRow, dumpDatabase } from "./dump";
import { type Entity, fieldOf, setMapping, writeFields } from "./fields";
import { writeNote } from "./notes";
import type { Service } from "./service";
import { connect, dataOf, recordMeeting, startConsent, syncEnds, until } from "./stories";
import { makeStale } from "./tokens";
import { World } from "./world";

/** acme asks and globex is the other one; both have live connections, meetings and receipts. */
export const OTHER = "globex";
/** Tenants without a connection that works, and what they are. */
const WITHOUT_CONNECTION = ["never", "disconnected", "reauthorize"] as const;
export const ASKING = ["acme", ...WITHOUT_CONNECTION];

/** Stands in everything of globex that has a text of its own, so that an answer which shows any of it is seen. */
export const MARK = "GLOBEX-ONLY";

export interface Tenants {
  simulator: Simulator;
  database: TestDatabase;
  /** Serves the API only, so that nothing but what a test asks changes a row. */
  service: Service;
  /** The meeting of a tenant. */
  meetingOf(tenant: string): string;
  copyOf(tenant: string): number;
  ids: Ids;
  /** A consent that globex has begun. */
  otherState: string;
  /** An external id and a key of a note that globex has used. */
  otherExternalId: string;
  otherKey: string;
  stop(): Promise<void>;
}

/** Global ids by type: of acme's matched or own things, and of globex's. */
interface Ids {
  own: Record<string, string>;
  foreign: Record<string, string>;
}

export const idOf = (...parts: (string | number)[]) => Buffer.from(parts.join(":")).toString("base64url");

/** Of which a tenant has one, named by the tenant. */
export const ONE_OF_TENANT = ["Connection", "QuietSettings"];
const UUIDS = ["SyncRun", "Meeting", "NoteWrite", "FieldWrite"];
const NO_UUID = "00000000-0000-4000-8000-000000000000";
/** Of a type, in the form that it has, and of nothing that is there. */
export const unknownId = (type: string, copyId: number) => {
  if (ONE_OF_TENANT.includes(type)) return idOf(type, "no such tenant");
  return UUIDS.includes(type) ? idOf(type, NO_UUID) : idOf(type, copyId, 987_654_321);
};

export const malformedIds = (type: string, copyId: number) => [
  "",
  "x",
  "%%%",
  "__proto__",
  "\u0000",
  "null",
  "a".repeat(5_000),
  idOf(type),
  `${unknownId(type, copyId)}=`,
  idOf(type, ""),
  idOf(type, "x"),
  idOf(type, "-".repeat(36)),
  idOf(type, NO_UUID, 1),
  idOf("__proto__", 1, 1),
  idOf(type, "1e400", "NaN"),
  idOf(type, copyId, -1),
  idOf(type, "\u0000", "\ud800"),
];

const RECORDS = ["CrmUser", "Pipeline", "Stage", "Deal", "Person", "Organization", "Activity", "Note"] as const;

export async function startTenants(): Promise<Tenants> {
  const world = await World.start({ deals: 20 });
  const { simulator, database } = world;
  const building = await world.startService();
  // Before it is connected: a connected tenant can begin none.
  const otherState = await startConsent(building, { tenant: OTHER });
  const meetings = await build(building, simulator, database).finally(() => building.stop());
  const rows = await database.query<{ tenant: string; copy_id: number | null }>(
    "SELECT t.external_id AS tenant, c.copy_id FROM connection c JOIN tenant t ON t.id = c.tenant_id",
  );
  const copies = new Map(rows.map(({ tenant, copy_id }) => [tenant, copy_id ?? 0]));
  const copyOf = (tenant: string) => copies.get(tenant) ?? 0;
  const meetingOf = (tenant: string) => meetings.get(tenant) ?? "";
  await mark(database, copyOf(OTHER));
  const service = await world.startService({ roles: ["api"] });
  const ids = {
    own: await idsOf(database, simulator, "acme", copyOf("acme"), meetingOf("acme")),
    foreign: await idsOf(database, simulator, OTHER, copyOf(OTHER), meetingOf(OTHER)),
  };
  simulator.log.clear();
  return {
    simulator,
    database,
    service,
    meetingOf,
    copyOf,
    ids,
    otherState,
    otherExternalId: `${MARK}-meeting`,
    otherKey: `${MARK}-key`,
    stop: () => world.stop(),
  };
}

async function build(service: Service, simulator: Simulator, database: TestDatabase): Promise<Map<string, string>> {
  const { company } = simulator;
  const { email, ownerId } = company.stories.singleDeal;
  const meetings = new Map<string, string>();
  const record = async (tenant: string) => {
    const named = tenant === OTHER ? { externalId: `${MARK}-meeting`, title: MARK } : {};
    meetings.set(tenant, (await recordMeeting(service, [email], named, { tenant })).id);
  };
  for (const tenant of ["acme", OTHER, "disconnected"]) {
    await connect(service, simulator, { tenant });
    await syncEnds(service, { tenant });
    await record(tenant);
  }
  for (const tenant of ["acme", OTHER]) await leaveReceipts(service, simulator, meetings.get(tenant) ?? "", { tenant });
  const disconnect = "mutation { disconnect { __typename } }";
  dataOf(await service.ask(disconnect, {}, { tenant: "disconnected" }));
  // A user of its own, whose grant the CRM ends: the others' go on.
  const another = [...company.users.values()].find(({ id, active_flag }) => active_flag && id !== ownerId);
  simulator.control.signIn(another?.id ?? 0);
  await connect(service, simulator, { tenant: "reauthorize" });
  await syncEnds(service, { tenant: "reauthorize" });
  await record("reauthorize");
  simulator.control.revoke(another?.id ?? 0);
  await makeStale(database, "reauthorize");
  dataOf(await service.ask("mutation { requestSync { __typename } }", {}, { tenant: "reauthorize" }));
  await syncEnds(service, { tenant: "reauthorize" });
  await record("never");
  simulator.control.signIn(ownerId);
  await until("the retired copy is gone", async () => {
    const rows = await database.query("SELECT 1 FROM synced_copy WHERE state = 'RETIRED'");
    return rows.length === 0;
  });
  return meetings;
}

async function leaveReceipts(service: Service, simulator: Simulator, meetingId: string, as: ActorClaims) {
  const name = as.tenant === OTHER ? MARK : "acme";
  await writeNote(service, { meetingId, content: `a note of ${name}`, idempotencyKey: `${name}-key` }, as);
  const entity: Entity = "DEAL";
  await setMapping(service, entity, fieldOf(simulator, entity, "varchar").field_code, as);
  await writeFields(service, meetingId, [{ entity, value: name }], { as, idempotencyKey: `${name}-fields` });
}

/** The two copies are of one company: from here on globex's texts are its own. */
async function mark(database: TestDatabase, copyId: number): Promise<void> {
  const texts = {
    deal: "title",
    person: "name",
    organization: "name",
    activity: "subject",
    note: "content",
    stage: "name",
    pipeline: "name",
    crm_user: "name",
  };
  for (const [table, column] of Object.entries(texts)) {
    await database.query(`UPDATE ${table} SET ${column} = $2 WHERE copy_id = $1`, [copyId, MARK]);
  }
}

async function idsOf(
  database: TestDatabase,
  { company }: Simulator,
  tenant: string,
  copyId: number,
  meeting: string,
): Promise<Record<string, string>> {
  const { dealId, personId, orgId, ownerId, stageId, pipelineId, doneActivityId, noteId } = company.stories.singleDeal;
  const crmIds = [ownerId, pipelineId, stageId, dealId, personId, orgId, doneActivityId, noteId];
  const newest = async (table: string) => {
    const [row] = await database.query<{ id: string }>(
      `SELECT id FROM ${table} WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)`,
      [tenant],
    );
    if (!row) throw new Error(`${tenant} has no row of ${table}`);
    return row.id;
  };
  return {
    ...Object.fromEntries(ONE_OF_TENANT.map((type) => [type, idOf(type, tenant)])),
    Meeting: meeting,
    SyncRun: idOf("SyncRun", await newest("sync_run")),
    NoteWrite: idOf("NoteWrite", await newest("note_write")),
    FieldWrite: idOf("FieldWrite", await newest("field_write")),
    ...Object.fromEntries(RECORDS.map((type, index) => [type, idOf(type, copyId, crmIds[index] ?? 0)])),
  };
}

/** Every row that is not one tenant's own, the job queue's among them. */
export async function rowsOfOthers({ database, copyOf }: Tenants, tenant: string): Promise<string[]> {
  const id = await database.tenantId(tenant);
  const own = [`"tenant_id": ${id},`, `"tenant_id": ${id}}`, `"tenantId": ${id},`, `"tenantId": ${id}}`];
  const named = [`"key": "sync_due:${id}"`, `"external_id": "${tenant}"`];
  const copies = await database.query<{ id: number }>("SELECT id FROM synced_copy WHERE tenant_id = $1", [id]);
  const ofCopy = [...copies.map((copy) => copy.id), copyOf(tenant)]
    .filter(Boolean)
    .map((copy) => `"copy_id": ${copy},`);
  const runs = await database.query<{ id: string }>("SELECT id FROM sync_run WHERE tenant_id = $1", [id]);
  const marks = [...own, ...named, ...ofCopy, ...runs.map((run) => run.id)];
  const dump = await dumpDatabase(database);
  // What a company of the CRM may spend is no tenant's: these tenants share one.
  const rows = dump.filter(({ table }) => table !== "public.crm_budget");
  return rows.map(({ table, text }) => `${table} ${text}`).filter((text) => !marks.some((one) => text.includes(one)));
}

/** Every row that is one tenant's own. */
export async function rowsOfTenant(
  database: Pick<TestDatabase, "query" | "tenantId">,
  tenant: string,
): Promise<DumpedRow[]> {
  const own = new RegExp(`"tenant_id": ${await database.tenantId(tenant)}[,}]`);
  return (await dumpDatabase(database)).filter(({ text }) => own.test(text));
}
