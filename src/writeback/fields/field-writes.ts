import type { Actor } from "../../auth/actor";
import type { PolicyRefusal } from "../../auth/policies";
import { type FieldMappings, readFieldMappings } from "../../connections/field-mappings";
import { CrmApi } from "../../crm/api";
import type { CrmCustomFields } from "../../crm/parsing/fields";
import type { TenantScope } from "../../database/database";
import type { FieldWriteRow } from "../../entities/field-write";
import type { MatchedEntity } from "../../entities/matched-record";
import { accepted, type Outcome } from "../../platform/outcome";
import { KEY_REUSED } from "../idempotency";
import { inTime } from "../in-time";
import { Sendings } from "../sendings";
import { holdTargets, type TargetsRefusal } from "../targets";
import type { WriteFailure } from "../write-failure";
import type { WritebackParts } from "../writeback-parts";
import { refusalOfWriter } from "../writers";
import { copyFields } from "./copied-fields";
import { type AskedFields, type FieldsIntent, intentOf } from "./field-input";
import { type FieldsPlan, type PlannedField, type PlanRefusal, planFields } from "./field-plan";
import { findReceipts, insertReceipts, settle } from "./field-receipts";
import { FIELD_GONE, type FieldOutcome, notSent, type RecordReport, writeRecord } from "./record-batch";

export type WriteFieldsRefusal =
  | PolicyRefusal
  | TargetsRefusal
  | PlanRefusal
  | "CRM_UNAVAILABLE"
  | "IDEMPOTENCY_KEY_REUSED";

export interface FieldWriteParts extends WritebackParts {
  mappings: FieldMappings;
}

/** A value with its receipt, as the sender holds it. */
interface Sending extends PlannedField {
  receipt: FieldWriteRow;
}

interface Begun {
  receipts: FieldWriteRow[];
  /** What this caller has to send; empty where another caller made the receipts, or nothing is to be sent. */
  sendings: Sending[];
}

/**
 * Writes nominated fields (decision 0029): the receipts are committed before anything is sent, and whoever finds receipts
 * never sends. What became of a lost answer is found out by looking (`field-look-ups.ts`).
 */
export class FieldWrites {
  readonly #sendings: Sendings<FieldWriteRow[]>;

  constructor(private readonly parts: FieldWriteParts) {
    const isSending = (receipts: FieldWriteRow[]) => receipts.some(({ state }) => state === "SENDING");
    this.#sendings = new Sendings(isSending, parts.waitMs);
  }

