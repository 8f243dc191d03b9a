import type { CrmCurrentUser } from "../crm/parsing/records";
import { CONNECTION_CHANGED, notify } from "../database/between-processes";
import type { CopyScope, TenantScope } from "../database/database";
import { jsonRows } from "../database/upsert";
import { SyncedCopyRow } from "../entities/connection";
import { asOf, readCopyState } from "./completeness";
import type { Bound } from "./connection";

/** Whose view the copy holds; null where there is none. */
export async function boundOf({ tenantId, typed }: TenantScope, copyId: number): Promise<Bound | null> {
  const copy = await typed((orm) => orm.findOneBy(SyncedCopyRow, { tenantId, id: copyId }));
  return copy && { companyId: copy.crmCompanyId, userId: copy.crmUserId };
}

/** What an answer of `users/me` says besides: by which clocks the user who authorized lives, and what the company is called by now. */
export async function followCompany(
  scope: TenantScope,
  copyId: number,
  { timeZone, companyName, companyDomain }: Pick<CrmCurrentUser, "timeZone" | "companyName" | "companyDomain">,
): Promise<void> {
  const renamed = await scope.rows(
    `WITH zone AS (UPDATE synced_copy SET time_zone = $3 WHERE tenant_id = $1 AND id = $2 AND time_zone <> $3)
     UPDATE connection SET company_name = $4, company_domain = $5
     WHERE tenant_id = $1 AND copy_id = $2 AND (company_name, company_domain) IS DISTINCT FROM ($4, $5) RETURNING 1 AS renamed`,
    [scope.tenantId, copyId, timeZone, companyName, companyDomain],
  );
  if (renamed.length > 0) await notify(scope, CONNECTION_CHANGED);
}

/** The user who authorized is shown as the copy's list of users has that one: renamed in the CRM, renamed here. */
export async function followUser(scope: TenantScope, copyId: number): Promise<void> {
  const changed = await scope.rows(
    `UPDATE connection c SET bound_email = u.email, bound_user_name = u.name
     FROM synced_copy s JOIN crm_user u ON u.tenant_id = $1 AND u.copy_id = $2 AND u.crm_id = s.crm_user_id
     WHERE c.tenant_id = $1 AND c.copy_id = $2 AND s.tenant_id = $1 AND s.id = $2
       AND (c.bound_email, c.bound_user_name) IS DISTINCT FROM (u.email, u.name) RETURNING 1 AS changed`,
    [scope.tenantId, copyId],
  );
  if (changed.length > 0) await notify(scope, CONNECTION_CHANGED);
}

/** A record that has just come into the copy. */
interface Newcomer {
  id: number;
  addTime: string | null;
}

/**
 * SQL: of records that have just come into the copy ($3, {@link newcomers}) one that could have been read a day ago or longer, and was
 * readable, was out of sight: so may others have been that are in sight by now, and none of them is told as a change. It came late. $4: now
 */
export const LATE = (resource: "DEALS" | "PERSONS") => `
  UPDATE sync_list l SET late_at = $4 WHERE l.tenant_id = $1 AND l.copy_id = $2 AND l.resource = '${resource}' AND EXISTS (
    SELECT 1 FROM jsonb_to_recordset($3::jsonb) AS r (id bigint, "addTime" timestamptz)
    WHERE r."addTime" < l.watermark - interval '1 day' AND NOT EXISTS (SELECT 1 FROM rejected_record x
      WHERE x.tenant_id = $1 AND x.copy_id = $2 AND x.resource = '${resource}' AND x.record_key = r.id::text))`;

export const newcomers = (came: readonly Newcomer[]) => jsonRows(came.map(({ id, addTime }) => ({ id, addTime })));

/** Deals of one owner, or of one pipeline; null: of all that are not known. */
export interface SeenDeals {
  crmId: number | null;
  deals: number;
  openDeals: number;
}

