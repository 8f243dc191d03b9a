import type { Simulator } from "../../simulator";
import { judgeDeals } from "../../src/briefing/quiet/stored-silence";
import { holdCopyToJudge } from "../../src/connections/copies";
import { type CopyScope } from "../../src/database/database";
import { SYNC_LISTS } from "../../src/entities/sync-list";
import type { SyncResource } from "../../src/entities/sync-run";
import type { TestDatabase } from "./database";

export const COPY_TABLES = [
  "crm_user",
  "pipeline",
  "stage",
  "organization",
  "person",
  "deal",
  "activity",
  "note",
] as const;

/** What a copy should hold of each table: the ids that `userId` sees in the CRM. */
export function visibleIds(simulator: Simulator, userId: number): Record<string, number[]> {
  const seen = simulator.control.visibleTo(userId);
  const ids = (records: readonly { id?: number }[]) => records.map(({ id }) => id ?? 0).sort((a, b) => a - b);
  return {
    crm_user: ids(seen.users),
    pipeline: ids(seen.pipelines),
    stage: ids(seen.stages),
    organization: ids(seen.organizations),
    person: ids(seen.persons),
    deal: ids(seen.deals),
    activity: ids(seen.activities),
    note: ids(seen.notes),
  };
}

/** A live copy of a new tenant, with nothing in it. */
export async function emptyCopy(database: TestDatabase, createdAt: Date): Promise<CopyScope> {
  const tenantId = await database.tenantId("acme");
  await database.query(
    "INSERT INTO synced_copy (tenant_id, id, crm_company_id, crm_user_id, state, created_at) VALUES ($1, 1, 1, 1, 'LIVE', $2)",
    [tenantId, createdAt],
  );
  return { ...database.scope(tenantId), copyId: 1 };
}

/** What the tenant's live copy holds of each table. */
export async function copiedIds(database: TestDatabase, tenant = "acme"): Promise<Record<string, number[]>> {
  const held: Record<string, number[]> = {};
  for (const table of COPY_TABLES) {
    const found = await database.query<{ crm_id: number }>(
      `SELECT t.crm_id FROM ${table} t JOIN connection c ON c.tenant_id = t.tenant_id AND c.copy_id = t.copy_id WHERE c.tenant_id = (SELECT id FROM tenant WHERE external_id = $1) ORDER BY t.crm_id`,
      [tenant],
    );
    held[table] = found.map(({ crm_id }) => crm_id);
  }
  return held;
}

/** Participants as `deal:person`, from the CRM's view and from the copy. */
export function visibleParticipants(simulator: Simulator, userId: number): string[] {
  const { participants, deals } = simulator.control.visibleTo(userId);
  const shown = new Set(deals.map(({ id }) => id));
  return [...participants]
    .filter(([dealId]) => shown.has(dealId))
    .flatMap(([dealId, personIds]) => personIds.map((personId) => `${dealId}:${personId}`))
    .sort();
}

export async function copiedParticipants(database: TestDatabase, tenant = "acme"): Promise<string[]> {
  const found = await database.query<{ link: string }>(
    `SELECT p.deal_id || ':' || p.person_id AS link FROM deal_participant p
     JOIN connection c ON c.tenant_id = p.tenant_id AND c.copy_id = p.copy_id WHERE c.tenant_id = (SELECT id FROM tenant WHERE external_id = $1)`,
    [tenant],
  );
  return found.map(({ link }) => link).sort();
}

/** Lists of a copy that a test filled by itself, as if the CRM had shown all of them at that moment. */
export async function markRead(
  database: TestDatabase,
  tenantId: number,
  copyId: number,
  at: Date,
  lists: readonly SyncResource[] = SYNC_LISTS,
): Promise<void> {
  await database.query(
    `INSERT INTO sync_list (tenant_id, copy_id, resource, watermark, read_at, whole_at)
     SELECT $1, $2, resource, $3, $3, $3 FROM unnest($4::text[]) resource
     ON CONFLICT (tenant_id, copy_id, resource) DO UPDATE SET watermark = EXCLUDED.watermark, read_at = EXCLUDED.read_at`,
    [tenantId, copyId, at, lists],
  );
}

/** What a test changed of a copy's matched deals by itself comes into lists and verdicts as a sync brings it there. */
export async function judgeAgain(database: TestDatabase, copyId: number, now = new Date()): Promise<void> {
  const matched = await database.query<{ tenant_id: number; crm_id: number }>(
    "SELECT DISTINCT tenant_id, crm_id FROM matched_record WHERE copy_id = $1 AND entity = 'DEAL'",
    [copyId],
  );
  const [first] = matched;
  if (!first) return;
  const db = database.opened();
  const ids = matched.map(({ crm_id }) => crm_id);
  await db.tenant(first.tenant_id).transaction(async (scope) => {
    await holdCopyToJudge(scope, copyId);
    await judgeDeals({ ...scope, copyId }, ids, now);
  });
}
