import { LessThanOrEqual } from "typeorm";
import type { Actor } from "../auth/actor";
import type { PolicyRefusal } from "../auth/policies";
import { recordAudit, refusalToConnect, refusalToDisconnect, refusedByPolicy } from "../auth/policies";
import type { CrmApi } from "../crm/api";
import { ADDRESSES } from "../crm/calls";
import { CrmError, type CrmFailure, explain, proofRefusedBehind, stopBehind } from "../crm/errors";
import { OAuthError } from "../crm/oauth";
import type { CrmEntity, CrmField } from "../crm/parsing/fields";
import type { CopyScope, Database, TenantScope } from "../database/database";
import { FieldMappingRow } from "../entities/writeback";
import { type Clock, Lately, MINUTE_MS } from "../platform/clock";
import { accepted, type Outcome, type Refused, refused } from "../platform/errors";
import type { Logger } from "../platform/logger";
import { inWork, workFields } from "../platform/work";
import type { Budget } from "./budget";
import {
  ConnectionGoneError,
  connectedCopyId,
  liveCopyId,
  lockConnection,
  NEEDS_REAUTHORIZATION,
  NeedsReauthorizationError,
  NOT_CONNECTED,
  readConnection,
} from "./connection";
import { hasFailedLately, isAskedLately, keepLiveList, type Onlooker, readFieldList, sharedForMs } from "./field-lists";
import { boundOf } from "./visibility";

export type FieldListRefusal = "NOT_CONNECTED" | "NEEDS_REAUTHORIZATION" | "CRM_UNAVAILABLE";
export type FieldList = Outcome<CrmField[], FieldListRefusal>;
export type FieldMappingRefusal = PolicyRefusal | FieldListRefusal | "FIELD_NOT_FOUND" | "FIELD_NOT_WRITABLE";

export interface FieldMappingParts {
  database: Database;
  /** Calls to the CRM as the connection's user. */
  apiOf(tenantId: number, copyId: number): CrmApi;
  clock: Clock;
  logger: Logger;
}

const POLICY_MESSAGES: Record<PolicyRefusal, string> = {
  NOT_ALLOWED_FOR_ROLE: "Only an owner or admin of your organization may choose fields. Ask one of them.",
  NOT_ALLOWED_ON_PLAN: "The CRM connection is part of the Medium and Sales plans. Change the plan to choose fields.",
};

/** The mappings that hold now: those of the company that the tenant's live copy is of. */
const MAPPINGS = `
  SELECT m.* FROM field_mapping m
  JOIN connection c ON c.tenant_id = $1
  JOIN synced_copy s ON s.tenant_id = $1 AND s.id = c.copy_id AND s.crm_company_id = m.crm_company_id
  WHERE m.tenant_id = $1 ORDER BY m.entity`;
const CLEAR = "DELETE FROM field_mapping WHERE tenant_id = $1 AND entity = $2 RETURNING field_key AS was";

export const readFieldMappings = ({ tenantId, entities }: TenantScope): Promise<FieldMappingRow[]> =>
  entities(FieldMappingRow, MAPPINGS, [tenantId]);

/** The nominated fields (specification 2.3): at most one an entity, each an existing custom field that can be written. */
export class FieldMappings {
  readonly #lately = new Lately<FieldList>(sharedForMs);

  constructor(private readonly parts: FieldMappingParts) {}

  /** The fields of an entity, read live; for an onlooker as read lately, for each reading costs the company tokens (decision 0028). */
  async fields(tenantId: number, entity: CrmEntity, onlooker?: Onlooker): Promise<FieldList> {
    const scope = this.parts.database.tenant(tenantId);
    const connection = await readConnection(scope);
    if (!connection?.copyId) return NOT_CONNECTED;
    if (connection.state === "NEEDS_REAUTHORIZATION") return NEEDS_REAUTHORIZATION;
    const copy = { ...scope, copyId: connection.copyId };
    const now = this.parts.clock();
    if (!onlooker) return this.#read(copy, entity, now);
    const isAmple = await onlooker.budget.mayReadFields(tenantId, copy.copyId, now);
    // Processes that each go by what another has read would take turns at reading it.
    const lastRead = isAmple ? (await readFieldList(copy, entity))?.readAt : null;
    const holdsFrom = isAmple && onlooker.chooses ? now.getTime() - MINUTE_MS : 0;
    const newest = new Date(Math.max(holdsFrom, lastRead?.getTime() ?? 0));
    // Others join it: it is not called off with the work that began it.
    const read = (at: Date) => inWork(workFields(), () => this.#read(copy, entity, at));
    return this.#lately.read(`${tenantId} ${copy.copyId} ${entity}`, now, newest, read);
  }

  /** What the list says of the nominated field is kept, and that it did not come. */
  async #read(copy: CopyScope, entity: CrmEntity, askedAt: Date): Promise<FieldList> {
    const asked = this.parts.apiOf(copy.tenantId, copy.copyId).fields(entity);
    const list: FieldList = await asked.then(accepted, refusalOf);
    await this.#note(copy, entity, list, askedAt);
    await keepLiveList(copy, entity, asked, askedAt);
    return list;
  }

