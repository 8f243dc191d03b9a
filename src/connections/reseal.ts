import { recordAudit } from "../auth/audit";
import type { Database } from "../database/database";
import type { Clock } from "../platform/clock";
import type { Logger } from "../platform/logger";
import type { Credentials } from "./credentials";

export interface Resealed {
  /** Credentials that were sealed anew under the first key. */
  resealed: number;
  /** Those that were sealed under it already. */
  unchanged: number;
}

/** Seals every credential under the first configured key, one tenant at a time, while workers and renewals go on. */
export async function resealAll(
  database: Database,
  credentials: Credentials,
  clock: Clock,
  logger: Logger,
): Promise<Resealed> {
  const done: Resealed = { resealed: 0, unchanged: 0 };
  const sealed = await database.acrossTenants<{ tenant_id: number }>(
    "SELECT tenant_id FROM credential ORDER BY tenant_id",
  );
  for (const { tenant_id: tenantId } of sealed) {
    const changed = await database.tenant(tenantId).transaction(async (scope) => {
      if (!(await credentials.reseal(scope))) return false;
      await recordAudit(scope, logger, { action: "KEYS_ROTATED", actor: null, at: clock() });
      return true;
    });
    if (changed) done.resealed += 1;
    else done.unchanged += 1;
  }
  return done;
}
