import { LessThan } from "typeorm";
import { ConnectionGoneError, isTrouble, NeedsReauthorizationError } from "../connections/connection";
import { NO_TOKEN } from "../connections/renewal";
import type { CrmPage } from "../crm/api";
import { CrmError, type CrmFailure, explain, isRefusal, proofRefusedBehind, stopBehind } from "../crm/errors";
import { OAuthError } from "../crm/oauth";
import type { CopyScope } from "../database/database";
import { jsonRows } from "../database/upsert";
import { MAIN_LISTS, RejectedRecordRow, SyncPassRow } from "../entities/sync-list";
import type { GapCode, GapSummary, SyncErrorCode, SyncResource } from "../entities/sync-run";
import { DAY_MS, HOUR_MS } from "../platform/clock";
import { ServiceError } from "../platform/errors";
import { LISTS, type ListResource, type Unknown } from "./lists";
import { ageOf, LONGEST_REST_MS, SLOW_MS } from "./plan";

// What a run is said to have failed for, and what could not be read: whole lists, answers about a record, single records.

/** This worker no longer owns the run: it was disconnected, or another worker took it over. Nothing more is written. */
export class RunLostError extends ServiceError {
  readonly code = "RUN_LOST";
}

export interface RunFailure {
  code: SyncErrorCode;
  /** For the customer's admin: what happened and what to do. */
  message: string;
  /** Where the operator is to count it as something else than its code. */
  outcome?: "MISCONFIGURED";
}

/** A gap is named for the failure of the request that left it. */
export const GAP_CODE_OF: Record<CrmFailure, GapCode> = {
  RATE_LIMITED: "RATE_LIMITED",
  BUDGET_LOW: "NOT_READ_YET",
  UNAVAILABLE: "CRM_UNAVAILABLE",
  UNAUTHORIZED: "CRM_REFUSED",
  REFUSED: "CRM_REFUSED",
  NOT_FOUND: "RECORD_NOT_FOUND",
  ACCOUNT_CLOSED: "CRM_REFUSED",
  UNREADABLE: "CRM_ANSWER_UNREADABLE",
};

/** Runs may be made by request alone, and what has failed for long rests, but for who asks. */
const LATER_SYNC = "later sync tries again; one that you ask for does so at once.";
export const IF_PLANNED = "; where none is planned, ask for one.";

const BY_CRM_FAILURE: Record<CrmFailure, RunFailure> = {
  RATE_LIMITED: {
    code: "RATE_LIMITED",
    message: explain("RATE_LIMITED", { todo: `A later sync goes on from here${IF_PLANNED}` }),
  },
  BUDGET_LOW: {
    code: "BUDGET_LOW",
    message: explain("BUDGET_LOW", { todo: `A later sync goes on when there is more${IF_PLANNED}` }),
  },
  UNAVAILABLE: { code: "CRM_UNAVAILABLE", message: explain("UNAVAILABLE", { todo: `A ${LATER_SYNC}` }) },
  UNAUTHORIZED: { code: "CRM_REFUSED", message: explain("UNAUTHORIZED") },
  REFUSED: { code: "CRM_REFUSED", message: explain("REFUSED") },
  NOT_FOUND: { code: "CRM_REFUSED", message: explain("NOT_FOUND") },
  ACCOUNT_CLOSED: { code: "CRM_ACCOUNT_CLOSED", message: explain("ACCOUNT_CLOSED") },
  UNREADABLE: {
    code: "CRM_ANSWER_UNREADABLE",
    message: explain("UNREADABLE", { todo: `Nothing of it was stored; a ${LATER_SYNC}` }),
  },
};