  /** Nominates a field in place of the entity's earlier one; nominating it again changes nothing in the CRM either. */
  async set(
    actor: Actor,
    { entity, fieldKey }: { entity: CrmEntity; fieldKey: string },
  ): Promise<Outcome<FieldMappingRow[], FieldMappingRefusal>> {
    const policy = await this.#policy(actor, "setFieldMapping", refusalToConnect(actor));
    if (policy) return policy;
    const outside = this.parts.database.tenant(actor.tenantId);
    const copyId = await liveCopyId(outside);
    const before = copyId && (await boundOf(outside, copyId));
    const list = await this.fields(actor.tenantId, entity);
    const chosen = list.ok ? choose(list.value, entity, fieldKey.trim()) : list;
    if (!chosen.ok) return chosen;
    const now = this.parts.clock();
    return outside.transaction(async (scope) => {
      const { bound } = await lockConnection(scope);
      // Disconnected meanwhile, or connected to another company: the list is not this connection's.
      if (!bound || !before || bound.companyId !== before.companyId) return NOT_CONNECTED;
      const was = (await readFieldMappings(scope)).find((mapping) => mapping.entity === entity)?.fieldKey;
      await upsert(scope, entity, bound.companyId, chosen.value, actor.userId, now);
      const event = { action: "FIELD_MAPPING_SET", actor, at: now, subject: entity } as const;
      await recordAudit(scope, this.parts.logger, { ...event, was, became: chosen.value.key });
      return accepted(await readFieldMappings(scope));
    });
  }

  /** Idempotent, in every state and on every plan: nothing is asked of the CRM, and values that were written there stay. */
  async clear(actor: Actor, entity: CrmEntity): Promise<Outcome<FieldMappingRow[], PolicyRefusal>> {
    const policy = await this.#policy(actor, "clearFieldMapping", refusalToDisconnect(actor));
    if (policy) return policy;
    const [{ database, clock, logger }, { tenantId }] = [this.parts, actor];
    return database.tenant(tenantId).transaction(async (scope) => {
      const [cleared] = await scope.rows<{ was: string }>(CLEAR, [tenantId, entity], { was: "text" });
      const event = { action: "FIELD_MAPPING_CLEARED", actor, at: clock(), subject: entity, ...cleared } as const;
      if (cleared) await recordAudit(scope, logger, event);
      return accepted(await readFieldMappings(scope));
    });
  }

  /** After a sync: a list for each nominated field not looked for within the hour, while there are tokens and the CRM answers. */
  async refresh(tenantId: number, budget: Pick<Budget, "left">): Promise<void> {
    const { database, clock, logger } = this.parts;
    const scope = database.tenant(tenantId);
    const copyId = await connectedCopyId(scope);
    if (copyId === null) return;
    for (const { entity, health, checkedAt } of await readFieldMappings(scope)) {
      const hasFailed = async () => hasFailedLately(await readFieldList({ ...scope, copyId }, entity), clock());
      if (health === "UNKNOWN" ? await hasFailed() : isAskedLately(checkedAt, clock())) continue;
      if ((await budget.left(tenantId, copyId, "LISTS", clock())) < ADDRESSES.fields(entity).price) return;
      const list = await this.fields(tenantId, entity);
      if (!list.ok) logger.warn({ tenantId, entity, code: list.code }, "a nominated field could not be looked at");
      if (!list.ok && !(await hasFailed())) return;
    }
  }

