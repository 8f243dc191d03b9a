import type { CopyScope } from "../../database/database";
import { type ListOrder, type Page, type PageRequest, readPage } from "../../database/keyset";
import { OrganizationRow } from "../../entities/organization";
import { PersonRow } from "../../entities/person";
import { isMatched } from "../records";

/** The CRM counts its ids up, and they never change: a name may, and may be of any length (decision 0026). */
export const NEWEST_IN_CRM: ListOrder = { direction: "DESC", keys: [{ sql: "t.crm_id", type: "integer" }] };

/** @param address normalized; null: whatever address */
export function readPersons(copy: CopyScope, address: string | null, page: PageRequest): Promise<Page<PersonRow>> {
  const where = ["t.copy_id = $2", isMatched("PERSON")];
  const parameters: unknown[] = [copy.copyId];
  if (address !== null) {
    where.push(
      "t.crm_id IN (SELECT a.person_id FROM person_address a WHERE a.tenant_id = $1 AND a.copy_id = $2 AND a.address = $3)",
    );
    parameters.push(address);
  }
  return readPage(copy, PersonRow, { where, parameters }, page);
}

export function readOrganizations(copy: CopyScope, page: PageRequest): Promise<Page<OrganizationRow>> {
  const where = ["t.copy_id = $2", isMatched("ORGANIZATION")];
  return readPage(copy, OrganizationRow, { where, parameters: [copy.copyId] }, page);
}
