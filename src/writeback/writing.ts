import { hash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Actor } from "../auth/actor";
import { type PolicyRefusal, refusalToWrite, refusedByPolicy } from "../auth/policies";
import { ConnectionGoneError, connectedCopyId, NOT_CONNECTED } from "../connections/connection";
import { CrmApi } from "../crm/api";
import type { CallParts, Reservation, TokenSource } from "../crm/calls";
import type { CrmHttp } from "../crm/http";
import type { Database } from "../database/database";
import { outlast } from "../database/errors";
import type { WriteReceipt } from "../entities/writeback";
import { type Clock, timeLimit } from "../platform/clock";
import { accepted, type Outcome, type Refused, refused } from "../platform/errors";
import type { Logger } from "../platform/logger";
import type { Metrics } from "../platform/metrics";
import { inWork, workFields } from "../platform/work";
import { ABANDONED_AFTER_MS, AWAITED_MS, BEGIN_WITHIN_MS, type Found, NotSentInTimeError } from "./outcomes";
import { findReceipts, ReceiptGoneError, settle, type WriteKind } from "./receipts";

/** What writing to the CRM and looking up what became of it are made with. */
export interface WritebackParts {
  database: Database;
  http: CrmHttp;
  crmBaseUrl: string;
  tokensOf(tenantId: number, copyId: number): TokenSource;
  /** What these calls are counted in; they are never refused for it. */
  reservationOf?(tenantId: number, copyId: number): Reservation;
  clock: Clock;
  logger: Logger;
  metrics?: Metrics;
  /** How long another caller with the same idempotency key is waited for. */
  waitMs?: number;
  /** Why no write may be begun now, whatever it is; null where it may. */
  stopped(): Promise<Refused<"CRM_UNAVAILABLE"> | null>;
}

/** The same input gives the same hash, whoever sends it. */
export const hashOf = (input: readonly unknown[]): string => hash("sha256", JSON.stringify(input));

const KEY_REUSED = refused(
  "IDEMPOTENCY_KEY_REUSED",
  "This idempotency key was used with another input. Choose a new key for each write.",
  "idempotencyKey",
);

const RECEIPT_GONE = refused(
  "NOT_CONNECTED",
  "Its receipt is gone: your organization was erased here meanwhile, or the database was restored. The CRM may hold it: look there, or ask again with the same key.",
);

/** Calls through the connection of a copy. @param may what keeps each request from the wire */
export function callsOf(parts: WritebackParts, tenantId: number, copyId: number, may: Partial<CallParts> = {}): CrmApi {
  const { http, crmBaseUrl, tokensOf, reservationOf } = parts;
  const [tokens, reservation] = [tokensOf(tenantId, copyId), reservationOf?.(tenantId, copyId)];
  return new CrmApi({ http, baseUrl: crmBaseUrl, tokens, ...may, reservation });
}

/** Calls that write what a receipt says. A wait for a token or a socket is long, or a process frozen: sent once the receipt counts as abandoned, it could come to light too late. */
export function callsToWrite(parts: WritebackParts, { tenantId, copyId, requestedAt }: WriteReceipt): CrmApi {
  const isOver = timeLimit(parts.clock, BEGIN_WITHIN_MS, requestedAt);
  const mayBegin = () => {
    if (isOver()) throw new NotSentInTimeError("It was not sent within a minute of its receipt.");
  };
  const mayWait = async () => {
    // Where the database does not say, nothing is known to have ended.
    const present = await connectedCopyId(parts.database.tenant(tenantId)).catch(() => copyId);
    if (present !== copyId) throw new ConnectionGoneError(NOT_CONNECTED.message);
    mayBegin(); // Or each value of a batch would have its own wait.
  };
  return callsOf(parts, tenantId, copyId, { mayBegin, mayWait });
}

/** Settles a receipt by what the CRM said, alone, and where the caller's time is over as well: nobody says it again. Then brings what was seen into the copy. */
export async function settleFound<Row extends WriteReceipt>(
  parts: WritebackParts,
  kind: WriteKind<Row>,
  receipt: Row,
  { outcome, copy }: Found,
): Promise<Row> {
  const { database, clock, logger, metrics } = parts;
  const { tenantId, id: writeId, requestedAt } = receipt;
  const note = () => database.tenant(tenantId).transaction((scope) => settle(scope, kind, writeId, outcome, clock()));
  const isOver = timeLimit(clock, ABANDONED_AFTER_MS, requestedAt);
  const tell = (err: unknown) => logger.warn({ tenantId, writeId, err }, "what became of a write is not noted yet");
  const settled = await inWork(workFields(), () => outlast(note, isOver, tell));
  metrics?.crmWrites.inc({ kind: kind.name, state: settled.state });
  if (copy) await bring(parts, receipt, copy);
  return settled;
}

/** Where somebody else has the copy for too long, the next sync brings it. */
export async function bring(
  { database, clock, logger }: WritebackParts,
  { tenantId, id: writeId }: WriteReceipt,
  copy: Required<Found>["copy"],
): Promise<void> {
  const copied = database.tenant(tenantId).transaction((scope) => copy(scope, clock()));
  await copied.catch((err: unknown) => logger.warn({ tenantId, writeId, err }, "what was written was not copied yet"));
}

