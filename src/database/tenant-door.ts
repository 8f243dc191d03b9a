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

  /** The tenants that have rows in a table: for work of the operator that goes through all of them, one by one. */
  async tenantIds(table: "connection" | "credential"): Promise<string[]> {
    const found = await rows<{ tenant_id: string }>(
      this.dataSource.manager,
      `SELECT DISTINCT tenant_id FROM ${table} ORDER BY tenant_id`,
    );
    return found.map(({ tenant_id }) => tenant_id);
  }
}
