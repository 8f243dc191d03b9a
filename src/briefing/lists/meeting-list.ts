import { type ListOrder, type Page, type PageRequest, readPage } from "../../database/keyset";
import type { TenantScope } from "../../database/tenant-door";
import { MeetingRow } from "../../entities/meeting";

export const LATEST_START: ListOrder = {
  direction: "DESC",
  keys: [
    { sql: "t.starts_at", type: "instant" },
    { sql: "t.id", type: "uuid" },
  ],
};

/** The tenant's own meetings, whether anything is connected or not. */
export function readMeetings({ manager, tenantId }: TenantScope, page: PageRequest): Promise<Page<MeetingRow>> {
  return readPage(manager, MeetingRow, { where: ["t.tenant_id = $1"], parameters: [tenantId] }, page);
}
