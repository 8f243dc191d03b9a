import { GraphQLError } from "graphql";
import { Arg, Ctx, FieldResolver, Mutation, Resolver, UseMiddleware } from "type-graphql";
import { readFieldMappings } from "../connections/field-mappings";
import type { CrmField as LiveField } from "../crm/parsing/fields";
import type { MatchedEntity } from "../entities/meeting";
import type { FieldMappingRow } from "../entities/writeback";
import type { Outcome } from "../platform/errors";
import { LIVE } from "../schema/base";
import {
  Connection,
  CrmEntityEnum,
  CrmField,
  FieldMapping,
  FieldMappingInput,
  FieldMappingResult,
  FieldMappingSuccess,
} from "../schema/connection";
import type { Refusal, RefusalCode } from "../schema/refusal";
import type { EventContext, OperationContext } from "./context";
import { Input, presentRefusal, refuseInvalidInput } from "./inputs";

@Resolver(() => Connection)
export class NominatedFieldResolver {
  @FieldResolver(() => [CrmField], {
    complexity: LIVE,
    description:
      "Fields of the entity in the CRM, read live through the connection. An error with the code NOT_CONNECTED, NEEDS_REAUTHORIZATION or CRM_UNAVAILABLE where they cannot be read.",
  })
  async fields(
    @Arg("entity", () => CrmEntityEnum, { description: "Whose fields." }) entity: MatchedEntity,
    @Arg("customOnly", () => Boolean, {
      nullable: true,
      defaultValue: false,
      description: "Leaves the CRM's own fields out.",
    })
    customOnly: boolean | null,
    @Ctx() { liveFields }: EventContext,
  ): Promise<LiveField[]> {
    const list = await liveFields(entity);
    // An empty list would say that there are no fields.
    if (!list.ok) throw new GraphQLError(list.message, { extensions: { code: list.code } });
    return list.value.filter(({ custom }) => custom || !customOnly);
  }

  @FieldResolver(() => [FieldMapping], { description: "The nominated fields, at most one an entity." })
  async fieldMappings(@Ctx() context: EventContext): Promise<FieldMapping[]> {
    return presentAll(context, await readFieldMappings(context.scope));
  }

  @Mutation(() => FieldMappingResult, {
    description: "Nominates an existing custom field of the entity, in place of the one before.",
  })
  @UseMiddleware(refuseInvalidInput)
  async setFieldMapping(
    @Input(() => FieldMappingInput, "The field to nominate.") { entity, fieldKey }: FieldMappingInput,
    @Ctx() context: OperationContext,
  ): Promise<FieldMappingSuccess | Refusal> {
    return answer(context, await context.services.fieldMappings.set(context.actor, { entity, fieldKey }));
  }

  @Mutation(() => FieldMappingResult, {
    description: "The entity has no nominated field any more; what was written in the CRM stays.",
  })
  async clearFieldMapping(
    @Arg("entity", () => CrmEntityEnum, { description: "Whose nominated field." }) entity: MatchedEntity,
    @Ctx() context: OperationContext,
  ): Promise<FieldMappingSuccess | Refusal> {
    return answer(context, await context.services.fieldMappings.clear(context.actor, entity));
  }
}

async function answer(
  context: OperationContext,
  outcome: Outcome<FieldMappingRow[], RefusalCode>,
): Promise<FieldMappingSuccess | Refusal> {
  if (!outcome.ok) return presentRefusal(outcome);
  return Object.assign(new FieldMappingSuccess(), { mappings: await presentAll(context, outcome.value) });
}

async function presentAll(context: EventContext, found: readonly FieldMappingRow[]): Promise<FieldMapping[]> {
  const connected = (await context.connection())?.state === "CONNECTED";
  return found.map((row) => presentFieldMapping(row, connected));
}

/** @param connected whether the CRM can be asked now: of what nobody can look at, nothing is known */
const presentFieldMapping = (row: FieldMappingRow, connected: boolean): FieldMapping =>
  Object.assign(new FieldMapping(), {
    entity: row.entity,
    fieldKey: row.fieldKey,
    fieldName: row.fieldName || null,
    fieldType: row.fieldType || null,
    health: connected ? row.health : "UNKNOWN",
    checkedAt: row.checkedAt,
  });
