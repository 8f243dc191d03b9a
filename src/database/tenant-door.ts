import type { DataSource, EntityManager } from "typeorm";

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
}
