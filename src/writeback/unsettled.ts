import { z } from "zod";
import { ConnectionGoneError, NeedsReauthorizationError } from "../connections/connection";
import { CrmError } from "../crm/errors";
import { OAuthError } from "../crm/oauth";
import type { TenantScope } from "../database/database";
import type { WriteReceipt } from "../entities/write-receipt";
import { forEachLogged } from "../platform/periodic";
import { ABANDONED_AFTER_MS } from "./look-up-plan";
import type { WritebackParts } from "./writeback-parts";

/** A receipt, as its jobs name it. */
export const WRITE_REF = z.object({ tenantId: z.int(), writeId: z.string() });
export type WriteRef = z.infer<typeof WRITE_REF>;

/** In one sweep; the next one finds the rest. */
export const MOST_AT_ONCE = 500;

/** SQL: joins a receipt `w` with the connected copy `s` of the CRM company that it was sent to. */
export const WHILE_CONNECTED = `
  JOIN connection c ON c.tenant_id = w.tenant_id AND c.state = 'CONNECTED'
  JOIN synced_copy s ON s.tenant_id = c.tenant_id AND s.id = c.copy_id AND s.crm_company_id = w.crm_company_id`;

/** Sendings whose process is gone become UNKNOWN. */
export async function leaveAbandoned(
  { database, logger, metrics }: WritebackParts,
  kind: "note" | "field",
  leaveUnknown: (scope: TenantScope, writeId: string, now: Date) => Promise<WriteReceipt>,
  now: Date,
): Promise<void> {
  const abandoned = await database.acrossTenants<WriteRef>(
    `SELECT tenant_id AS "tenantId", id AS "writeId" FROM ${kind}_write
     WHERE state = 'SENDING' AND requested_at < $1 ORDER BY requested_at LIMIT ${MOST_AT_ONCE}`,
    [new Date(now.getTime() - ABANDONED_AFTER_MS)],
    { tenantId: "number", writeId: "text" },
  );
  const leave = async ({ tenantId, writeId }: WriteRef) => {
    const left = await database.tenant(tenantId).transaction((scope) => leaveUnknown(scope, writeId, now));
    // Its sender may have settled it at the last moment, and has counted it.
    if (left.state === "UNKNOWN") metrics?.crmWrites.inc({ kind, state: left.state });
  };
  await forEachLogged(abandoned, leave, logger);
}

/** Whatever the CRM, its token endpoint or a connection that has just ended may answer: the next look-up asks again. */
export function isOfTheCrm(error: unknown): boolean {
  return [CrmError, OAuthError, NeedsReauthorizationError, ConnectionGoneError].some((kind) => error instanceof kind);
}
