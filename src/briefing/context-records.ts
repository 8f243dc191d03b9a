import type { CopyScope } from "../database/database";
import { ActivityRow } from "../entities/activity";
import type { MatchedEntity } from "../entities/meeting";
import { type NoteHead, NoteRow } from "../entities/note";
import { isOurNote } from "./notes";

/** The column by which activities and notes hang on a record. The caller has read that record as a matched one. */
const COLUMN: Record<MatchedEntity, string> = { DEAL: "deal_id", PERSON: "person_id", ORGANIZATION: "organization_id" };

type OfParent = { parent_id: number };
/** Whether this service wrote it. */
type Authored = { ours: boolean };

/** The latest done activities of records, newest first by when they took place; planned ones are never among them. */
export function readRecentActivities(
  { tenantId, copyId, entities }: CopyScope,
  of: MatchedEntity,
  ids: readonly number[],
  first: number,
): Promise<(ActivityRow & OfParent)[]> {
  return entities<ActivityRow, OfParent>(
    ActivityRow,
    `SELECT found.*, parent.id AS parent_id FROM unnest($3::bigint[]) AS parent (id)
     CROSS JOIN LATERAL (
       SELECT t.* FROM activity t
       WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.${COLUMN[of]} = parent.id AND t.happened_at IS NOT NULL
       ORDER BY t.happened_at DESC, t.crm_id DESC LIMIT $4
     ) found`,
    [tenantId, copyId, ids, first],
  );
}

/**
 * The next planned activity of each deal: the earliest undone one that is due at or after `now`, or on this day (UTC)
 * where it has no time. What is overdue is not next.
 */
export function readNextActivities(
  { tenantId, copyId, entities }: CopyScope,
  dealIds: readonly number[],
  now: Date,
): Promise<(ActivityRow & OfParent)[]> {
  return entities<ActivityRow, OfParent>(
    ActivityRow,
    `SELECT DISTINCT ON (t.deal_id) t.*, t.deal_id AS parent_id FROM activity t
     WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.deal_id = ANY ($3) AND NOT t.done
       AND (t.due_at >= $4 OR (NOT t.due_has_time AND t.due_at >= date_trunc('day', $4::timestamptz, 'UTC')))
     ORDER BY t.deal_id, t.due_at, t.crm_id`,
    [tenantId, copyId, dealIds, now],
  );
}

/** Without the content, which is large: `notes.ts` reads what is shown of it. */
const NOTE_HEAD = (note: string) =>
  ["tenant_id", "copy_id", "crm_id", "author_id", "deal_id", "person_id", "organization_id", "add_time", "update_time"]
    .map((column) => `${note}.${column}`)
    .join(", ");

/** The latest notes of records, newest first. */
export function readRecentNotes(
  { tenantId, copyId, entities }: CopyScope,
  of: MatchedEntity,
  ids: readonly number[],
  first: number,
): Promise<(NoteHead & OfParent & Authored)[]> {
  return entities<NoteHead, OfParent & Authored>(
    NoteRow,
    `SELECT ${NOTE_HEAD("found")}, parent.id AS parent_id, ${isOurNote("found")} AS ours FROM unnest($3::bigint[]) AS parent (id)
     CROSS JOIN LATERAL (
       SELECT t.* FROM note t WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.${COLUMN[of]} = parent.id
       ORDER BY t.add_time DESC, t.crm_id DESC LIMIT $4
     ) found`,
    [tenantId, copyId, ids, first],
  );
}

/** An activity or note by its own id is readable where it hangs on a matched record. */
const HANGS_ON_MATCHED = `EXISTS (
  SELECT 1 FROM matched_record m
  WHERE m.tenant_id = $1 AND m.copy_id = $2
    AND (m.entity, m.crm_id) IN (('DEAL', t.deal_id), ('PERSON', t.person_id), ('ORGANIZATION', t.organization_id)))`;

export function readActivities(scope: CopyScope, ids: readonly number[]): Promise<ActivityRow[]> {
  const sql = `SELECT t.* FROM activity t
    WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.crm_id = ANY ($3) AND ${HANGS_ON_MATCHED}`;
  return scope.entities(ActivityRow, sql, [scope.tenantId, scope.copyId, ids]);
}

export function readNotes(scope: CopyScope, ids: readonly number[]): Promise<(NoteHead & Authored)[]> {
  const sql = `SELECT ${NOTE_HEAD("t")}, ${isOurNote("t")} AS ours FROM note t
    WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.crm_id = ANY ($3) AND ${HANGS_ON_MATCHED}`;
  return scope.entities<NoteHead, Authored>(NoteRow, sql, [scope.tenantId, scope.copyId, ids]);
}
