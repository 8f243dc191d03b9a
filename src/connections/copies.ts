import { z } from "zod";
import type { CrmCurrentUser } from "../crm/parsing/records";
import type { CopyScope, Database, TenantScope } from "../database/database";
import { enqueueJob, hasLiveJob, type JobKind } from "../database/jobs";
import { inBatches } from "../database/upsert";
import { SyncedCopyRow } from "../entities/connection";
import { ERASED } from "../platform/email-address";
import type { Logger } from "../platform/logger";
import { forEachLogged } from "../platform/work";
import { liveCopyId, lockConnection } from "./connection";

/** A new live copy of what `user` sees. The caller has retired the tenant's earlier one. */
export async function createCopy({ tenantId, rows }: TenantScope, user: CrmCurrentUser, now: Date): Promise<number> {
  const [copy] = await rows<{ id: number }>(
    `INSERT INTO synced_copy (tenant_id, crm_company_id, crm_user_id, state, created_at, time_zone)
     VALUES ($1, $2, $3, 'LIVE', $4, coalesce($5, 'UTC')) RETURNING id`,
    [tenantId, user.companyId, user.id, now, user.timeZone],
    { id: "number" },
  );
  if (!copy) throw new Error("a copy that was just made is missing");
  return copy.id;
}

/** Keeps a copy live until the transaction ends. @returns the CRM company that it is of; null where it is not live */
export async function holdLiveCopy(
  { tenantId, rows }: TenantScope,
  copyId: number,
): Promise<{ crmCompanyId: number } | null> {
  const [live] = await rows<{ crmCompanyId: number }>(
    `SELECT crm_company_id AS "crmCompanyId" FROM synced_copy
     WHERE tenant_id = $1 AND id = $2 AND state = 'LIVE' FOR SHARE`,
    [tenantId, copyId],
    { crmCompanyId: "number" },
  );
  return live ?? null;
}

/** Any fixed number: the name of "judging a copy's deals" among this database's advisory locks. */
const JUDGING_LOCKS = 20_260_015;

/**
 * Keeps a copy live, and other transactions from judging its deals meanwhile: each sees what those before it have changed.
 * @returns whether it is live
 */
export async function holdCopyToJudge({ tenantId, keyed }: TenantScope, copyId: number): Promise<boolean> {
  const live = await keyed(
    `SELECT pg_advisory_xact_lock(${JUDGING_LOCKS}, hashint8(id)) AS held FROM synced_copy
     WHERE tenant_id = $1 AND id = $2 AND state = 'LIVE' FOR SHARE`,
    [tenantId, copyId],
  );
  return live.length > 0;
}

/** The same without waiting: false where another transaction judges the copy's deals at this moment. */
export async function tryToHoldCopyToJudge({ tenantId, rows }: TenantScope, copyId: number): Promise<boolean> {
  const [live] = await rows<{ held: boolean }>(
    `SELECT pg_try_advisory_xact_lock(${JUDGING_LOCKS}, hashint8(id)) AS held FROM synced_copy
     WHERE tenant_id = $1 AND id = $2 AND state = 'LIVE' FOR SHARE SKIP LOCKED`,
    [tenantId, copyId],
    { held: "flag" },
  );
  return live?.held ?? false;
}

/**
 * The live copy, held from before it is read: a sync whose pages, end and matching all passed after that would match nothing of
 * what this transaction stores. null: none is connected, nor will be until it ends.
 */
export async function holdPresentCopy(scope: TenantScope): Promise<number | null> {
  const before = await liveCopyId(scope);
  if (before !== null && (await holdCopyToJudge(scope, before))) return before;
  const { copyId } = await lockConnection(scope);
  if (copyId !== null) await holdCopyToJudge(scope, copyId);
  return copyId;
}

/** Ends the syncs of a copy that goes. `sync/schedule.ts` does it; `services.ts` gives it. */
export interface EndsSync {
  /** Cancels what is queued or running for the copy, in the caller's transaction. */
  cancelRuns(scope: TenantScope, copyId: number): Promise<void>;
}

/**
 * Makes a copy invisible from this commit on and has its rows deleted. The caller holds the connection's lock; a
 * page in hand is waited for, and a later one finds no live copy.
 */
export async function retireCopy(scope: TenantScope, copyId: number, endsSync: EndsSync): Promise<void> {
  const live = { tenantId: scope.tenantId, id: copyId, state: "LIVE" as const };
  await scope.typed((orm) => orm.update(SyncedCopyRow, live, { state: "RETIRED" }));
  await endsSync.cancelRuns(scope, copyId);
  await enqueueJob(scope, PURGE_COPY, { tenantId: scope.tenantId, copyId });
}

/** Keeps the snoozes of deals whose rows go: a person has said them, and a deal may come back. @param dealIds null: all deals */
export async function keepSnoozes(
  { tenantId, copyId, rows }: CopyScope,
  dealIds: readonly number[] | null,
  now: Date,
): Promise<void> {
  await rows("DELETE FROM kept_snooze WHERE tenant_id = $1 AND snooze_ends_at <= $2", [tenantId, now]);
  await rows(
    `INSERT INTO kept_snooze (tenant_id, crm_company_id, deal_id, ${SNOOZE})
     SELECT d.tenant_id, s.crm_company_id, d.crm_id, ${SNOOZE}
     FROM deal d JOIN synced_copy s ON s.tenant_id = $1 AND s.id = $2
     WHERE d.tenant_id = $1 AND d.copy_id = $2 AND d.snooze_ends_at > $3 AND ($4::bigint[] IS NULL OR d.crm_id = ANY ($4))
     ON CONFLICT DO NOTHING`,
    [tenantId, copyId, now, dealIds],
  );
}

