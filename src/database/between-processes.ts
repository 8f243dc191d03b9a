import { setInterval, setTimeout as sleep } from "node:timers/promises";
import { Client, type Pool, type PoolClient } from "pg";
import type { Secret } from "../platform/keyring";
import type { Logger } from "../platform/logger";
import { openPool } from "./data-source";
import type { TenantScope } from "./database";
import { heldUpOf } from "./errors";
import { SESSION_LIMITS, type SessionLimits, SILENCE_MS, withLimits } from "./session-limits";

/** The tenant's connection row has changed. */
export const CONNECTION_CHANGED = "connection_changed";
/** A run of the tenant was made, moved on or ended. */
export const PROGRESS_CHANGED = "progress_changed";
/** A meeting's match says something else; with the meeting's id. */
export const MEETING_MATCHED = "meeting_matched";
/** A deal's stored verdict became another one; with the deal and the instant. */
export const SILENCE_CHANGED = "silence_changed";
/** A write became known after its answer was lost; with the receipt's id. */
export const WRITE_SETTLED = "write_settled";
/** The operator stopped or resumed the calls to the CRM; of all tenants, so every subscriber to a state is woken. */
export const CRM_STOP_CHANGED = "crm_stop_changed";
const CHANNELS = [
  CONNECTION_CHANGED,
  PROGRESS_CHANGED,
  MEETING_MATCHED,
  SILENCE_CHANGED,
  WRITE_SETTLED,
  CRM_STOP_CHANGED,
] as const;
export type Channel = (typeof CHANNELS)[number];
/** Of which the row is the truth: who is woken once too often reads it once too often. */
const OF_STATES: readonly Channel[] = [CONNECTION_CHANGED, PROGRESS_CHANGED, CRM_STOP_CHANGED];

/** @param id of what changed; null: anything may have, and of things that are told one by one some were missed */
type Wake = (id: string | null) => void;

const FIRST_RECONNECT_MS = 100;
const LONGEST_RECONNECT_MS = 5_000;

/**
 * Tells every process that something of the tenant changed: only that, never what. Sent when the transaction commits,
 * so a subscriber that reads the row sees the change.
 */
export async function notify({ tenantId, rows }: TenantScope, channel: Channel): Promise<void> {
  await rows("SELECT pg_notify($1, $2)", [channel, String(tenantId)]);
}

/** Tells which of the tenant's things changed, each by its id; the ids of many go with one statement. */
export async function notifyOf(
  { tenantId, rows }: TenantScope,
  channel: Channel,
  ids: readonly string[],
): Promise<void> {
  if (ids.length === 0) return;
  await rows("SELECT pg_notify($1, $2 || ' ' || id) FROM unnest($3::text[]) AS id", [channel, String(tenantId), ids]);
}

/** Asks a session in which nothing else happens whether it is there. @returns when it is not, or when it need not be asked */
export async function keepAsking(session: Pick<Client, "query">, everyMs: number, signal?: AbortSignal): Promise<void> {
  try {
    for await (const _ of setInterval(everyMs, null, { ref: false, signal })) await session.query("SELECT 1");
  } catch {
    // Whoever has it hears why.
  }
}

/**
 * Wakes this process's subscribers when any process notifies. One database session for all of them. A notification
 * may be lost while it reconnects, so every subscriber is woken after that.
 */
export class Notifications {
  readonly #subscribers = new Map<string, Set<Wake>>();
  #client: Client | null = null;
  #stopped = false;

  constructor(
    private readonly url: Secret,
    private readonly logger: Logger,
    /** SQL that a session says as it begins: what others may know for as long as it lives. */
    private readonly says = "",
    /** So often the session is asked whether it is there, and so long it may take to say so. */
    private readonly patienceMs = SILENCE_MS,
  ) {}

