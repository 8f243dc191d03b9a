import { CrmError, CrmStoppedError } from "../crm/errors";
import { CRM_STOP_CHANGED } from "../database/between-processes";
import type { Database } from "../database/database";
import { DAY_MS, SECOND_MS } from "../platform/clock";
import { codeOf, type Refused, refused } from "../platform/errors";
import type { Logger } from "../platform/logger";
import { inWork, workFields } from "../platform/work";

/** A stop of all calls to the CRM that holds now. */
export interface CrmStop {
  since: Date;
  /** The operator's words; customers see them. */
  reason: string;
}

/** What a process knows of the switch is never older than this. */
const KNOWN_MS = SECOND_MS;
/** With the next look of a call that waits for a socket, and the time that it takes. */
export const OBEYED_WITHIN_MS = 2 * SECOND_MS;

export const PRESENT_STOP = `SELECT begun_at AS since, reason FROM crm_stop WHERE ended_at IS NULL ORDER BY begun_at LIMIT 1`;

/**
 * The operator's switch as this process sees it. It is in the database, so it holds for every process and outlives
 * them all; a process that cannot read it makes no call.
 */
export class CrmStops {
  #known: { stop: CrmStop | null; readAt: number } | null = null;
  #reading: Promise<CrmStop | null> | null = null;
  #logged: CrmStop | null = null;

  constructor(
    private readonly database: Database,
    private readonly logger?: Logger,
  ) {}

  /** The stop that holds now; null: calls may be made. */
  async present(): Promise<CrmStop | null> {
    if (this.#known && performance.now() - this.#known.readAt < KNOWN_MS) return this.#known.stop;
    this.#reading ??= this.#read();
    return this.#reading;
  }

  /** For every call to the CRM, before it. @throws CrmError */
  async requireNone(): Promise<void> {
    const stop = await this.present().catch((cause: unknown) => {
      const message = "The database does not say whether calls to the CRM are stopped, so none is made.";
      throw new CrmError("UNAVAILABLE", message, { neverSent: true }, { cause });
    });
    if (stop) throw new CrmStoppedError(stop.reason);
  }

  /** Why nothing that needs the CRM may be begun now; null where it may. */
  async refusal(): Promise<Refused<"CRM_UNAVAILABLE"> | null> {
    const stop = await this.present();
    return stop && refused("CRM_UNAVAILABLE", `${messageOfStop(stop)} Nothing was sent; try again later.`);
  }

  /** It has changed: the next look reads it anew. */
  forget(): void {
    this.#known = null;
    this.#reading = null;
  }

  #read(): Promise<CrmStop | null> {
    const readAt = performance.now();
    // Others join it: it is not called off with the work that began it.
    const read = inWork(workFields(), () =>
      this.database.rows<CrmStop>(PRESENT_STOP, { since: "instant", reason: "text" }),
    );
    const reading = read.then(([stop = null]) => {
      this.#log(stop);
      if (this.#reading === reading) this.#known = { stop, readAt };
      return stop;
    });
    const done = () => {
      if (this.#reading === reading) this.#reading = null;
    };
    reading.then(done, done);
    return reading;
  }

  /** The row keeps the last reason alone, and whoever reads the log asks why nothing was read. */
  #log(stop: CrmStop | null): void {
    const before = this.#logged;
    this.#logged = stop;
    if (stop && stop.reason !== before?.reason)
      this.logger?.warn({ stop }, "the operator has stopped calls to the CRM");
    if (before && !stop) this.logger?.info({ stop: before }, "calls to the CRM may be made again");
  }
}

export const messageOfStop = ({ reason }: CrmStop): string => new CrmStoppedError(reason).message;

/**
 * Stops all calls; where that holds already, only the reason is another from now on.
 * @param reason null: none is given, and that of a stop that holds stays
 * @returns the stop that holds
 */
export async function stopCrm(database: Database, reason: string | null, now: Date): Promise<CrmStop> {
  await database.acrossTenants(
    `WITH held AS (UPDATE crm_stop SET reason = coalesce($2, reason) WHERE ended_at IS NULL RETURNING 1),
     begun AS (
       INSERT INTO crm_stop (begun_at, reason)
       SELECT $1, coalesce($2, 'no reason was given.')
       WHERE NOT EXISTS (SELECT 1 FROM crm_stop WHERE ended_at IS NULL) RETURNING 1)
     SELECT pg_notify('${CRM_STOP_CHANGED}', '') FROM (TABLE held UNION ALL TABLE begun) AS changed`,
    [now, reason],
  );
  const [stop] = await database.acrossTenants<CrmStop>(PRESENT_STOP, [], { since: "instant", reason: "text" });
  if (!stop) throw new Error("a stop was made and is not there: was it resumed at the same moment?");
  return stop;
}

/** @returns whether a stop held */
export async function resumeCrm(database: Database, now: Date): Promise<boolean> {
  const ended = await database.acrossTenants(
    `WITH ended AS (UPDATE crm_stop SET ended_at = $1 WHERE ended_at IS NULL RETURNING 1)
     SELECT pg_notify('${CRM_STOP_CHANGED}', '') FROM ended`,
    [now],
  );
  return ended.length > 0;
}

/** Callers repeat a write within a day. */
const REPEATED_WITHIN_MS = DAY_MS;
/** PostgreSQL's codes where a server, as some hosted ones, does not say who it is: it counts as the one from before. */
const UNSAID = /^(0A|42|55000)/;
/** SQL. First, for a refusal would end its session. */
const MAY_ASK = `SELECT has_function_privilege('pg_control_system()', 'EXECUTE') AS "mayAsk"`;

/**
 * Whether receipts may be missing of what was sent: for a day after a standby took over or a dump was restored, seen by the
 * server's history and the table's oid, and after all calls were resumed, as an operator does after any other backup.
 */
export async function mayMissReceipts(database: Database, now: Date): Promise<boolean> {
  const since = new Date(now.getTime() - REPEATED_WITHIN_MS);
  try {
    const [may] = await database.acrossTenants<{ mayAsk: boolean }>(MAY_ASK, [], { mayAsk: "flag" });
    if (may?.mayAsk === false) return false;
    const [server] = await database.acrossTenants<Server>(SERVER, [since], SERVER_SHAPE);
    if (server?.isNew) await database.acrossTenants(NOTE_SERVER, [server.id, now]);
    return server?.mayMiss ?? true;
  } catch (error) {
    return !UNSAID.test(String(codeOf(error)));
  }
}

type Server = { id: string; isNew: boolean; mayMiss: boolean };
const SERVER_SHAPE = { id: "text", isNew: "flag", mayMiss: "flag" } as const;

/** SQL: which server, which history of it, and which tables these are. */
export const PRESENT_SERVER = `SELECT concat_ws('/', system_identifier, left(pg_walfile_name(pg_current_wal_insert_lsn()), 8),
    'server_timeline'::regclass::oid) AS id FROM pg_control_system()`;

const SERVER = `
  WITH present AS MATERIALIZED (${PRESENT_SERVER})
  SELECT present.id, t.id IS NULL AS "isNew", EXISTS (SELECT 1 FROM crm_stop WHERE ended_at > $1)
    OR (t.seen_at <= $1) IS NOT TRUE AND EXISTS (SELECT 1 FROM server_timeline o WHERE o.id <> present.id) AS "mayMiss"
  FROM present LEFT JOIN server_timeline t ON t.id = present.id`;

const NOTE_SERVER = "INSERT INTO server_timeline (id, seen_at) VALUES ($1, $2) ON CONFLICT DO NOTHING";
