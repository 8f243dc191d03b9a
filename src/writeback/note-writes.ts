import { setTimeout as sleep } from "node:timers/promises";
import type { Actor } from "../auth/actor";
import type { PolicyRefusal } from "../auth/policies";
import { CrmApi, type TokenSource } from "../crm/api";
import type { CrmHttp } from "../crm/http";
import type { TenantDoor } from "../database/tenant-door";
import type { NoteWriteRow } from "../entities/note-write";
import { type Clock, SECOND_MS } from "../platform/clock";
import type { Logger } from "../platform/logger";
import type { Metrics } from "../platform/metrics";
import { accepted, type Outcome, type Refused, refused } from "../platform/outcome";
import { inTime } from "./in-time";
import { checkNote, type NoteIntent, type WriteNoteInput } from "./note-input";
import { findReceipt, insertReceipt, leaveUnknown, readReceipt, settleFailed, settleWritten } from "./note-receipts";
import { refusalOfWriter, Sendings } from "./sendings";
import {
  type AskedTarget,
  askedTarget,
  type ChoiceRefusal,
  holdTargets,
  ownTarget,
  type TargetsRefusal,
} from "./targets";
import { certainFailureOf } from "./write-failure";

/** For the answer of another caller with the same key: a renewal and an answer, both as slow as can be. */
const WAIT_MS = 65 * SECOND_MS;
const POLL_MS = 200;

export interface WritebackParts {
  door: TenantDoor;
  http: CrmHttp;
  crmBaseUrl: string;
  tokensOf(tenantId: string, copyId: number): TokenSource;
  clock: Clock;
  logger: Logger;
  metrics?: Metrics;
  /** Why no write may be begun now, whatever it is; null where it may. */
  stopped?(): Promise<Refused<"CRM_UNAVAILABLE"> | null>;
}

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
  | "INVALID_INPUT"
  | "CONTENT_TOO_LONG"
  | "IDEMPOTENCY_KEY_REUSED";

/**
 * Writes meeting notes, each at most once (decision 0030): the receipt is committed before the request is sent, and
 * whoever finds a receipt never sends. What became of a lost answer is found out by looking (`note-look-ups.ts`).
 */
export class NoteWrites {
  readonly #sendings = new Sendings();
  readonly #waiting = new Map<string, Promise<NoteWriteRow>>();

  constructor(private readonly parts: WritebackParts) {}

  async write(actor: Actor, asked: AskedNote): Promise<Outcome<NoteWriteRow, WriteNoteRefusal>> {
    const policy = await refusalOfWriter(this.parts, actor, "writeNote");
    if (policy) return policy;
    const checked = checkNote(asked);
    if (!checked.ok) return checked;
    const intent = checked.value;
    const earlier = await findReceipt(this.parts.door.enter(actor.tenantId), intent.idempotencyKey);
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
    return this.parts.door.transaction(actor.tenantId, async (scope) => {
      const held = await holdTargets(scope, asked.meeting);
      if (!held.ok) return held;
      const target = asked.targetId === null ? ownTarget(held.value) : askedTarget(held.value, asked.target);
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
    if (receipt.inputHash !== inputHash) {
      const message = "This idempotency key was used with another input. Choose a new key for each note.";
      return refused("IDEMPOTENCY_KEY_REUSED", message, "idempotencyKey");
    }
    return accepted(receipt.state === "SENDING" ? await this.#settled(receipt) : receipt);
  }

  /** The same answer as the caller's who sends; where that takes too long, what is known now. */
  #settled({ tenantId, id }: NoteWriteRow): Promise<NoteWriteRow> {
    const running = this.#waiting.get(id);
    if (running) return running;
    const scope = this.parts.door.enter(tenantId);
    const poll = async () => {
      for (let waited = 0; waited < WAIT_MS; waited += POLL_MS) {
        const now = await readReceipt(scope, id);
        if (now.state !== "SENDING") return now;
        await sleep(POLL_MS);
      }
      return readReceipt(scope, id);
    };
    const waiting = poll().finally(() => this.#waiting.delete(id));
    this.#waiting.set(id, waiting);
    return waiting;
  }

  /** The only place that sends a note, and only who has just made the receipt comes here. */
  async #send(receipt: NoteWriteRow, html: string): Promise<NoteWriteRow> {
    const { door, http, crmBaseUrl, clock, logger, metrics } = this.parts;
    const { tenantId, id, copyId } = receipt;
    const tokens = inTime(this.parts.tokensOf(tenantId, copyId), receipt.requestedAt, clock);
    const api = new CrmApi(http, crmBaseUrl, tokens);
    const target = { entity: receipt.entity, id: receipt.targetId };
    const settled = await api.createNote(target, html).then(
      ({ correlationId, ...made }) => {
        logger.info({ tenantId, writeId: id, correlationId }, "a note was written to the CRM");
        return door.transaction(tenantId, (scope) => settleWritten(scope, id, { ...made, copyId }, clock()));
      },
      (error: unknown) => {
        const failure = certainFailureOf(error);
        logger.warn({ tenantId, writeId: id, err: error, certain: failure !== null }, "a note was not seen written");
        return door.transaction(tenantId, (scope) =>
          failure ? settleFailed(scope, id, failure, clock()) : leaveUnknown(scope, id, clock()),
        );
      },
    );
    metrics?.crmWrites.inc({ kind: "note", state: settled.state });
    return settled;
  }
}