  async start(): Promise<void> {
    const client = new Client({
      connectionString: withLimits(this.url, SESSION_LIMITS.listener).reveal(),
      application_name: "crm-connection listener",
      connectionTimeoutMillis: this.patienceMs,
      query_timeout: this.patienceMs,
    });
    client.on("notification", ({ channel, payload = "" }) => {
      const [tenantId = "", id = null] = payload.split(" ");
      if (channel === CRM_STOP_CHANGED) this.#wakeAll(OF_STATES);
      else this.#wake(key(channel, tenantId), id);
    });
    client.on("error", (error) => this.logger.warn({ err: error }, "the listening database session failed"));
    await client.connect();
    // One that does not listen would stay, and beside the next one tell everything twice.
    const cut = () => client.connection.stream.destroy();
    const listen = CHANNELS.map((channel) => `LISTEN ${channel}; `).join("");
    await client.query(listen + this.says).catch((error: unknown) => {
      cut();
      throw error;
    });
    if (this.#stopped) return client.end();
    this.#client = client;
    client.once("end", () => void this.#reconnect());
    keepAsking(client, this.patienceMs).then(cut);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#client?.end();
  }

  /**
   * Calls `wake` on each change of the tenant, or of what is nobody's (null), with the id where the channel tells one.
   * @returns ends it
   */
  subscribe(channel: Channel, tenantId: number | null, wake: Wake): () => void {
    const subject = key(channel, String(tenantId ?? ""));
    const others = this.#subscribers.get(subject) ?? new Set();
    this.#subscribers.set(subject, others.add(wake));
    return () => {
      others.delete(wake);
      if (others.size === 0 && this.#subscribers.get(subject) === others) this.#subscribers.delete(subject);
    };
  }

  #wake(subject: string, id: string | null): void {
    for (const wake of this.#subscribers.get(subject) ?? []) wake(id);
  }

  #wakeAll(channels: readonly Channel[]): void {
    for (const subject of this.#subscribers.keys()) {
      if (channels.some((channel) => subject.startsWith(key(channel, "")))) this.#wake(subject, null);
    }
  }

  async #reconnect(): Promise<void> {
    for (let wait = FIRST_RECONNECT_MS; !this.#stopped; wait = Math.min(2 * wait, LONGEST_RECONNECT_MS)) {
      await sleep(wait);
      if (this.#stopped) return;
      try {
        await this.start();
        this.#wakeAll(CHANNELS);
        return;
      } catch (error) {
        this.logger.warn({ err: error }, "the listening database session could not be opened again");
      }
    }
  }
}

const key = (channel: string, tenantId: string) => `${channel} ${tenantId}`;

export interface LockParts {
  url: Secret;
  limits: SessionLimits;
  /** At once in this process, and how long one waits for a session to come free. */
  sessions: number;
  withinMs: number;
  /** Any fixed number: keeps these locks apart from the database's others. */
  space: number;
  /** What is thrown where the lock, or a session to ask for it, cannot be had for now. */
  heldUp(cause: unknown): Error;
  logger: Logger;
}

/** Locks that are held across processes while something else is waited for: in sessions beside the pool. */
export class AdvisoryLocks {
  readonly #pool: Pool;

  constructor(private readonly parts: LockParts) {
    const { url, limits, sessions, withinMs, logger } = parts;
    const bounds = { max: sessions, connectionTimeoutMillis: withinMs };
    this.#pool = openPool(url, limits, bounds, logger, "a lock session ended");
  }

  /** @param asked called as the lock is asked for; what it gives is there for the work under the lock */
  async hold<H, T>(subject: string, asked: () => H, work: (held: H) => Promise<T>): Promise<T> {
    const refuse = (error: unknown): never => {
      throw heldUpOf(error) ? this.parts.heldUp(error) : error;
    };
    const session = await this.#pool.connect().catch(refuse);
    const over = new AbortController();
    let asking: Promise<void> | null = null;
    try {
      await session.query("BEGIN").catch(refuse);
      const held = asked();
      await session.query("SELECT pg_advisory_xact_lock($1, hashtext($2))", [this.parts.space, subject]).catch(refuse);
      // The silence of the work is none of the server's.
      asking = keepAsking(session, SILENCE_MS, over.signal);
      return await work(held);
    } finally {
      over.abort();
      // Nobody waits for it: what was done is done, and on a host that has gone it takes its time.
      void this.#giveBack(session, asking);
    }
  }

  async #giveBack(session: PoolClient, asking: Promise<void> | null): Promise<void> {
    await asking;
    await session.query("ROLLBACK").then(
      () => session.release(),
      (error: Error) => session.release(error),
    );
  }

  close(): Promise<void> {
    return this.#pool.end();
  }
}
