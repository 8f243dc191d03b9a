import type { CopyScope } from "../../database/database";
import { type ListOrder, type Page, type PageRequest, readPage, type Step } from "../../database/keyset";
import { OrganizationRow, PersonRow } from "../../entities/contact";
import { isMatched } from "../records";

/** The CRM counts its ids up, and they never change: a name may, and may be of any length (decision 0026). */
export const NEWEST_IN_CRM: ListOrder = { direction: "DESC", keys: [{ sql: "t.crm_id", type: "integer" }] };

/** @param address normalized; null: whatever address */
export function readPersons(copy: CopyScope, address: string | null, page: PageRequest): Promise<Page<PersonRow>> {
  if (address === null) return readMatchedOnes(copy, PersonRow, "PERSON", page);
  const where = [
    "t.copy_id = $2",
    isMatched("PERSON"),
    "t.crm_id IN (SELECT a.person_id FROM person_address a WHERE a.tenant_id = $1 AND a.copy_id = $2 AND a.address = $3)",
  ];
  return readPage(copy, PersonRow, { where, parameters: [copy.copyId, address] }, page);
}

export const readOrganizations = (copy: CopyScope, page: PageRequest): Promise<Page<OrganizationRow>> =>
  readMatchedOnes(copy, OrganizationRow, "ORGANIZATION", page);

/**
 * Goes from one matched record to the next in the key of `matched_record`, past all meetings of each: a page costs as many
 * look-ups, however many records there are and however many meetings each was in.
 * Whether a record is there is asked of each by itself: an EXISTS was joined with all records of the copy.
 */
function readMatchedOnes<T extends PersonRow | OrganizationRow>(
  copy: CopyScope,
  entity: new () => T,
  kind: "PERSON" | "ORGANIZATION",
  page: PageRequest,
): Promise<Page<T>> {
  const table = kind.toLowerCase();
  const next = (condition: string) => `SELECT t.crm_id FROM matched_record t
    WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.entity = '${kind}' ${condition}
      AND (SELECT true FROM ${table} r WHERE r.tenant_id = $1 AND r.copy_id = $2 AND r.crm_id = t.crm_id)
    ORDER BY t.crm_id DESC LIMIT 1`;
  const from = ({ beyond, limit }: Step) => `(
    WITH RECURSIVE walk AS (
      (${next(beyond)})
      UNION ALL
      SELECT found.crm_id FROM walk CROSS JOIN LATERAL (${next("AND t.crm_id < walk.crm_id")}) found
    ) SELECT crm_id FROM walk LIMIT ${limit}
  ) walked CROSS JOIN LATERAL (
    SELECT * FROM ${table} t WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.crm_id = walked.crm_id LIMIT 1) t`;
  return readPage(copy, entity, { from, where: [], parameters: [copy.copyId] }, page);
}
