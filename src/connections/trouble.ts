import type { TenantScope } from "../database/database";
import { CONNECTION_CHANGED, notify } from "../database/notifications";

const TROUBLES = [
  "CRM_UNAVAILABLE",
  "RATE_LIMITED",
  "BUDGET_LOW",
  "CRM_REFUSED",
  "CRM_ACCOUNT_CLOSED",
  "CRM_ANSWER_UNREADABLE",
  "SERVICE_MISCONFIGURED",
] as const;
export type TroubleCode = (typeof TROUBLES)[number];

/** What a renewed access token shows to be over; a rate limit, for one, it does not. */
export const TOKEN_TROUBLES: readonly TroubleCode[] = ["CRM_UNAVAILABLE", "SERVICE_MISCONFIGURED"];

export function isTrouble(code: string): code is TroubleCode {
  return (TROUBLES as readonly string[]).includes(code);
}

/** Something temporary that keeps a connected CRM from working; `message` is for the customer's admin. */
export interface Trouble {
  code: TroubleCode;
  message: string;
}

/** Notes trouble of a connected copy. Trouble of the same kind goes on since it was first seen. */
export async function noteTrouble(scope: TenantScope, copyId: number, trouble: Trouble, now: Date): Promise<void> {
  const noted = await scope.rows<{ is_new: boolean }>(
    `UPDATE connection c SET trouble_code = $3, trouble_message = $4, trouble_last_seen_at = $5,
       trouble_since = CASE WHEN old.trouble_code = $3 THEN old.trouble_since ELSE $5 END
     FROM (SELECT tenant_id, trouble_code, trouble_since FROM connection WHERE tenant_id = $1 FOR UPDATE) old
     WHERE c.tenant_id = $1 AND c.copy_id = $2 AND c.state = 'CONNECTED'
     RETURNING old.trouble_code IS DISTINCT FROM $3 AS is_new`,
    [scope.tenantId, copyId, trouble.code, trouble.message, now],
    { is_new: "flag" },
  );
  if (noted[0]?.is_new) await notify(scope, CONNECTION_CHANGED);
}

/** It works again. @param codes which trouble is shown to be over by that; all where nothing is said */
export async function endTrouble(
  scope: TenantScope,
  copyId: number,
  codes: readonly TroubleCode[] = TROUBLES,
): Promise<void> {
  const ended = await scope.rows(
    `UPDATE connection SET trouble_code = NULL, trouble_message = NULL, trouble_since = NULL, trouble_last_seen_at = NULL
     WHERE tenant_id = $1 AND copy_id = $2 AND trouble_code = ANY ($3) RETURNING 1 AS ended`,
    [scope.tenantId, copyId, codes],
  );
  if (ended.length > 0) await notify(scope, CONNECTION_CHANGED);
}