/** What a run reports when `error` ends it; null where the run is no longer this worker's and nothing is to be said. */
export function failureOf(error: unknown): RunFailure | null {
  if (error instanceof RunLostError || error instanceof ConnectionGoneError) return null;
  if (error instanceof CrmError) return BY_CRM_FAILURE[error.code];
  if (error instanceof NeedsReauthorizationError) return { code: "NEEDS_REAUTHORIZATION", message: error.message };
  if (error instanceof OAuthError && error.code === "MISCONFIGURED") {
    const message = "The CRM does not accept this service's app registration. Tell the operator.";
    return { code: "INTERNAL", message, outcome: error.code };
  }
  const unproven = proofRefusedBehind(error);
  if (unproven) return BY_CRM_FAILURE[unproven];
  if (error instanceof OAuthError) return NO_TOKEN;
  return { code: "INTERNAL", message: "The run failed for a reason of our own. The operator's log has it." };
}

/** Until when a list that failed is not tried: for as long as it has failed. A fault may be over in an hour; a right has to be given. */
export function restOf(error: CrmError, since: Date, now: Date): Date {
  const ofCode = isRefusal(error) ? SLOW_MS : HOUR_MS;
  const mostMs = error.detail.endless ? LONGEST_REST_MS : ofCode;
  return new Date(now.getTime() + Math.max(0, Math.min(mostMs, now.getTime() - since.getTime())));
}

/** How long a page that does not come is asked for by its cursor, whose life is not documented. */
const CURSOR_LIFE_MS = DAY_MS;
/** It has failed where it stands for long already: one that is long, and gets on, is none. */
export function isStuck({ cursor, failedSince }: Pick<SyncPassRow, "cursor" | "failedSince">, now: Date): boolean {
  return cursor !== null && failedSince !== null && ageOf(failedSince, now) > CURSOR_LIFE_MS;
}

type FailedPass = Pick<SyncPassRow, "resource" | "kind" | "removes" | "updatedSince" | "failedSince" | "inVainSince">;

/** That a pass's next page did not come: it rests, also where it had not begun. */
export async function noteFailed({ tenantId, copyId, typed }: CopyScope, pass: FailedPass, error: CrmError, now: Date) {
  const { resource, kind, removes, updatedSince, failedSince, inVainSince } = pass;
  const restsUntil = restOf(error, (error.detail.endless ? inVainSince : failedSince) ?? now, now);
  const row = { tenantId, copyId, resource, kind, removes, updatedSince, failedSince: failedSince ?? now, restsUntil };
  await typed((orm) => orm.upsert(SyncPassRow, row, ["tenantId", "copyId", "resource", "kind"]));
}

/** What a run has failed for that did without a main list, which rests. */
export function failureOfRest(gaps: readonly GapSummary[]): RunFailure | null {
  const [failure] = gaps.flatMap(({ resource, code, message }) =>
    MAIN_LISTS.includes(resource) && isTrouble(code) ? [{ code, message }] : [],
  );
  return failure ?? null;
}

/** Failures of one sub-fetch that become a gap; all others end the run, and a stop by the operator makes it wait. */
export function isSubFetchFailure(error: unknown): error is CrmError {
  if (stopBehind(error)) return false;
  return error instanceof CrmError && error.code !== "UNAUTHORIZED" && error.code !== "ACCOUNT_CLOSED";
}

/** A gap of a whole resource is kept under this id; CRM ids begin at 1. */
const WHOLE_RESOURCE = 0;

export interface FoundGap {
  /** The record that is touched; absent for the whole resource. */
  crmId?: number;
  code: GapCode;
  message: string;
}

/** Notes gaps; one that was there already keeps its `since`. */
export async function recordGaps(
  { tenantId, copyId, rows }: CopyScope,
  resource: SyncResource,
  gaps: readonly FoundGap[],
  now: Date,
): Promise<void> {
  if (gaps.length === 0) return;
  const values = gaps.map(({ crmId = WHOLE_RESOURCE, code, message }) => ({ crmId, code, message }));
  await rows(
    `INSERT INTO data_gap AS g (tenant_id, copy_id, resource, crm_id, code, message, since)
     SELECT $1, $2, $3, r."crmId", r.code, r.message, $5
     FROM jsonb_to_recordset($4::jsonb) AS r ("crmId" bigint, code text, message text)
     ON CONFLICT (tenant_id, copy_id, resource, crm_id) DO UPDATE SET code = EXCLUDED.code, message = EXCLUDED.message
     WHERE (g.code, g.message) IS DISTINCT FROM (EXCLUDED.code, EXCLUDED.message)`,
    [tenantId, copyId, resource, JSON.stringify(values), now],
  );
}

