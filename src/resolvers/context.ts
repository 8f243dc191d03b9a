import type { Actor, Viewer } from "../auth/actor";
import { mayManageConnection } from "../auth/policies";
import type { Meetings } from "../briefing/meetings";
import type { QuietSettings } from "../briefing/quiet/quiet-settings";
import type { Snoozing } from "../briefing/snoozing";
import type { Budget } from "../connections/budget";
import type { Connecting } from "../connections/connecting";
import type { CrmStops } from "../connections/crm-stops";
import type { Disconnecting } from "../connections/disconnecting";
import type { FieldList, FieldMappings } from "../connections/field-mappings";
import type { CrmEntity } from "../crm/parsing/fields";
import type { Channel, Notifications } from "../database/between-processes";
import type { CopyScope, TenantScope } from "../database/database";
import type { ConnectionRow } from "../entities/connection";
import type { Logger } from "../platform/logger";
import { EventStream, missed, StateStream } from "../platform/streams";
import type { Schedule } from "../sync/schedule";
import type { FieldWrites } from "../writeback/fields";
import type { NoteWrites } from "../writeback/notes";
import type { Loaders } from "./loaders";
import { type ReadParts, type SharedReads, TenantReads } from "./tenant-reads";

/** The services that resolvers call. */
export interface ResolverServices extends ReadParts {
  budget: Budget;
  connecting: Connecting;
  crmStops: CrmStops;
  disconnecting: Disconnecting;
  notifications: Notifications;
  schedule: Schedule;
  meetings: Meetings;
  quietSettings: QuietSettings;
  snoozing: Snoozing;
  fieldMappings: FieldMappings;
  noteWrites: NoteWrites;
  fieldWrites: FieldWrites;
  logger: Logger;
}

/** One operation of one proven actor. */
export interface OperationContext<Who extends Viewer = Actor> {
  readonly actor: Who;
  readonly services: ResolverServices;
  scope: TenantScope;
  /** Aborted, it calls off what the operation asks of the database. */
  readonly deadline: AbortController;
  loaders: Loaders;
  /** The tenant's connection, read once in an operation. */
  connection(): Promise<ConnectionRow | null>;
  /** Forgets what was read: a mutation has changed something, and another may have been answered before it. */
  renew(this: OperationContext<Who>): void;
  /** Reads what several fields or subscriptions ask for by the same name once. */
  once<T>(what: string, read: () => Promise<T>): Promise<T>;
  /** Reads anew at each change that the channel tells of. */
  changes<T>(channel: Channel, read: (reads: TenantReads) => Promise<T | null>): StateStream<T>;
  /** Reads each thing of which the channel tells that it changed, by its id. @param ofUser whom alone it is told */
  changesOf<T>(
    channel: Channel,
    read: (reads: TenantReads, id: string) => Promise<T | null>,
    ofUser?: (one: T) => string,
  ): EventStream<T>;
  /** The copy that this tenant sees now; null while nothing is connected. */
  copy(): Promise<CopyScope | null>;
  /**
   * Until it is known which one that is, the last one is taken for it, so that it is read with what hangs on it.
   * @returns tells whether it was the one; if not, what was asked is to be asked again, and is read anew
   */
  assumeCopy(this: OperationContext<Who>): () => Promise<boolean>;
  /** The fields of an entity in the CRM, asked for once in an operation however often it names them. */
  liveFields(entity: CrmEntity): Promise<FieldList>;
}

/** One event of a subscription, for all of its viewers. */
export type EventContext = OperationContext<Viewer>;

/** The reads of an answer to a mutation are called off after this; the mutation itself had its own deadline. */
const RENEWED_MS = 15_000;

/** What is told by its id: a deal with an instant, or a UUID. A newer release may tell of it otherwise. */
const TOLD_ID = /^(\d{1,15}:|[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$)/;

/** @param shared what the subscriptions of a process share; null: this operation reads for itself */
export function createOperationContext<Who extends Viewer>(
  actor: Who,
  services: ResolverServices,
  shared: SharedReads | null = null,
): OperationContext<Who> {
  const { tenantId } = actor;
  const deadline = new AbortController();
  const renewed = () => shared?.of(tenantId) ?? new TenantReads(services, tenantId, AbortSignal.timeout(RENEWED_MS));
  let reads = shared?.of(tenantId) ?? new TenantReads(services, tenantId, deadline.signal);
  const readBy = (next: TenantReads, context: OperationContext<Who>) => {
    reads = next;
    context.scope = next.scope;
    context.loaders = next.loaders;
  };
  const lists = new Map<CrmEntity, ReturnType<OperationContext["liveFields"]>>();
  const liveFields = (entity: CrmEntity) => {
    const onlooker = { chooses: mayManageConnection(actor), budget: services.budget };
    const asked = lists.get(entity) ?? services.fieldMappings.fields(tenantId, entity, onlooker);
    lists.set(entity, asked);
    return asked;
  };
  return {
    actor,
    services,
    deadline,
    liveFields,
    scope: reads.scope,
    loaders: reads.loaders,
    connection: () => reads.connection(),
    copy: () => reads.copy(),
    assumeCopy() {
      const assumed = reads;
      const holds = assumed.assumeCopy();
      return async () => {
        if (await holds()) return true;
        // Whoever hears of it first has it read anew for all, until the same deadline.
        if (reads === assumed) readBy(new TenantReads(services, tenantId, deadline.signal), this);
        return false;
      };
    },
    once: (what, read) => reads.once(what, read),
    renew() {
      lists.clear();
      readBy(renewed(), this);
    },
    changes(channel, read) {
      const listen = (wake: () => void) =>
        services.notifications.subscribe(channel, tenantId, () => {
          shared?.forget(tenantId);
          wake();
        });
      return new StateStream(listen, () => read(renewed()));
    },
    changesOf(channel, read, ofUser) {
      const listen = (happened: (told: () => ReturnType<typeof read>) => void) =>
        services.notifications.subscribe(channel, tenantId, (id) => {
          shared?.forget(tenantId);
          happened(id !== null && TOLD_ID.test(id) ? () => read(renewed(), id) : missed);
        });
      return new EventStream(listen, ofUser);
    },
  };
}
