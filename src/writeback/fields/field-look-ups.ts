import { ConnectionGoneError, NeedsReauthorizationError } from "../../connections/errors";
import { CrmApi } from "../../crm/api";
import { CrmError } from "../../crm/errors";
import { OAuthError } from "../../crm/oauth";
import { hasLiveJob } from "../../database/queue";
import { entityRows } from "../../database/rows";
import type { TenantScope } from "../../database/tenant-door";
import { FieldWriteRow } from "../../entities/field-write";
import { MINUTE_MS } from "../../platform/clock";
import { ABANDONED_AFTER_MS } from "../look-up-plan";
import { copyFields } from "./copied-fields";
import { enqueueLook, FIELD_LOOK_UP_JOB, type FieldWriteRef, leaveUnknown, settle } from "./field-receipts";
import type { FieldWriteParts } from "./field-writes";
import { nextLook, verdictOf } from "./look-plan";
import type { FieldOutcome } from "./record-batch";
import { isApplied } from "./values";

/** A job that was taken so long ago has gone with the worker that took it. */
const LOST_JOB_MS = MINUTE_MS;
/** In one sweep; the next one finds the rest. */
const MOST_AT_ONCE = 500;

const ABANDONED = `
  SELECT tenant_id AS "tenantId", id AS "writeId" FROM field_write
  WHERE state = 'SENDING' AND requested_at < $1 ORDER BY requested_at LIMIT ${MOST_AT_ONCE}`;
const WHILE_CONNECTED = `
  JOIN connection c ON c.tenant_id = w.tenant_id AND c.state = 'CONNECTED'
  JOIN synced_copy s ON s.tenant_id = c.tenant_id AND s.id = c.copy_id AND s.crm_company_id = w.crm_company_id`;
const WITHOUT_JOB = `
  SELECT w.tenant_id AS "tenantId", w.id AS "writeId" FROM field_write w ${WHILE_CONNECTED}
  WHERE w.state = 'UNKNOWN' AND NOT ${hasLiveJob(FIELD_LOOK_UP_JOB, "w.id", "$1")}
  ORDER BY w.sent_at LIMIT ${MOST_AT_ONCE}`;

const FAILED = (code: "FIELD_NOT_FOUND" | "ANSWER_LOST", message: string): FieldOutcome => ({
  state: "FAILED",
  failure: { code, message },
});
const FIELD_GONE = FAILED("FIELD_NOT_FOUND", "the CRM no longer has this field. Nominate another.");
const NOT_THERE = FAILED(
  "ANSWER_LOST",
  "the CRM's answer was lost, and the field holds another value. Write it again with a new idempotency key.",
);

/** Finds out what became of values whose answer was lost, by reading the record and never by sending again. */
export class FieldLookUps {
  constructor(private readonly parts: FieldWriteParts) {}

  /** Sendings whose process is gone become UNKNOWN, and looks whose job is gone get another. */
  async sweep(): Promise<void> {
    const { door, clock, metrics } = this.parts;
    const now = clock();
    const before = (ms: number) => [new Date(now.getTime() - ms)];
    for (const { tenantId, writeId } of await door.everyTenant<FieldWriteRef>(ABANDONED, before(ABANDONED_AFTER_MS))) {
      await door.transaction(tenantId, (scope) => leaveUnknown(scope, writeId, now));
      metrics?.crmWrites.inc({ kind: "field", state: "UNKNOWN" });
    }
    for (const { tenantId, writeId } of await door.everyTenant<FieldWriteRef>(WITHOUT_JOB, before(LOST_JOB_MS))) {
      await enqueueLook(door.enter(tenantId), writeId, now);
    }
  }

  /** Looks once. The next look is planned before this one begins, so a crash in between loses none. */
  async lookUp({ tenantId, writeId }: FieldWriteRef): Promise<void> {
    const { door, logger } = this.parts;
    const planned = await door.transaction(tenantId, (scope) => this.#plan(scope, writeId));
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
    const [found] = await entityRows<FieldWriteRow, { looking_copy_id: number }>(
      scope.manager,
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
    const { door, http, crmBaseUrl, tokensOf, mappings, clock, metrics, logger } = this.parts;
    const begunAt = clock();
    const list = await mappings.fields(tenantId, entity);
    if (!list.ok) return;
    const field = list.value.find(({ key }) => key === fieldKey);
    const api = new CrmApi(http, crmBaseUrl, tokensOf(tenantId, copyId));
    const seen = await api.customFieldsOf(entity, targetId);
    const holds = field !== undefined && isApplied(field.type, value, seen.customFields[fieldKey]);
    const state = verdictOf(sentAt ?? begunAt, begunAt, holds);
    if (state === "UNKNOWN") return;
    const outcome: FieldOutcome = state === "WRITTEN" ? { state } : field ? NOT_THERE : FIELD_GONE;
    await door.transaction(tenantId, async (scope) => {
      await settle(scope, id, outcome, clock());
      await copyFields(scope, copyId, entity, seen);
    });
    metrics?.crmWrites.inc({ kind: "field", state });
    logger.info({ tenantId, writeId: id, state }, "a lost answer was looked up");
  }
}

/** Whatever the CRM, its token endpoint or a connection that has just ended may answer: the next look asks again. */
function isOfTheCrm(error: unknown): boolean {
  return [CrmError, OAuthError, NeedsReauthorizationError, ConnectionGoneError].some((kind) => error instanceof kind);
}
