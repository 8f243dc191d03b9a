import type { Actor } from "../auth/actor";
import type { Meetings } from "../briefing/record-meeting";
import type { CopyScope } from "../briefing/records";
import type { Connecting } from "../connections/connecting";
import { readConnection } from "../connections/connection-store";
import type { TenantDoor, TenantScope } from "../database/tenant-door";
import type { ConnectionRow } from "../entities/connection";
import type { Clock } from "../platform/clock";
import { Loaders } from "./loaders";

/** What the resolvers call. */
export interface Services {
  door: TenantDoor;
  connecting: Connecting;
  meetings: Meetings;
  clock: Clock;
}

/** One operation of one proven actor. */
export class OperationContext {
  readonly scope: TenantScope;
  readonly loaders: Loaders;
  #connection: Promise<ConnectionRow | null> | null = null;

  constructor(
    readonly actor: Actor,
    readonly services: Services,
  ) {
    this.scope = services.door.enter(actor.tenantId);
    this.loaders = new Loaders(this.scope, () => this.copy(), services.clock);
  }

  /** The tenant's connection, read once in an operation. */
  connection(): Promise<ConnectionRow | null> {
    this.#connection ??= readConnection(this.scope);
    return this.#connection;
  }

  /** To be called after a mutation changed the connection. */
  forgetConnection(): void {
    this.#connection = null;
  }

  /** The copy that this tenant sees now; null while nothing is connected. */
  async copy(): Promise<CopyScope | null> {
    const connection = await this.connection();
    return connection?.copyId ? { ...this.scope, copyId: connection.copyId } : null;
  }
}
