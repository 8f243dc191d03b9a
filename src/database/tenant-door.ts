import type { DataSource, EntityManager } from "typeorm";
import { rows } from "./rows";

/** What code may do with one tenant's data. Whatever holds a scope got it from the door, for this tenant. */
export interface TenantScope {
  readonly tenantId: string;
  readonly manager: EntityManager;
}

/** The only way to tenant data: everything that reads or writes it takes a scope, and scopes are made here. */
export class TenantDoor {
  constructor(private readonly dataSource: DataSource) {}

  /** Statements that each stand alone. */
  enter(tenantId: string): TenantScope {
    return { tenantId, manager: this.dataSource.manager };
  }

  transaction<T>(tenantId: string, work: (scope: TenantScope) => Promise<T>): Promise<T> {
    return this.dataSource.transaction((manager) => work({ tenantId, manager }));
  }

  /**
   * Reads across tenants, for work that begins with none: finding what is to be done. Whatever is done about it enters
   * by its tenant. Never for an answer to anyone.
   */
  everyTenant<T>(sql: string, parameters: unknown[] = []): Promise<T[]> {
    return rows<T>(this.dataSource.manager, sql, parameters);
  }
}
