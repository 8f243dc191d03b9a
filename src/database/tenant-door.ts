import { LRUCache } from "lru-cache";
import type { DataSource, EntityManager } from "typeorm";
import { ACROSS_TENANTS_ROLE } from "./application-role";
import { SESSION_SHARES } from "./data-source";
import { JointReads } from "./joint-reads";
import type { ObserveSql } from "./observed-sql";
import { rows } from "./rows";
import { SessionTurns } from "./session-turns";
import { managerWithin, type Reach } from "./tenant-session";

/** What code may do with one tenant's data. Whatever holds a scope got it from the door, for this tenant. */
export interface TenantScope {
  readonly tenantId: number;
  readonly manager: EntityManager;
  /** For what an operation reads: fewer statements. */
  readonly reads: JointReads;
  /** Done once the transaction of this scope is committed, and never where it failed; at once where there is none. */
  afterCommit(work: () => void): void;
}

/** A synced copy within its tenant: the two lead the key of every synced row. */
export interface CopyScope extends TenantScope {
  readonly copyId: number;
}

/** Tenants whose ids a process remembers; one that is asked for again after that is one statement. */
const MOST_KNOWN_TENANTS = 100_000;

/**
 * The only way to tenant data: everything that reads or writes it takes a scope, and scopes are made here. A scope's
 * sessions are set to its tenant, and PostgreSQL shows and takes no other tenant's rows in them (decision 0042).
 */
export class TenantDoor {
  readonly #ids = new LRUCache<string, Promise<number>>({ max: MOST_KNOWN_TENANTS });

  /** @param observe takes note of each statement */
  constructor(
    private readonly dataSource: DataSource,
    private readonly observe: ObserveSql = (_text, run) => run(),
    private readonly turns = new SessionTurns(SESSION_SHARES),
    private readonly reach: Reach = "session",
  ) {}

  /**
   * Statements that each stand alone.
   * @param signal calls them off: @throws DeadlineError from the one that runs then, and from each that comes later
   */
  enter(tenantId: number, signal?: AbortSignal): TenantScope {
    return scopeOf(tenantId, this.#manager(tenantId, signal));
  }

  async transaction<T>(tenantId: number, work: (scope: TenantScope) => Promise<T>): Promise<T> {
    const after: (() => void)[] = [];
    const done = await this.enter(tenantId).manager.transaction((manager) =>
      work(scopeOf(tenantId, manager, (then) => void after.push(then))),
    );
    for (const then of after) then();
    return done;
  }

  /**
   * Reads across tenants, for work that begins with none: finding what is to be done. Whatever is done about it enters
   * by its tenant. Never for an answer to anyone.
   */
  everyTenant<T>(sql: string, parameters: unknown[] = []): Promise<T[]> {
    // The role ends with the transaction, so that no session goes back to the pool with it.
    return this.#manager(null).transaction(async (manager) => {
      await rows(manager, `SET LOCAL ROLE ${ACROSS_TENANTS_ROLE}`);
      return rows<T>(manager, sql, parameters);
    });
  }

  /** Reads of what is nobody's and every session may see. No tenant's row is in sight. */
  ofNobody<T>(sql: string): Promise<T[]> {
    return rows<T>(this.#manager(null), sql);
  }

  /** The id by which the tenant's rows are kept; given at first sight, and the same for ever. */
  idOf(externalId: string): Promise<number> {
    const known = this.#ids.get(externalId) ?? this.#readId(externalId);
    this.#ids.set(externalId, known);
    known.catch(() => this.#ids.delete(externalId));
    return known;
  }

  async #readId(externalId: string): Promise<number> {
    // Looked for first, so that a known tenant costs no write; and last, where another process makes it at this moment.
    for (const sql of [FIND_TENANT, MAKE_TENANT, FIND_TENANT]) {
      const [tenant] = await this.everyTenant<{ id: number }>(sql, [externalId]);
      if (tenant) return tenant.id;
    }
    throw new Error("a tenant that was just made is missing");
  }

  #manager(tenantId: number | null, signal?: AbortSignal): EntityManager {
    return managerWithin(this.dataSource, tenantId, this.observe, this.turns, signal, this.reach);
  }
}

const FIND_TENANT = "SELECT id FROM tenant WHERE external_id = $1";
const MAKE_TENANT = "INSERT INTO tenant (external_id) VALUES ($1) ON CONFLICT (external_id) DO NOTHING RETURNING id";

const scopeOf = (
  tenantId: number,
  manager: EntityManager,
  afterCommit: TenantScope["afterCommit"] = (work) => work(),
): TenantScope => ({
  tenantId,
  manager,
  reads: new JointReads(manager),
  afterCommit,
});
