import type { CrmApi } from "../crm/api";
import type { Database, TenantScope } from "../database/database";
import { hasLiveJob } from "../database/jobs";
import type { WriteReceipt } from "../entities/writeback";
import { MINUTE_MS, SECOND_MS } from "../platform/clock";
import { forEachLogged } from "../platform/work";
import { ABANDONED_AFTER_MS, type Found, isOfTheCrm, outOfSight, pauseBefore } from "./outcomes";
import { enqueueLookUp, settle, type WriteKind, type WriteRef } from "./receipts";
import { dropHopeless, endIfLast, IS_GOING } from "./write-history";
import { callsOf, settleFound, type WritebackParts } from "./writing";

/** In one sweep; the next one finds the rest. */
const MOST_AT_ONCE = 500;
/** Look-ups of one tenant in one process: where its CRM is silent each takes half a minute of what all tenants' jobs share. */
const MOST_OF_A_TENANT = 2;
/** Within this those go that are too many, should none of the others end before. */
const SPREAD_MS = 10 * SECOND_MS;

/** A job that is so late has gone with the worker that took it, or waited for a connection that is back now. */
const OVERDUE_MS = MINUTE_MS;
/** While the operator has stopped all calls a look is put off by this: none can be made, and the early ones are for afterwards. */
const PUT_OFF_MS = MINUTE_MS;
/** SQL, by the clock that says when it was taken: one that is in hand is enqueued once more by no process whose clock is ahead. */
const TAKEN_SINCE = "now() - interval '1 minute'";

/** SQL: now, by the later of the database's clock and ours, $1: too early a time would prove an absence too soon. */
const PRESENT = "greatest(now(), $1::timestamptz)";
/** SQL: a later time is of a clock that was wrong: no look is put off for as long, and who still sends is not as far ahead. */
const LATEST = `${PRESENT} + interval '7 hours'`;
const STAMPS = ["requested_at", "sent_at", "next_look_up_at"] as const;

/** SQL: joins a receipt `w` with the connected copy `s` of the CRM company that it was sent to. */
const WHILE_CONNECTED = `
  JOIN connection c ON c.tenant_id = w.tenant_id AND c.state = 'CONNECTED'
  JOIN synced_copy s ON s.tenant_id = c.tenant_id AND s.id = c.copy_id AND s.crm_company_id = w.crm_company_id`;

/** A receipt whose answer was lost, and what it is looked up with. */
export interface LookedUp<Row> {
  receipt: Row;
  /** The tenant's name, as its tokens have it. */
  tenant: string;
  /** The copy whose connection is asked: of the same CRM company, maybe not the one that sent. */
  copyId: number;
  api: CrmApi;
  begunAt: Date;
  sentAt: Date;
}

type Lost = Omit<WriteRef, "lookUps">;

/** Reads the CRM, and never sends. null: what it shows is no proof. */
export type FindOutcome<Row> = (lookedUp: LookedUp<Row>) => Promise<Found | null>;

/** Finds out what became of writes whose answer was lost (decision 0030), by reading the CRM and never by sending again. */
export class LookUps<Row extends WriteReceipt> {
  /** By tenant: which are in hand, and until when others were put off for that. */
  readonly #turns = new Map<number, { inHand: Set<string>; putOff: Map<string, WriteRef & { until: number }> }>();

  constructor(
    private readonly kind: WriteKind<Row>,
    private readonly parts: WritebackParts,
    private readonly look: FindOutcome<Row>,
  ) {}

  /** Sends whose process is gone become UNKNOWN, and look-ups whose job is gone get another. */
  async sweep(): Promise<void> {
    const { database, clock, logger } = this.parts;
    const now = clock();
    await this.#stampAnew(now);
    await this.#leaveAbandoned(now);
    const { table, lookUpJob } = this.kind;
    if (table === "field_write") await this.#dropHopeless(now);
    const overdue = await database.acrossTenants<Required<WriteRef>>(
      `WITH unknown AS MATERIALIZED (
         SELECT w.tenant_id, w.id, w.look_ups, w.next_look_up_at FROM ${table} w ${WHILE_CONNECTED}
         WHERE w.state = 'UNKNOWN' AND w.next_look_up_at < $1
       )
       SELECT tenant_id AS "tenantId", id AS "writeId", look_ups AS "lookUps" FROM unknown
       WHERE NOT ${hasLiveJob(lookUpJob, "unknown.id", TAKEN_SINCE)} ORDER BY next_look_up_at LIMIT ${MOST_AT_ONCE}`,
      [new Date(now.getTime() - OVERDUE_MS)],
      { tenantId: "number", writeId: "text", lookUps: "number" },
    );
    const enqueue = (w: WriteRef) => enqueueLookUp(database.tenant(w.tenantId), this.kind, w);
    await forEachLogged(overdue, enqueue, logger);
  }