/** SQL: what of a deal's row is a snooze. */
export const SNOOZE = "snooze_reason, snoozed_by, snoozed_at, snoozed_until, snooze_ends_at";

const COPY_REF = z.object({ tenantId: z.int(), copyId: z.int() });
export type CopyRef = z.infer<typeof COPY_REF>;

export const PURGE_COPY: JobKind<CopyRef> = {
  name: "purge_copy",
  payload: COPY_REF,
  subjectOf: ({ copyId }) => copyId,
};
/** Rows a statement: small enough to hold no lock for long, large enough to delete a million in minutes. */
const BATCH = 5_000;

/** Enqueues again what a worker took and died with; a purge that goes on twice does no harm. */
export async function sweepPurges(database: Database, logger: Logger): Promise<void> {
  const lost = await database.acrossTenants<CopyRef>(
    `WITH retired AS MATERIALIZED (SELECT tenant_id, id FROM synced_copy WHERE state = 'RETIRED')
     SELECT tenant_id AS "tenantId", id AS "copyId" FROM retired
     WHERE NOT ${hasLiveJob(PURGE_COPY, "retired.id", "now() - interval '5 minutes'")}`,
    [],
    { tenantId: "number", copyId: "number" },
  );
  await forEachLogged(lost, (copy) => enqueueJob(database.tenant(copy.tenantId), PURGE_COPY, copy), logger);
}

/**
 * Deletes a retired copy's rows, a batch a statement, and its own row last: a purge that was cut off goes on where it
 * stood. A live copy is never touched.
 */
export async function purgeCopy(
  database: Database,
  { tenantId, copyId }: CopyRef,
  stop: AbortSignal,
  logger: Logger,
): Promise<void> {
  const scope = database.tenant(tenantId);
  const retired = { tenantId, id: copyId, state: "RETIRED" as const };
  if (!(await scope.typed((orm) => orm.existsBy(SyncedCopyRow, retired)))) return;
  const goesOn = () => {
    if (stop.aborted) throw new Error("the purge was stopped and goes on later");
  };
  let deleted = 0;
  for (const table of copyTables(database)) {
    deleted += await inBatches(scope, { table, where: "copy_id = $2", parameters: [copyId], size: BATCH }, goesOn);
  }
  await scope.typed((orm) => orm.delete(SyncedCopyRow, retired));
  logger.info({ tenantId, copyId, deleted }, "a retired copy was purged");
}

/** They name a copy and are the tenant's: its connection, and the history of runs, matches and writes. */
const KEPT = new Set("sync_run connection credential meeting_match renewal_attempt note_write field_write".split(" "));

/** Every table whose rows belong to a copy. */
function copyTables({ tables }: Database): string[] {
  return tables
    .filter(
      ({ tableName, columns }) => !KEPT.has(tableName) && columns.some(({ propertyName }) => propertyName === "copyId"),
    )
    .map(({ tableName }) => tableName);
}

/** What the CRM has in words of activities and notes that hang on a person. The rows stay: when there was contact is the deal's. */
export async function eraseTexts(scope: TenantScope, copyId: number, crmId: number): Promise<number> {
  let erased = 0;
  for (const texts of [ACTIVITIES, NOTES, UNREADABLE])
    erased += await inBatches(scope, { ...texts, parameters: [copyId, crmId] });
  return erased;
}

/** The last line of our notes, in whatever marks the CRM puts around it: nobody writes it by chance. */
export const LAST_LINE = String.raw`(Ref\. CRM-[0-9A-HJKMNP-TV-Z]{10})(?:<[^>]*>|\s)*$`;
export const LAST_LINE_LETTERS = 200;

/** What stays of a note whose text is not kept: that it is ours, or it would count as a contact. */
export function withoutText(content: string): string {
  const [, reference] = new RegExp(LAST_LINE).exec(content.slice(-LAST_LINE_LETTERS)) ?? [];
  return reference ? `${ERASED} ${reference}` : ERASED;
}
const WITHOUT_TEXT = `'${ERASED}' || coalesce(' ' || substring(right(content, ${LAST_LINE_LETTERS}) from '${LAST_LINE}'), '')`;

const ACTIVITIES = {
  table: "activity",
  where: `copy_id = $2 AND (person_id = $3 OR $3 = ANY (participant_ids)) AND subject <> '${ERASED}'`,
  set: `subject = '${ERASED}'`,
};
const NOTES = {
  table: "note",
  where: `copy_id = $2 AND person_id = $3 AND content <> ${WITHOUT_TEXT}`,
  set: `content = ${WITHOUT_TEXT}, shown_html = NULL, shown_text = NULL, shown_cut = NULL, shown_rules = NULL`,
};

/** SQL: whether a record that could not be read names a person, in whatever part of it. @param id as a text */
export const hasPerson = (id: string) =>
  `EXISTS (SELECT FROM jsonb_path_query(payload, '$.**.person_id') AS named WHERE named #>> '{}' = ${id})`;
/** Nobody knows where its text stands; by the deal's id its gap is told. */
const UNREADABLE = {
  table: "rejected_record",
  where: `copy_id = $2 AND resource IN ('NOTES', 'ACTIVITIES') AND ${hasPerson("$3::text")}`,
  // Of no function that a cluster takes for one of the session's settings.
  set: `payload = ('{"deal_id": ' || coalesce(deal_id::text, 'null') || '}')::jsonb`,
};

/** null: no meetings are being matched again. */
export async function readRematchProgress({ tenantId, copyId, typed }: CopyScope) {
  const copy = await typed((orm) => orm.findOneBy(SyncedCopyRow, { tenantId, id: copyId }));
  return copy?.rematch?.total ? { done: copy.rematch.done, total: copy.rematch.total } : null;
}
