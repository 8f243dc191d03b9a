import type { Actor } from "../auth/actor";
import type { Meetings } from "../briefing/record-meeting";
import type { CopyScope } from "../briefing/records";
import type { Connecting } from "../connections/connecting";
import { readConnection } from "../connections/connection-store";
import type { CrmStops } from "../connections/crm-stops";
import type { Disconnecting } from "../connections/disconnecting";
import type { FieldListRefusal } from "../connections/field-list";
import type { FieldMappings } from "../connections/field-mappings";
import type { CrmEntity, CrmField } from "../crm/parsing/fields";
import type { Notifications } from "../database/notifications";
import type { TenantDoor, TenantScope } from "../database/tenant-door";
import type { ConnectionRow } from "../entities/connection";
import type { Clock } from "../platform/clock";
import type { Logger } from "../platform/logger";
import type { Outcome } from "../platform/outcome";
import type { Schedule } from "../sync/schedule";
import type { FieldWrites } from "../writeback/fields/field-writes";
import type { NoteWrites } from "../writeback/note-writes";
import { Loaders } from "./loaders";

/** What the resolvers call. */
export interface Services {
  door: TenantDoor;
  connecting: Connecting;
  crmStops: CrmStops;
  disconnecting: Disconnecting;
  notifications: Notifications;
  schedule: Schedule;
  meetings: Meetings;
  fieldMappings: FieldMappings;
  noteWrites: NoteWrites;
  fieldWrites: FieldWrites;
  clock: Clock;
  logger: Logger;
}

/** One operation of one proven actor. */
export interface OperationContext {
  readonly actor: Actor;
  readonly services: Services;
  scope: TenantScope;
  /** Aborted, it calls off what the operation asks of the database. */
  readonly deadline: AbortController;
  loaders: Loaders;
  /** The tenant's connection, read once in an operation. */
  connection(): Promise<ConnectionRow | null>;
  /** Forgets what was read: after a mutation changed the connection, and for each event of a subscription. */
  renew(): void;
  /** The copy that this tenant sees now; null while nothing is connected. */
  copy(): Promise<CopyScope | null>;
  /** The fields of an entity in the CRM, asked for once in an operation however often it names them. */
  liveFields(entity: CrmEntity): Promise<Outcome<CrmField[], FieldListRefusal>>;
}

/** What a subscription's event, or the answer to a mutation that changed the connection, may take to be read. */
const RENEWED_MS = 15_000;

/** A plain object, because Apollo copies the context: state in it lives in closures, which a copy shares. */
export function createOperationContext(actor: Actor, services: Services): OperationContext {
  const deadline = new AbortController();
  const scope = services.door.enter(actor.tenantId, deadline.signal);
  let known: Promise<ConnectionRow | null> | null = null;
  const connection = () => {
    known ??= readConnection(context.scope);
    return known;
  };
  const copy = async () => {
    const copyId = (await connection())?.copyId;
    return copyId ? { ...context.scope, copyId } : null;
  };
  const lists = new Map<CrmEntity, ReturnType<OperationContext["liveFields"]>>();
  const liveFields = (entity: CrmEntity) => {
    const asked = lists.get(entity) ?? services.fieldMappings.fields(actor.tenantId, entity);
    lists.set(entity, asked);
    return asked;
  };
  const context: OperationContext = {
    ...{ actor, services, scope, deadline, connection, copy, liveFields },
    loaders: new Loaders(scope, copy, services.clock),
    renew: () => {
      known = null;
      lists.clear();
      context.scope = services.door.enter(actor.tenantId, AbortSignal.timeout(RENEWED_MS));
      context.loaders = new Loaders(context.scope, copy, services.clock);
    },
  };
  return context;
}
