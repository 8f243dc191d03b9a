import type { TenantScope } from "../../database/database";
import { type ListOrder, type Page, type PageRequest, readPage } from "../../database/keyset";
import { MeetingRow } from "../../entities/meeting";

export const LATEST_START: ListOrder = {
  direction: "DESC",
  keys: [
    { sql: "t.starts_at", type: "instant" },
    { sql: "t.id", type: "uuid" },
  ],
};

/** The tenant's own meetings, whether anything is connected or not. */
export function readMeetings(scope: TenantScope, page: PageRequest): Promise<Page<MeetingRow>> {
  return readPage(scope, MeetingRow, { where: [], parameters: [] }, page);
}