  /** Looks once; later, where others of the tenant are in hand, and then as soon as one of them has ended. */
  async lookUp(write: WriteRef): Promise<void> {
    const { tenantId, writeId } = write;
    const scope = this.parts.database.tenant(tenantId);
    const { inHand, putOff } = this.#turns.get(tenantId) ?? { inHand: new Set(), putOff: new Map() };
    if (inHand.size >= MOST_OF_A_TENANT) {
      const waitMs = Math.random() * SPREAD_MS;
      putOff.set(writeId, { ...write, until: performance.now() + waitMs });
      return enqueueLookUp(scope, this.kind, write, waitMs);
    }
    this.#turns.set(tenantId, { inHand: inHand.add(writeId), putOff });
    putOff.delete(writeId);
    try {
      await this.#lookUp(write);
    } finally {
      inHand.delete(writeId);
      // Whose own time has come may be in hand elsewhere, and each look-up counts.
      const next = [...putOff.values()].find(({ until }) => until > performance.now());
      if (next && putOff.delete(next.writeId)) await enqueueLookUp(scope, this.kind, next);
      else if (inHand.size === 0) this.#turns.delete(tenantId);
    }
  }

  /** The next look-up is planned before this one begins, so a crash in between loses none. */
  async #lookUp(write: WriteRef): Promise<void> {
    const { database, clock, logger } = this.parts;
    const { tenantId, writeId } = write;
    const isStopped = (await this.parts.stopped()) !== null;
    const planned = await database.tenant(tenantId).transaction((scope) => this.#plan(scope, write, isStopped));
    if (!planned) return;
    const { receipt, tenant, copyId } = planned;
    try {
      const begunAt = clock();
      const sentAt = receipt.sentAt ?? begunAt;
      const api = callsOf(this.parts, tenantId, copyId);
      const found = await this.look({ receipt, tenant, copyId, api, begunAt, sentAt }).catch(outOfSight);
      if (!found) return await endIfLast(database.tenant(tenantId), this.kind, receipt, begunAt);
      const { state } = await settleFound(this.parts, this.kind, receipt, found);
      logger.info({ tenantId, writeId, state }, "a lost answer was looked up");
    } catch (error) {
      if (!isOfTheCrm(error)) throw error;
      logger.warn({ tenantId, writeId, err: error }, "a look-up failed; the next one is planned");
    }
  }