/** A whole list that could not be read, as whoever reads an answer is told. */
export function gapOf(resource: SyncResource, error: CrmError): FoundGap {
  const list = resource.toLowerCase().replace("_", " ");
  const message = `The CRM's ${list} could not be read; what is shown of them may be missing or old. A ${LATER_SYNC}`;
  const code = error.code === "NOT_FOUND" ? "CRM_REFUSED" : GAP_CODE_OF[error.code];
  return { code, message };
}

/** One whole walk may skip a record by a glitch: rather a gap for too long than a hole that nobody sees. */
const SHOWN_WITHIN_MS = 3 * DAY_MS;

/** Keeps what could not be read of a page, with the reason; what is readable now is not missing any more. */
export async function keepAside(
  { tenantId, copyId, rows }: CopyScope,
  resource: SyncResource,
  { records, rejected }: Pick<CrmPage<{ id: number }>, "records" | "rejected">,
  now: Date,
): Promise<void> {
  const lastOfEachKey = [...new Map(rejected.map((record) => [record.key, record])).values()];
  await rows(
    `WITH mended AS (
       DELETE FROM rejected_record x
       WHERE x.tenant_id = $1 AND x.copy_id = $2 AND x.resource = $3 AND x.record_key = ANY ($4::text[])
     )
     INSERT INTO rejected_record AS x (tenant_id, copy_id, resource, record_key, reason, payload, deal_id, since, seen_at)
     SELECT $1, $2, $3, r.key, r.reason, coalesce(r.payload, 'null'), substring(r.payload ->> 'deal_id' FROM '^[0-9]{1,18}$')::bigint, $6, $6
     FROM jsonb_to_recordset($5::jsonb) AS r (key text, reason text, payload jsonb)
     ON CONFLICT (tenant_id, copy_id, resource, record_key)
     DO UPDATE SET reason = EXCLUDED.reason, payload = EXCLUDED.payload, deal_id = EXCLUDED.deal_id, seen_at = EXCLUDED.seen_at`,
    [tenantId, copyId, resource, records.map(({ id }) => id), jsonRows(lastOfEachKey), now],
  );
}

/** The whole list was shown since `beganAt`: what could not be read before, and was not shown for long, is gone from the CRM. */
export async function forgetRejected(
  { tenantId, copyId, typed }: CopyScope,
  resource: SyncResource,
  beganAt: Date,
  now: Date,
): Promise<void> {
  const seenAt = LessThan(new Date(Math.min(beganAt.getTime(), now.getTime() - SHOWN_WITHIN_MS)));
  await typed((orm) => orm.delete(RejectedRecordRow, { tenantId, copyId, resource, seenAt }));
}

/** Unknown ones that are kept of a list; with more, one may be looked for again. */
const MOST_MISSING = 1_000;

/** A list was read for these, among others: what it still does not have it need not be read for again. */
export async function noteMissing(
  { tenantId, copyId, rows, metadata }: CopyScope,
  list: ListResource,
  unknown: readonly Unknown[],
): Promise<void> {
  await rows(
    `UPDATE sync_list l SET missing = ARRAY(SELECT one.id FROM unnest(ARRAY(
       SELECT DISTINCT u.id FROM unnest($4::bigint[]) AS u (id) WHERE NOT EXISTS (
         SELECT 1 FROM ${metadata(LISTS[list].entity).tableName} n WHERE n.tenant_id = $1 AND n.copy_id = $2 AND n.crm_id = u.id)
     ) || l.missing) AS one (id) LIMIT ${MOST_MISSING}) WHERE l.tenant_id = $1 AND l.copy_id = $2 AND l.resource = $3`,
    [tenantId, copyId, list, unknown.flatMap(({ named, id }) => (named === list ? [id] : []))],
  );
}