  #policy(actor: Actor, operation: string, policy: PolicyRefusal | null): Promise<Refused<PolicyRefusal> | null> {
    return refusedByPolicy(this.parts, actor, operation, policy && refused(policy, POLICY_MESSAGES[policy]));
  }

  /** A look that began before the last one says nothing new, but for one that a clock far ahead has noted. */
  async #note({ tenantId, typed }: TenantScope, entity: CrmEntity, list: FieldList, askedAt: Date): Promise<void> {
    const mapping = await typed((orm) => orm.findOneBy(FieldMappingRow, { tenantId, entity }));
    if (!mapping) return;
    const seen = list.ok ? { ...seenIn(mapping, list.value), checkedAt: askedAt } : { health: "UNKNOWN" as const };
    const { fieldKey, checkedAt, nominatedAt } = mapping;
    const before = (at: Date) => (at > askedAt && !isAskedLately(at, askedAt) ? at : LessThanOrEqual(askedAt));
    const same = { tenantId, entity, fieldKey, checkedAt: before(checkedAt), nominatedAt: before(nominatedAt) };
    await typed((orm) => orm.update(FieldMappingRow, same, seen));
  }
}

function choose(
  list: readonly CrmField[],
  entity: CrmEntity,
  key: string,
): Outcome<CrmField, "FIELD_NOT_FOUND" | "FIELD_NOT_WRITABLE"> {
  const field = list.find((candidate) => candidate.key === key);
  if (!field) {
    const message = `The CRM has no field ${key} of a ${entity.toLowerCase()}. Take a key from connection.fields.`;
    return refused("FIELD_NOT_FOUND", message, "fieldKey");
  }
  if (field.writable) return accepted(field);
  const why = field.custom ? `(${field.type}) cannot be written` : "is not a custom field";
  return refused("FIELD_NOT_WRITABLE", `The field "${field.name}" ${why}. Choose one that is writable.`, "fieldKey");
}

async function upsert(
  { tenantId, typed }: TenantScope,
  entity: CrmEntity,
  crmCompanyId: number,
  { key, name, type, options }: CrmField,
  nominatedBy: string,
  now: Date,
): Promise<void> {
  const seen = { fieldName: name, fieldType: type, options, health: "OK" as const, checkedAt: now };
  const nominated = { fieldKey: key, nominatedType: type, nominatedBy, nominatedAt: now };
  await typed((orm) =>
    orm.upsert(FieldMappingRow, { tenantId, entity, crmCompanyId, ...nominated, ...seen }, ["tenantId", "entity"]),
  );
}

/** What a whole list says of a nominated field. A missing one keeps what was last seen, a changed type stays till it is nominated anew. */
function seenIn(
  mapping: Pick<FieldMappingRow, "fieldKey" | "nominatedType" | "fieldName" | "fieldType" | "options">,
  list: readonly CrmField[],
): Pick<FieldMappingRow, "fieldName" | "fieldType" | "options" | "health"> {
  const field = list.find(({ key, custom }) => custom && key === mapping.fieldKey);
  const { fieldName, fieldType, options } = mapping;
  if (!field) return { fieldName, fieldType, options, health: "MISSING_IN_CRM" };
  const health = !field.writable ? "NOT_WRITABLE" : field.type === mapping.nominatedType ? "OK" : "TYPE_CHANGED";
  return { fieldName: field.name, fieldType: field.type, options: field.options, health };
}

const OF_FIELDS: Partial<Record<CrmFailure, Parameters<typeof explain>[1]>> = {
  UNREADABLE: { what: "The CRM's list of fields cannot be read." },
  REFUSED: { what: "The CRM does not show its fields: the authorizing user or the app lacks a permission." },
};

/** A list that could not be read is a refusal, never an empty list. */
function refusalOf(error: unknown): Refused<FieldListRefusal> {
  if (error instanceof NeedsReauthorizationError) return NEEDS_REAUTHORIZATION;
  if (error instanceof ConnectionGoneError) return NOT_CONNECTED;
  const stop = stopBehind(error);
  if (stop) return refused("CRM_UNAVAILABLE", stop.message);
  if (error instanceof CrmError) return refused("CRM_UNAVAILABLE", explain(error.code, OF_FIELDS[error.code]));
  if (error instanceof OAuthError) return refused("CRM_UNAVAILABLE", explain(proofRefusedBehind(error) ?? "NO_TOKEN"));
  throw error;
}
