import type { DataSource, EntityManager } from "typeorm";
import { SESSION_SHARES } from "./data-source";
import { JointReads } from "./joint-reads";
import type { ObserveSql } from "./observed-sql";
import { rows } from "./rows";
import { SessionTurns } from "./session-turns";
import { managerWithin } from "./tenant-session";

/** What code may do with one tenant's data. Whatever holds a scope got it from the door, for this tenant. */
export interface TenantScope {
  readonly tenantId: string;
  readonly manager: EntityManager;
  /** For what an operation reads: fewer statements. */
  readonly reads: JointReads;
  /** Done once the transaction of this scope is committed, and never where it failed; at once where there is none. */
  afterCommit(work: () => void): void;
}

/**
 * The only way to tenant data: everything that reads or writes it takes a scope, and scopes are made here. A scope's
 * sessions are set to its tenant, and PostgreSQL shows and takes no other tenant's rows in them (decision 0042).
 */
export class TenantDoor {
  /** @param observe takes note of each statement */
  constructor(
    private readonly dataSource: DataSource,
    private readonly observe: ObserveSql = (_text, run) => run(),
    private readonly turns = new SessionTurns(SESSION_SHARES),
  ) {}

  /**
   * Statements that each stand alone.
   * @param signal calls them off: @throws DeadlineError from the one that runs then, and from each that comes later
   */
  enter(tenantId: string, signal?: AbortSignal): TenantScope {
    return scopeOf(tenantId, managerWithin(this.dataSource, { tenantId }, this.observe, this.turns, signal));
  }

  async transaction<T>(tenantId: string, work: (scope: TenantScope) => Promise<T>): Promise<T> {
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
    return rows<T>(managerWithin(this.dataSource, "every tenant", this.observe, this.turns), sql, parameters);
  }
}

const scopeOf = (
  tenantId: string,
  manager: EntityManager,
  afterCommit: TenantScope["afterCommit"] = (work) => work(),
): TenantScope => ({
  tenantId,
  manager,
  reads: new JointReads(manager),
  afterCommit,
});