/** What the copy holds, which is what the user who authorized is shown. */
export interface Visibility {
  asOf: Date | null;
  deals: number;
  persons: number;
  organizations: number;
  byOwner: SeenDeals[];
  byPipeline: SeenDeals[];
  /** Active users who own nothing of it. */
  unseenIds: number[];
}

/** Without one of them it would say too little. */
const COUNTED = ["USERS", "ORGANIZATIONS", "PERSONS", "DEALS"] as const;
/** Rows of a table for people; a company has some hundred users. */
const MOST_ROWS = 500;

type Counted = SeenDeals & { kind: "OWNER" | "PIPELINE" | "PERSONS" | "ORGANIZATIONS" | "UNSEEN" };

/** Each table is gone through once. */
const COUNT = `
  WITH deals AS MATERIALIZED (
    SELECT d.owner_id, d.pipeline_id, count(*) AS n, count(*) FILTER (WHERE d.status = 'open') AS open FROM deal d
    WHERE d.tenant_id = $1 AND d.copy_id = $2 GROUP BY d.owner_id, d.pipeline_id
  ), persons AS MATERIALIZED (
    SELECT p.owner_id, count(*) AS n FROM person p WHERE p.tenant_id = $1 AND p.copy_id = $2 GROUP BY p.owner_id
  ), organizations AS MATERIALIZED (
    SELECT o.owner_id, count(*) AS n FROM organization o WHERE o.tenant_id = $1 AND o.copy_id = $2 GROUP BY o.owner_id
  ), owners AS (
    SELECT owner_id FROM deals UNION SELECT owner_id FROM persons UNION SELECT owner_id FROM organizations
  )
  SELECT 'OWNER' AS kind, u.crm_id AS "crmId", sum(deals.n)::int AS deals, sum(deals.open)::int AS "openDeals"
  FROM deals LEFT JOIN crm_user u ON u.tenant_id = $1 AND u.copy_id = $2 AND u.crm_id = deals.owner_id GROUP BY u.crm_id
  UNION ALL
  SELECT 'PIPELINE', l.crm_id, sum(deals.n)::int, sum(deals.open)::int
  FROM deals LEFT JOIN pipeline l ON l.tenant_id = $1 AND l.copy_id = $2 AND l.crm_id = deals.pipeline_id GROUP BY l.crm_id
  UNION ALL SELECT 'PERSONS', NULL, coalesce(sum(n), 0)::int, 0 FROM persons
  UNION ALL SELECT 'ORGANIZATIONS', NULL, coalesce(sum(n), 0)::int, 0 FROM organizations
  UNION ALL
  SELECT 'UNSEEN', u.crm_id, 0, 0 FROM crm_user u WHERE u.tenant_id = $1 AND u.copy_id = $2 AND u.active
    AND NOT EXISTS (SELECT 1 FROM owners WHERE owners.owner_id = u.crm_id)
  ORDER BY kind, deals DESC, "crmId"`;

/** What the permissions of the user who authorized show (decision 0084); counted when it is asked for, at no call to the CRM. */
export async function readVisibility(copy: CopyScope): Promise<Visibility> {
  const { tenantId, copyId, rows } = copy;
  const shape = { kind: "text", crmId: "number", deals: "number", openDeals: "number" } as const;
  const [counted, { lists }] = await Promise.all([
    rows<Counted>(COUNT, [tenantId, copyId], shape),
    readCopyState(copy),
  ]);
  const of = (kind: Counted["kind"]) => counted.filter((row) => row.kind === kind);
  const sum = (kind: Counted["kind"]) => of(kind).reduce((total, { deals }) => total + deals, 0);
  return {
    asOf: asOf(lists, COUNTED, [...COUNTED, "PIPELINES"]),
    deals: sum("OWNER"),
    persons: sum("PERSONS"),
    organizations: sum("ORGANIZATIONS"),
    byOwner: of("OWNER").slice(0, MOST_ROWS),
    byPipeline: of("PIPELINE").slice(0, MOST_ROWS),
    unseenIds: of("UNSEEN")
      .flatMap(({ crmId }) => crmId ?? [])
      .slice(0, MOST_ROWS),
  };
}
