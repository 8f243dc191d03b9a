import type { Actor } from "../auth/actor";
import type { PolicyRefusal } from "../auth/policies";
import { CrmApi } from "../crm/api";
import type { NoteWriteRow } from "../entities/note-write";
import { accepted, type Outcome } from "../platform/outcome";
import { KEY_REUSED } from "./idempotency";
import { inTime } from "./in-time";
import { checkNote, type NoteIntent, type WriteNoteInput } from "./note-input";
import { findReceipt, insertReceipt, leaveUnknown, readReceipt, settleFailed, settleWritten } from "./note-receipts";
import { Sendings } from "./sendings";
import { type AskedTarget, type ChoiceRefusal, holdTargets, type TargetsRefusal, targetOf } from "./targets";
import { certainFailureOf } from "./write-failure";
import type { WritebackParts } from "./writeback-parts";
import { refusalOfWriter } from "./writers";

/** What a client asks for, with its ids read; an id that names nothing of the kind is null. */
export interface AskedNote extends WriteNoteInput {
  meeting: string | null;
  target: AskedTarget;
}

export type WriteNoteRefusal =
  | PolicyRefusal
  | TargetsRefusal
  | ChoiceRefusal
  | "CRM_UNAVAILABLE"
  | "CONTENT_TOO_LONG"
  | "IDEMPOTENCY_KEY_REUSED";

/**
 * Writes meeting notes, each at most once (decision 0030): the receipt is committed before the request is sent, and
 * whoever finds a receipt never sends. What became of a lost answer is found out by looking (`note-look-ups.ts`).
 */
export class NoteWrites {
  readonly #sendings: Sendings<NoteWriteRow>;

  constructor(private readonly parts: WritebackParts) {
    this.#sendings = new Sendings(({ state }) => state === "SENDING", parts.waitMs);
  }

  async write(actor: Actor, asked: AskedNote): Promise<Outcome<NoteWriteRow, WriteNoteRefusal>> {
    const policy = await refusalOfWriter(this.parts, actor, "writeNote");
    if (policy) return policy;
    const checked = await checkNote(asked);
    if (!checked.ok) return checked;
    const intent = checked.value;
    const earlier = await findReceipt(this.parts.database.tenant(actor.tenantId), intent.idempotencyKey);
    if (earlier) return this.#again(earlier, intent);
    const stopped = await this.parts.stopped?.();
    if (stopped) return stopped;
    const begun = await this.#begin(actor, asked, intent);
    if (!begun.ok) return begun;
    const { receipt, isOurs } = begun.value;
    return isOurs
      ? accepted(await this.#sendings.track(this.#send(receipt, intent.html)))
      : this.#again(receipt, intent);
  }

  close(): Promise<void> {
    return this.#sendings.end();
  }

  /** The proof that the target is matched and the receipt, in one transaction. */
  #begin(
    actor: Actor,
    asked: AskedNote,
    intent: NoteIntent,
  ): Promise<Outcome<{ receipt: NoteWriteRow; isOurs: boolean }, WriteNoteRefusal>> {
    return this.parts.database.tenant(actor.tenantId).transaction(async (scope) => {
      const held = await holdTargets(scope, asked.meeting);
      if (!held.ok) return held;
      const target = targetOf(held.value, null, asked.targetId === null ? undefined : asked.target);
      if (!target.ok) return target;
      const receipt = await insertReceipt(scope, {
        ...{ held: held.value, target: target.value, intent },
        ...{ requestedBy: actor.userId, requestedAt: this.parts.clock() },
      });
      if (receipt) return accepted({ receipt, isOurs: true });
      const theirs = await findReceipt(scope, intent.idempotencyKey);
      if (!theirs) throw new Error("a receipt that stood in the way is missing");
      return accepted({ receipt: theirs, isOurs: false });
    });
  }

  async #again(receipt: NoteWriteRow, { inputHash }: NoteIntent): Promise<Outcome<NoteWriteRow, WriteNoteRefusal>> {
    if (receipt.inputHash !== inputHash) return KEY_REUSED;
    const scope = this.parts.database.tenant(receipt.tenantId);
    return accepted(await this.#sendings.settled(receipt, receipt.id, () => readReceipt(scope, receipt.id)));
  }

  /** The only place that sends a note, and only who has just made the receipt comes here. */
  async #send(receipt: NoteWriteRow, html: string): Promise<NoteWriteRow> {
    const { database, http, crmBaseUrl, clock, logger, metrics } = this.parts;
    const { tenantId, id, copyId } = receipt;
    const tokens = this.parts.tokensOf(tenantId, copyId);
    const purse = this.parts.purseOf?.(tenantId, copyId);
    const mayBegin = inTime(receipt.requestedAt, clock);
    const api = new CrmApi({ http, baseUrl: crmBaseUrl, tokens, mayBegin, purse });
    const target = { entity: receipt.entity, id: receipt.targetId };
    const settled = await api.createNote(target, html).then(
      ({ correlationId, ...made }) => {
        logger.info({ tenantId, writeId: id, correlationId }, "a note was written to the CRM");
        return database.tenant(tenantId).transaction((scope) => settleWritten(scope, id, { ...made, copyId }, clock()));
      },
      (error: unknown) => {
        const failure = certainFailureOf(error);
        logger.warn({ tenantId, writeId: id, err: error, certain: failure !== null }, "a note was not seen written");
        return database
          .tenant(tenantId)
          .transaction((scope) =>
            failure ? settleFailed(scope, id, failure, clock()) : leaveUnknown(scope, id, clock()),
          );
      },
    );
    metrics?.crmWrites.inc({ kind: "note", state: settled.state });
    return settled;
  }
}
