import { CrmApi } from "../../crm/api";
import type { TenantScope } from "../../database/database";
import { hasLiveJob } from "../../database/jobs";
import { FieldWriteRow } from "../../entities/field-write";
import { MINUTE_MS } from "../../platform/clock";
import { forEachLogged } from "../../platform/periodic";
import { isOfTheCrm, leaveAbandoned, MOST_AT_ONCE, WHILE_CONNECTED, type WriteRef } from "../unsettled";
import { copyFields } from "./copied-fields";
import { enqueueLook, FIELD_LOOK_UP, leaveUnknown, settle } from "./field-receipts";
import type { FieldWriteParts } from "./field-writes";
import { nextLook, verdictOf } from "./look-plan";
import { FIELD_GONE, type FieldOutcome } from "./record-batch";
import { isApplied } from "./values";

/** A job that was taken so long ago has gone with the worker that took it. */
const LOST_JOB_MS = MINUTE_MS;
const WITHOUT_JOB = `
  WITH unknown AS MATERIALIZED (
    SELECT w.tenant_id, w.id, w.sent_at FROM field_write w ${WHILE_CONNECTED} WHERE w.state = 'UNKNOWN'
  )
  SELECT tenant_id AS "tenantId", id AS "writeId" FROM unknown
  WHERE NOT ${hasLiveJob(FIELD_LOOK_UP, "unknown.id", "$1")} ORDER BY sent_at LIMIT ${MOST_AT_ONCE}`;

const NOT_THERE: FieldOutcome = {
  state: "FAILED",
  failure: {
    code: "ANSWER_LOST",
    message: "the CRM's answer was lost, and the field holds another value. Write it again with a new idempotency key.",
  },
};

/** Finds out what became of values whose answer was lost, by reading the record and never by sending again. */
export class FieldLookUps {
  constructor(private readonly parts: FieldWriteParts) {}

  /** Sendings whose process is gone become UNKNOWN, and looks whose job is gone get another. */
  async sweep(): Promise<void> {
    const { database, clock, logger } = this.parts;
    const now = clock();
    await leaveAbandoned(this.parts, "field", leaveUnknown, now);
    const without = await database.acrossTenants<WriteRef>(WITHOUT_JOB, [new Date(now.getTime() - LOST_JOB_MS)], {
      tenantId: "number",
      writeId: "text",
    });
    await forEachLogged(
      without,
      ({ tenantId, writeId }) => enqueueLook(database.tenant(tenantId), writeId, now),
      logger,
    );
  }

  /** Looks once. The next look is planned before this one begins, so a crash in between loses none. */
  async lookUp({ tenantId, writeId }: WriteRef): Promise<void> {
    const { database, logger } = this.parts;
    const planned = await database.tenant(tenantId).transaction((scope) => this.#plan(scope, writeId));
    if (!planned) return;
    try {
      await this.#look(planned.receipt, planned.copyId);
    } catch (error) {
      if (!isOfTheCrm(error)) throw error;
      logger.warn({ tenantId, writeId, err: error }, "a field could not be looked at; the next look is planned");
    }
  }

  /** null where there is nothing to look at, or nobody to ask: then a sweep comes back to it. */
  async #plan(scope: TenantScope, writeId: string): Promise<{ receipt: FieldWriteRow; copyId: number } | null> {
    const [found] = await scope.entities<FieldWriteRow, { looking_copy_id: number }>(
      FieldWriteRow,
      `SELECT w.*, s.id AS looking_copy_id FROM field_write w ${WHILE_CONNECTED}
       WHERE w.tenant_id = $1 AND w.id = $2 AND w.state = 'UNKNOWN' FOR UPDATE OF w`,
      [scope.tenantId, writeId],
    );
    if (!found) return null;
    const { looking_copy_id: copyId, ...receipt } = found;
    const now = this.parts.clock();
    await enqueueLook(scope, writeId, nextLook(receipt.sentAt ?? now, now));
    return { receipt, copyId };
  }

  async #look(
    { tenantId, id, entity, targetId, fieldKey, value, sentAt }: FieldWriteRow,
    copyId: number,
  ): Promise<void> {
    const { database, http, crmBaseUrl, tokensOf, purseOf, mappings, clock, metrics, logger } = this.parts;
    const begunAt = clock();
    const list = await mappings.fields(tenantId, entity);
    if (!list.ok) return;
    const field = list.value.find(({ key }) => key === fieldKey);
    const tokens = tokensOf(tenantId, copyId);
    const api = new CrmApi({ http, baseUrl: crmBaseUrl, tokens, purse: purseOf?.(tenantId, copyId) });
    const seen = await api.customFieldsOf(entity, targetId);
    const holds = field !== undefined && isApplied(field.type, value, seen.customFields[fieldKey]);
    const state = verdictOf(sentAt ?? begunAt, begunAt, holds);
    if (state === "UNKNOWN") return;
    const outcome: FieldOutcome = state === "WRITTEN" ? { state } : field ? NOT_THERE : FIELD_GONE;
    const settled = await database.tenant(tenantId).transaction(async (scope) => {
      const row = await settle(scope, id, outcome, clock());
      await copyFields(scope, copyId, entity, seen);
      return row;
    });
    metrics?.crmWrites.inc({ kind: "field", state: settled.state });
    logger.info({ tenantId, writeId: id, state: settled.state }, "a lost answer was looked up");
  }
}