  /** What says a time far ahead is stamped with the present one, and goes the way of all others from there. */
  async #stampAnew(now: Date): Promise<void> {
    const { database, logger } = this.parts;
    const { table } = this.kind;
    // With the times that they are compared with: in an UPDATE's CASE a cluster takes no clock.
    const astray = await database.acrossTenants<Lost & { present: Date; latest: Date }>(
      `SELECT tenant_id AS "tenantId", id AS "writeId", ${PRESENT} AS present, ${LATEST} AS latest FROM ${table}
       WHERE state IN ('SENDING', 'UNKNOWN') AND greatest(${STAMPS}) > ${LATEST} LIMIT ${MOST_AT_ONCE}`,
      [now],
      { tenantId: "number", writeId: "text", present: "instant", latest: "instant" },
    );
    const anew = STAMPS.map((at) => `${at} = CASE WHEN ${at} > $4 THEN $3 ELSE ${at} END`);
    const stamp = ({ tenantId, writeId, present, latest }: (typeof astray)[number]) =>
      database
        .tenant(tenantId)
        .rows(`UPDATE ${table} SET ${anew} WHERE tenant_id = $1 AND id = $2`, [tenantId, writeId, present, latest]);
    await forEachLogged(astray, stamp, logger);
  }

  async #leaveAbandoned(now: Date): Promise<void> {
    const { database, logger, metrics } = this.parts;
    const abandoned = await database.acrossTenants<Lost>(
      `SELECT tenant_id AS "tenantId", id AS "writeId" FROM ${this.kind.table}
       WHERE state = 'SENDING' AND requested_at < $1 ORDER BY requested_at LIMIT ${MOST_AT_ONCE}`,
      [new Date(now.getTime() - ABANDONED_AFTER_MS)],
      { tenantId: "number", writeId: "text" },
    );
    const leave = async ({ tenantId, writeId }: WriteRef) => {
      const left = await database
        .tenant(tenantId)
        .transaction((scope) => settle(scope, this.kind, writeId, { state: "UNKNOWN" }, now));
      // Its sender may have settled it at the last moment, and has counted it.
      if (left.state === "UNKNOWN") metrics?.crmWrites.inc({ kind: this.kind.name, state: left.state });
    };
    await forEachLogged(abandoned, leave, logger);
  }

  async #dropHopeless(now: Date): Promise<void> {
    const { database, logger } = this.parts;
    const whose = `SELECT DISTINCT tenant_id AS "tenantId" FROM field_write WHERE ${IS_GOING}`;
    const going = await database.acrossTenants<{ tenantId: number }>(whose, [], { tenantId: "number" });
    await forEachLogged(going, ({ tenantId }) => dropHopeless(database.tenant(tenantId), now), logger);
  }

  /**
   * null where there is nothing to look up, nobody to ask, or a stop holds: then a sweep, or the next, comes back to it. So where this look was made
   * already, as where two sweeps have found it without a job: one that has not waited must not count as one more, by which an absence is proven.
   */
  async #plan(scope: TenantScope, { writeId, lookUps: madeBefore }: WriteRef, isStopped: boolean) {
    const { tenantId, rows, entities } = scope;
    const { row, table } = this.kind;
    const [found] = await entities<Row, { looking_copy_id: number; tenant: string }>(
      row,
      `SELECT w.*, s.id AS looking_copy_id, (SELECT t.external_id FROM tenant t WHERE t.id = $1) AS tenant
       FROM ${table} w ${WHILE_CONNECTED}
       WHERE w.tenant_id = $1 AND c.tenant_id = $1 AND s.tenant_id = $1 AND w.id = $2 AND w.state = 'UNKNOWN'
         AND w.next_look_up_at IS NOT NULL
       FOR UPDATE OF w`,
      [tenantId, writeId],
      { looking_copy_id: "number", tenant: "text" },
    );
    if (!found) return null;
    const looks = !isStopped && (madeBefore ?? found.lookUps) === found.lookUps;
    const lookUps = found.lookUps + (looks ? 1 : 0);
    const waitMs = isStopped ? PUT_OFF_MS : pauseBefore(lookUps);
    const next = new Date(this.parts.clock().getTime() + waitMs);
    const planning = `UPDATE ${table} SET look_ups = $4, next_look_up_at = $3 WHERE tenant_id = $1 AND id = $2`;
    await rows(planning, [tenantId, writeId, next, lookUps]);
    await enqueueLookUp(scope, this.kind, { writeId, lookUps }, waitMs);
    return !looks ? null : { receipt: found, tenant: found.tenant, copyId: found.looking_copy_id };
  }
}

/** Look-ups settle most within minutes; one that takes longer is for somebody to look at. */
const IS_LATE = "w.state = 'UNKNOWN' AND w.next_look_up_at IS NOT NULL AND w.requested_at < now() - interval '1 hour'";

/** SQL: writes whose answer was lost, and which are looked up for too long. */
export const UNSETTLED = `SELECT (SELECT count(*) FROM note_write w ${WHILE_CONNECTED} WHERE ${IS_LATE})::int
  + (SELECT count(*) FROM field_write w ${WHILE_CONNECTED} WHERE ${IS_LATE})::int AS count`;

export async function countUnsettled(database: Database): Promise<number> {
  const [found] = await database.acrossTenants<{ count: number }>(UNSETTLED, [], { count: "number" });
  return found?.count ?? 0;
}
