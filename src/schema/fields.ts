import { createUnionType, Field, InputType, registerEnumType } from "type-graphql";
import { NotBlank, Text } from "./checks";
import { CrmEntity } from "./crm-entity";
import { ObjectType } from "./object-type";
import { Refusal } from "./refusal";

@ObjectType({ description: "An option of a field of type enum or set." })
export class CrmFieldOption {
  @Field(() => String)
  id!: string;

  @Field(() => String)
  label!: string;
}

@ObjectType({ description: "A field of an entity in the CRM." })
export class CrmField {
  @Field(() => String, { description: "A custom field's 40 hexadecimal digits, else the standard field's name." })
  key!: string;

  @Field(() => String, { description: "As people named it; not unique." })
  name!: string;

  @Field(() => String, { description: "The CRM's word for it, for example varchar; the list is open." })
  type!: string;

  @Field(() => Boolean)
  custom!: boolean;

  @Field(() => Boolean, {
    description: "Whether the service could nominate it: custom, and of a type that it can write.",
  })
  writable!: boolean;

  @Field(() => [CrmFieldOption], { description: "Empty where the type has none." })
  options!: CrmFieldOption[];
}

export enum FieldMappingHealth {
  OK = "OK",
  MISSING_IN_CRM = "MISSING_IN_CRM",
  TYPE_CHANGED = "TYPE_CHANGED",
  UNKNOWN = "UNKNOWN",
}
registerEnumType(FieldMappingHealth, {
  name: "FieldMappingHealth",
  description: "What the CRM's field list last said of a nominated field.",
  valuesConfig: {
    OK: { description: "It is there, with the type that it had when it was nominated." },
    MISSING_IN_CRM: { description: "The CRM no longer lists it." },
    TYPE_CHANGED: { description: "Its type is another than when it was nominated; nominating it again accepts that." },
    UNKNOWN: { description: "The last look failed, or the connection needs re-authorization." },
  },
});

@ObjectType({ description: "The nominated field of an entity." })
export class FieldMapping {
  @Field(() => CrmEntity)
  entity!: CrmEntity;

  @Field(() => String)
  fieldKey!: string;

  @Field(() => String, { nullable: true, description: "As last seen in the CRM." })
  fieldName!: string | null;

  @Field(() => String, { nullable: true, description: "As last seen in the CRM." })
  fieldType!: string | null;

  @Field(() => FieldMappingHealth, { description: "OK, or what has become of the field since it was nominated." })
  health!: FieldMappingHealth;

  @Field(() => Date, { description: "When the CRM's field list was last read for it." })
  checkedAt!: Date;
}

/** The CRM's own keys have 40. */
const LONGEST_KEY = 100;

@InputType()
export class FieldMappingInput {
  @Field(() => CrmEntity)
  entity!: CrmEntity;

  @NotBlank()
  @Text(LONGEST_KEY)
  @Field(() => String, { description: "The key of a field that connection.fields calls writable." })
  fieldKey!: string;
}

@ObjectType()
export class FieldMappingSuccess {
  @Field(() => [FieldMapping], { description: "All mappings that hold now." })
  mappings!: FieldMapping[];
}

export const FieldMappingResult = createUnionType({
  name: "FieldMappingResult",
  types: () => [FieldMappingSuccess, Refusal] as const,
});