export type WritingRefusal = PolicyRefusal | "CRM_UNAVAILABLE" | "IDEMPOTENCY_KEY_REUSED" | "NOT_CONNECTED";

/** By what a write is known again. */
export interface Intent {
  idempotencyKey: string;
  inputHash: string;
}

/** The receipts of a write, and its sending where this caller has made them; null: another has, or nothing is to be sent. */
export interface BegunWrite<Row> {
  receipts: Row[];
  send: (() => Promise<Row[]>) | null;
}

const POLL_MS = 200;
const isSending = (receipts: readonly WriteReceipt[]) => receipts.some(({ state }) => state === "SENDING");

/**
 * The one way of a write (decision 0030): its receipts are committed before anything is sent, only the call that made
 * them sends, once, and whoever finds receipts waits for them or takes them as they are.
 */
export class Writing<Row extends WriteReceipt> {
  readonly #underWay = new Set<Promise<unknown>>();
  readonly #awaited = new Map<string, Promise<Row[]>>();

  constructor(
    private readonly kind: WriteKind<Row>,
    private readonly parts: WritebackParts,
  ) {}

  /**
   * @param read what is asked for
   * @param begin commits the receipts, together with the proof that their targets are matched
   */
  async write<I extends Intent, Code extends string>(
    actor: Actor,
    read: () => Promise<Outcome<I, Code>>,
    begin: (intent: I) => Promise<Outcome<BegunWrite<Row>, Code>>,
  ): Promise<Outcome<Row[], Code | WritingRefusal>> {
    const asked = await read();
    const earlier = asked.ok ? await this.#find(actor.tenantId, asked.value.idempotencyKey) : [];
    // What was done is told whatever the plan is by now: who is refused takes another key one day, and it is done twice.
    const isDone = asked.ok && earlier[0]?.inputHash === asked.value.inputHash;
    const policy = isDone ? null : await this.#policy(actor);
    if (policy) return policy;
    if (!asked.ok) return asked;
    if (earlier.length > 0) return this.#again(earlier, asked.value);
    const stopped = await this.parts.stopped();
    if (stopped) return stopped;
    const begun = await begin(asked.value);
    if (!begun.ok) return begun;
    const { receipts, send } = begun.value;
    return send ? this.#sent(send) : this.#again(receipts, asked.value);
  }

  /** Sends end by themselves; a process that stops waits for its own, so that no receipt is left behind. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#underWay);
  }

  /** Why this actor may not write at all, which is audited; null where it may. */
  #policy(actor: Actor): Promise<Refused<PolicyRefusal> | null> {
    const policy = refusalToWrite(actor);
    const message = "Your organization's plan does not include the CRM. Ask an owner to change it.";
    return refusedByPolicy(this.parts, actor, this.kind.operation, policy && refused(policy, message));
  }

  #find(tenantId: number, idempotencyKey: string): Promise<Row[]> {
    return findReceipts(this.parts.database.tenant(tenantId), this.kind, idempotencyKey);
  }

  async #sent(send: () => Promise<Row[]>): Promise<Outcome<Row[], "NOT_CONNECTED">> {
    const sending = send();
    this.#underWay.add(sending);
    try {
      return accepted(await sending);
    } catch (error) {
      if (error instanceof ReceiptGoneError) return RECEIPT_GONE;
      throw error;
    } finally {
      this.#underWay.delete(sending);
    }
  }

  /** As the caller's who sends; where that takes too long, what is known now. Who has another input waits too: what is sent instead comes after it. */
  async #again(
    receipts: Row[],
    { inputHash, idempotencyKey }: Intent,
  ): Promise<Outcome<Row[], "IDEMPOTENCY_KEY_REUSED" | "NOT_CONNECTED">> {
    const [first] = receipts;
    const ended = first && isSending(receipts) ? this.#ended(first, idempotencyKey) : receipts;
    if (first?.inputHash !== inputHash) {
      await Promise.allSettled([ended]);
      return KEY_REUSED;
    }
    const now = await ended;
    return now.length > 0 ? accepted(now) : RECEIPT_GONE;
  }

  /** All who wait look together. */
  #ended({ id, tenantId }: Row, idempotencyKey: string): Promise<Row[]> {
    const awaited =
      this.#awaited.get(id) ?? this.#poll(tenantId, idempotencyKey).finally(() => this.#awaited.delete(id));
    this.#awaited.set(id, awaited);
    return awaited;
  }

  async #poll(tenantId: number, idempotencyKey: string): Promise<Row[]> {
    const { waitMs = AWAITED_MS } = this.parts;
    let now = await this.#find(tenantId, idempotencyKey);
    for (let waited = 0; waited < waitMs && isSending(now); waited += POLL_MS) {
      await sleep(POLL_MS);
      now = await this.#find(tenantId, idempotencyKey);
    }
    return now;
  }
}
