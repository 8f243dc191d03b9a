import { GraphQLError } from "graphql";
import { Arg, Ctx, FieldResolver, Mutation, Resolver, Root, UseMiddleware } from "type-graphql";
import type { ShownField } from "../briefing/fields";
import type { CustomFields } from "../briefing/records";
import { readFieldMappings } from "../connections/field-mappings";
import type { CrmField as LiveField } from "../crm/parsing/fields";
import type { DealRow } from "../entities/deal";
import type { MatchedEntity } from "../entities/meeting";
import type { OrganizationRow, PersonRow } from "../entities/records";
import type { FieldMappingHealth, FieldMappingRow } from "../entities/writeback";
import type { Outcome } from "../platform/errors";
import { CUSTOM_FIELDS, LARGE_VALUE, LIVE } from "../schema/base";
import { Connection } from "../schema/connection";
import {
  CrmEntityEnum,
  CrmField,
  CrmFieldValue,
  FieldMapping,
  FieldMappingInput,
  FieldMappingResult,
  FieldMappingSuccess,
} from "../schema/crm";
import { Deal, Organization, Person } from "../schema/records";
import type { Refusal, RefusalCode } from "../schema/refusal";
import { shownConnection } from "./connection-resolver";
import type { EventContext, OperationContext } from "./context";
import { Input, presentRefusal, refuseInvalidInput } from "./inputs";
import { LooksUp } from "./look-up-plan";

@Resolver(() => Connection)
export class NominatedFieldResolver {
  @FieldResolver(() => [CrmField], {
    complexity: LIVE,
    description:
      "Fields of the entity in the CRM, as read within the minute for those who may choose fields and within the hour for others; for all once the CRM company's tokens are short (decision 0028). An error with the code NOT_CONNECTED, NEEDS_REAUTHORIZATION or CRM_UNAVAILABLE where they cannot be read.",
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
    return list.value
      .filter(({ custom }) => custom || !customOnly)
      .map((field) => ({ ...field, options: field.options.map((option) => ({ ...option, crmId: option.id })) }));
  }

  @FieldResolver(() => [FieldMapping], { description: "The nominated fields, at most one an entity." })
  fieldMappings(@Ctx() { scope }: EventContext): Promise<FieldMappingRow[]> {
    return readFieldMappings(scope);
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
    description:
      "The entity has no nominated field any more; what was written in the CRM stays. Owners and admins may, on every plan.",
  })
  async clearFieldMapping(
    @Arg("entity", () => CrmEntityEnum, { description: "Whose nominated field." }) entity: MatchedEntity,
    @Ctx() context: OperationContext,
  ): Promise<FieldMappingSuccess | Refusal> {
    return answer(context, await context.services.fieldMappings.clear(context.actor, entity));
  }
}

function answer(context: OperationContext, outcome: Outcome<FieldMappingRow[], RefusalCode>) {
  if (!outcome.ok) return presentRefusal(outcome);
  context.renew();
  return Object.assign(new FieldMappingSuccess(), { mappings: outcome.value });
}

@Resolver(() => FieldMappingSuccess)
export class FieldMappingSuccessResolver {
  @FieldResolver(() => Connection, { description: "As it now stands, with these as its fieldMappings." })
  connection(@Ctx() context: OperationContext): Promise<Connection> {
    return shownConnection(context);
  }
}

@Resolver(() => FieldMapping)
export class FieldMappingResolver {
  @FieldResolver()
  fieldName(@Root() { fieldName }: FieldMappingRow): string | null {
    return fieldName || null;
  }

  @FieldResolver()
  fieldType(@Root() { fieldType }: FieldMappingRow): string | null {
    return fieldType || null;
  }

  @FieldResolver()
  async health(@Root() { health }: FieldMappingRow, @Ctx() context: EventContext): Promise<FieldMappingHealth> {
    // The CRM of a connection that does not work was not looked at: what it last said holds no more.
    return (await context.connection())?.state === "CONNECTED" ? health : "UNKNOWN";
  }
}

const IN_WORDS = {
  complexity: CUSTOM_FIELDS,
  description:
    "All custom fields, 500 at most, with names, types and labels, as the CRM's list of fields was last read; no call to the CRM.",
};

@Resolver(() => Deal)
export class DealFieldsResolver {
  @FieldResolver({ complexity: LARGE_VALUE })
  @LooksUp<DealRow>(({ crmId }, { customFieldsOfDeal }) => void customFieldsOfDeal(crmId))
  customFields(@Root() { crmId }: DealRow, @Ctx() { loaders }: EventContext): Promise<CustomFields> {
    return loaders.customFieldsOfDeal.load(crmId);
  }

  @FieldResolver(() => [CrmFieldValue], IN_WORDS)
  @LooksUp<DealRow>(({ crmId }, { customFieldsOfDeal }) => void customFieldsOfDeal(crmId))
  fields(@Root() { crmId }: DealRow, @Ctx() { loaders }: EventContext): Promise<ShownField[]> {
    return loaders.fields.DEAL.load(crmId);
  }
}

@Resolver(() => Person)
export class PersonFieldsResolver {
  @FieldResolver({ complexity: LARGE_VALUE })
  @LooksUp<PersonRow>(({ crmId }, { customFieldsOfPerson }) => void customFieldsOfPerson(crmId))
  customFields(@Root() { crmId }: PersonRow, @Ctx() { loaders }: EventContext): Promise<CustomFields> {
    return loaders.customFieldsOfPerson.load(crmId);
  }

  @FieldResolver(() => [CrmFieldValue], IN_WORDS)
  @LooksUp<PersonRow>(({ crmId }, { customFieldsOfPerson }) => void customFieldsOfPerson(crmId))
  fields(@Root() { crmId }: PersonRow, @Ctx() { loaders }: EventContext): Promise<ShownField[]> {
    return loaders.fields.PERSON.load(crmId);
  }
}

@Resolver(() => Organization)
export class OrganizationFieldsResolver {
  @FieldResolver({ complexity: LARGE_VALUE })
  @LooksUp<OrganizationRow>(({ crmId }, { customFieldsOfOrganization }) => void customFieldsOfOrganization(crmId))
  customFields(@Root() { crmId }: OrganizationRow, @Ctx() { loaders }: EventContext): Promise<CustomFields> {
    return loaders.customFieldsOfOrganization.load(crmId);
  }

  @FieldResolver(() => [CrmFieldValue], IN_WORDS)
  @LooksUp<OrganizationRow>(({ crmId }, { customFieldsOfOrganization }) => void customFieldsOfOrganization(crmId))
  fields(@Root() { crmId }: OrganizationRow, @Ctx() { loaders }: EventContext): Promise<ShownField[]> {
    return loaders.fields.ORGANIZATION.load(crmId);
  }
}
