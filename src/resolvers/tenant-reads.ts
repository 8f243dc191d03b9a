import type { LRUCache } from "lru-cache";
import type { ShownNotes } from "../briefing/notes";
import { readConnection } from "../connections/connection";
import type { CopyScope, Database, TenantScope } from "../database/database";
import type { ConnectionRow } from "../entities/connection";
import { type Clock, MINUTE_MS } from "../platform/clock";
import { StateStream } from "../platform/streams";
import { Loaders } from "./loaders";

/** What a tenant's reads take of the services. */
export interface ReadParts {
  database: Database;
  /** The copies that tenants were last seen to have. */
  lastCopies: LRUCache<number, number>;
  shownNotes: ShownNotes;
  clock: Clock;
}

/** The reads of one tenant at one time: each thing is read once. */
export class TenantReads {
  readonly scope: TenantScope;
  readonly loaders: Loaders;
  readonly #known = new Map<string, Promise<unknown>>();
  readonly #lastCopies: ReadParts["lastCopies"];
  #assumed: number | undefined;

  /** @param signal calls off what is asked of the database */
  constructor({ database, lastCopies, shownNotes, clock }: ReadParts, tenantId: number, signal: AbortSignal) {
    this.#lastCopies = lastCopies;
    this.scope = database.tenant(tenantId, signal);
    this.loaders = new Loaders(this.scope, () => this.copy(), clock, shownNotes);
  }

  connection(): Promise<ConnectionRow | null> {
    return this.once("connection", () => readConnection(this.scope));
  }

  /** The copy that this tenant sees; null while nothing is connected. */
  async copy(): Promise<CopyScope | null> {
    const reading = this.connection();
    const copyId = this.#assumed ?? (await reading)?.copyId;
    return copyId ? { ...this.scope, copyId } : null;
  }

  assumeCopy(): () => Promise<boolean> {
    if (!this.#known.has("connection")) this.#assumed = this.#lastCopies.get(this.scope.tenantId);
    return async () => {
      if (!this.#known.has("connection")) {
        // Nobody has asked for it yet: whoever does from now on waits for the answer.
        this.#assumed = undefined;
        return true;
      }
      const copyId = (await this.connection())?.copyId;
      if (copyId) this.#lastCopies.set(this.scope.tenantId, copyId);
      else this.#lastCopies.delete(this.scope.tenantId);
      return this.#assumed === undefined || this.#assumed === copyId;
    };
  }

  /** @param what names what is read; whoever asks for the same shares it */
  once<T>(what: string, read: () => Promise<T>): Promise<T> {
    const reading = (this.#known.get(what) as Promise<T> | undefined) ?? read();
    this.#known.set(what, reading);
    return reading;
  }
}

/** So long after its first use a read is shared at most, for changes that wake nobody. */
export const SHARED_MS = 1_000;
/** The reads of an event are called off after this. */
const EVENT_MS = 15_000;

/**
 * One read of a tenant for each of its events, however many subscribers of this process it wakes. Whoever is woken
 * forgets what was read before, so no subscriber is shown less than the event told of.
 */
export class SharedReads {
  readonly #ofTenant = new Map<number, { reads: TenantReads; expiry: NodeJS.Timeout }>();

  constructor(private readonly parts: ReadParts) {}

  of(tenantId: number): TenantReads {
    const present = this.#ofTenant.get(tenantId);
    if (present) return present.reads;
    const reads = new TenantReads(this.parts, tenantId, AbortSignal.timeout(EVENT_MS));
    const expiry = setTimeout(() => this.#ofTenant.delete(tenantId), SHARED_MS).unref();
    this.#ofTenant.set(tenantId, { reads, expiry });
    return reads;
  }

  forget(tenantId: number): void {
    // Its timer would keep what was read of each of a thousand events a second.
    clearTimeout(this.#ofTenant.get(tenantId)?.expiry);
    this.#ofTenant.delete(tenantId);
  }
}

/** A state that could not be read is read again after so long, more or less, and then each time after twice that. */
const [AGAIN_AFTER_MS, AGAIN_WITHIN_MS] = [2 * SHARED_MS, 5 * MINUTE_MS];

/**
 * The same, read again by itself where it could not be read: its next change may be days away, and whoever waits for that
 * goes by the state before.
 * @param hasFailed whether what was read is a failure, which may be over by itself
 */
export function readAgain<T>(value: StateStream<T>, hasFailed: (state: T) => boolean): StateStream<T> {
  let waitMs = AGAIN_AFTER_MS;
  let isHeard = false;
  let waiting: NodeJS.Timeout | undefined;
  const listen = (wake: () => void) => {
    const unlisten = value.listen(wake);
    isHeard = true;
    return () => {
      isHeard = false;
      clearTimeout(waiting);
      waiting = undefined;
      unlisten();
    };
  };
  const read = async (wake: () => void) => {
    const state = await value.read(wake);
    if (state === null || !hasFailed(state)) {
      // Who waits is told all the same: this may have been read for somebody who came since.
      waitMs = AGAIN_AFTER_MS;
      return state;
    }
    if (waiting || !isHeard) return state;
    const again = () => {
      waiting = undefined;
      wake();
    };
    // An outage meets all tenants at once, and its end must not.
    waiting = setTimeout(again, waitMs * (0.5 + Math.random())).unref();
    waitMs = Math.min(2 * waitMs, AGAIN_WITHIN_MS);
    return state;
  };
  return new StateStream(listen, read);
}