  async write(actor: Actor, asked: AskedFields): Promise<Outcome<FieldWriteRow[], WriteFieldsRefusal>> {
    const policy = await refusalOfWriter(this.parts, actor, "writeFields");
    if (policy) return policy;
    const intent = intentOf(asked);
    const earlier = await findReceipts(this.parts.database.tenant(actor.tenantId), intent.idempotencyKey);
    if (earlier.length > 0) return this.#again(earlier, intent);
    const stopped = await this.parts.stopped?.();
    if (stopped) return stopped;
    const begun = await this.#begin(actor, asked, intent);
    if (!begun.ok) return begun;
    const { receipts, sendings } = begun.value;
    if (sendings.length > 0) return accepted(await this.#sendings.track(this.#send(receipts, sendings)));
    return this.#again(receipts, intent);
  }

  close(): Promise<void> {
    return this.#sendings.end();
  }

  /** A value that does not fit its field, as that was last seen, may fit it as it is now: the CRM's list decides. */
  async #begin(actor: Actor, asked: AskedFields, intent: FieldsIntent): Promise<Outcome<Begun, WriteFieldsRefusal>> {
    const { database, mappings } = this.parts;
    const inDoubt = new Set<MatchedEntity>();
    const begun = await database.tenant(actor.tenantId).transaction(async (scope) => {
      const planned = await planOf(scope, asked);
      if (!planned.ok) return planned;
      for (const { target, failure } of planned.value.fields) if (failure) inDoubt.add(target.entity);
      return inDoubt.size > 0 ? null : accepted(await this.#makeReceipts(scope, actor, intent, planned.value));
    });
    if (begun) return begun;
    for (const entity of inDoubt) await mappings.fields(actor.tenantId, entity);
    return database.tenant(actor.tenantId).transaction(async (scope) => {
      const planned = await planOf(scope, asked);
      return planned.ok ? accepted(await this.#makeReceipts(scope, actor, intent, planned.value)) : planned;
    });
  }

  /** Makes the receipts in the transaction that has planned them, and so has proved that the targets are matched. */
  async #makeReceipts(scope: TenantScope, { userId }: Actor, intent: FieldsIntent, plan: FieldsPlan): Promise<Begun> {
    const made = { ...plan, intent, requestedBy: userId, requestedAt: this.parts.clock() };
    const receipts = await insertReceipts(scope, made);
    if (!receipts) return { receipts: await findReceipts(scope, intent.idempotencyKey), sendings: [] };
    const sendings = receipts.flatMap((receipt, position) => {
      const field = plan.fields[position];
      return field && !field.failure ? [{ ...field, receipt }] : [];
    });
    return { receipts, sendings };
  }

  async #again(
    receipts: FieldWriteRow[],
    { inputHash, idempotencyKey }: FieldsIntent,
  ): Promise<Outcome<FieldWriteRow[], WriteFieldsRefusal>> {
    const [first] = receipts;
    if (first?.inputHash !== inputHash) return KEY_REUSED;
    const scope = this.parts.database.tenant(first.tenantId);
    return accepted(await this.#sendings.settled(receipts, first.id, () => findReceipts(scope, idempotencyKey)));
  }

  /** The only place that sends values, and only who has just made the receipts comes here: one record after another. */
  async #send(receipts: FieldWriteRow[], sendings: Sending[]): Promise<FieldWriteRow[]> {
    const { http, crmBaseUrl, tokensOf, purseOf, clock } = this.parts;
    const settled = new Map(receipts.map((receipt) => [receipt.id, receipt]));
    let stop: WriteFailure | null = null;
    for (const batch of batchesOf(sendings)) {
      const { receipt, target } = batch[0];
      const tokens = tokensOf(receipt.tenantId, receipt.copyId);
      const purse = purseOf?.(receipt.tenantId, receipt.copyId);
      const mayBegin = inTime(receipt.requestedAt, clock);
      const api = new CrmApi({ http, baseUrl: crmBaseUrl, tokens, mayBegin, purse });
      const report: RecordReport = stop ? notSent(batch, stop) : await writeRecord(api, target, batch);
      stop = report.stop;
      const outcomes = stop ? report.outcomes : await this.#explained(batch, report.outcomes);
      for (const row of await this.#settle(batch, outcomes, report.seen)) settled.set(row.id, row);
    }
    return [...settled.values()];
  }

  /** The CRM refuses a wrong value and an unknown field alike; its list tells which it was. */
  async #explained(batch: SendingBatch, outcomes: FieldOutcome[]): Promise<FieldOutcome[]> {
    if (!outcomes.some(isRejected)) return outcomes;
    const { receipt, target } = batch[0];
    const list = await this.parts.mappings.fields(receipt.tenantId, target.entity);
    if (!list.ok) return outcomes;
    const known = new Set(list.value.map(({ key }) => key));
    return outcomes.map((outcome, position) =>
      isRejected(outcome) && !known.has(batch[position]?.key ?? "") ? FIELD_GONE : outcome,
    );
  }

  async #settle(
    batch: SendingBatch,
    outcomes: readonly FieldOutcome[],
    seen: CrmCustomFields | null,
  ): Promise<FieldWriteRow[]> {
    const { database, clock, logger, metrics } = this.parts;
    const { tenantId, copyId, entity } = batch[0].receipt;
    const settled = await database.tenant(tenantId).transaction(async (scope) => {
      const rows: FieldWriteRow[] = [];
      for (const [position, { receipt }] of batch.entries()) {
        const outcome = outcomes[position];
        if (outcome) rows.push(await settle(scope, receipt.id, outcome, clock()));
      }
      if (seen) await copyFields(scope, copyId, entity, seen);
      return rows;
    });
    for (const { id, state, errorCode } of settled) {
      metrics?.crmWrites.inc({ kind: "field", state });
      logger.info({ tenantId, writeId: id, state, code: errorCode }, "a field was sent to the CRM");
    }
    return settled;
  }
}

const isRejected = (outcome: FieldOutcome) => outcome.state === "FAILED" && outcome.failure.code === "VALUE_REJECTED";

async function planOf(
  scope: TenantScope,
  { meeting, values }: AskedFields,
): Promise<Outcome<FieldsPlan, TargetsRefusal | PlanRefusal>> {
  const held = await holdTargets(scope, meeting);
  return held.ok ? planFields(held.value, await readFieldMappings(scope), values) : held;
}

type SendingBatch = [Sending, ...Sending[]];

/** The values of one record together, in the order of their first. */
function batchesOf(sendings: readonly Sending[]): SendingBatch[] {
  const batches = new Map<string, SendingBatch>();
  for (const sending of sendings) {
    const record = `${sending.target.entity}:${sending.target.id}`;
    const batch = batches.get(record);
    if (batch) batch.push(sending);
    else batches.set(record, [sending]);
  }
  return [...batches.values()];
}
