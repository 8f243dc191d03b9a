import { Field, InputType, Int } from "type-graphql";
import type { MatchedEntity } from "../entities/meeting";
import type { FieldMappingHealth } from "../entities/writeback";
import { apiEnum, DateScalar, JsonScalar, Node, ObjectType } from "./base";
import { resultOf, Text } from "./refusal";

@ObjectType({ implements: Node, description: "A call, meeting, task or the like in the CRM." })
export class Activity extends Node {
  @Field(() => String, { description: "Its id in the CRM." })
  crmId!: number;

  @Field(() => String, { description: "As the CRM holds it." })
  subject!: string;

  @Field(() => String, { description: "The CRM's key of the activity type, for example call." })
  type!: string;

  @Field(() => Boolean, { description: "Whether it is marked as done." })
  done!: boolean;

  @Field(() => Date, {
    nullable: true,
    description: "When it is due: an instant where the CRM has a time, else the start of that day in UTC.",
  })
  dueAt!: Date | null;

  @Field(() => DateScalar, {
    nullable: true,
    description: "The day on which it is due, where the CRM has no time of it: that day is no instant. Else null.",
  })
  dueDay!: Date | null;

  @Field(() => Date, { nullable: true, description: "When it was marked as done." })
  doneAt!: Date | null;
}

@ObjectType({ implements: Node, description: "A note in the CRM." })
export class Note extends Node {
  @Field(() => String, { description: "Its id in the CRM." })
  crmId!: number;

  @Field(() => Date, { name: "createdAt", simple: false, description: "When it was written." })
  addTime!: Date;

  @Field(() => Date, { name: "updatedAt", simple: false, nullable: true, description: "Its last change." })
  updateTime!: Date | null;

  @Field(() => Boolean, { description: "True where this service wrote it." })
  ours!: boolean;
}

@ObjectType({ implements: Node, description: "A user of the customer's CRM." })
export class CrmUser extends Node {
  @Field(() => String, { description: "Its id in the CRM." })
  crmId!: number;

  @Field(() => String, { description: "As the CRM holds it." })
  name!: string;

  @Field(() => String, { description: "The address in the CRM." })
  email!: string;

  @Field(() => Boolean, { description: "False where the CRM has deactivated the user, or lists it no more." })
  active!: boolean;
}

@ObjectType({ implements: Node, description: "A way of selling, made of stages." })
export class Pipeline extends Node {
  @Field(() => String, { description: "Its id in the CRM." })
  crmId!: number;

  @Field(() => String, { description: "As the CRM holds it." })
  name!: string;
}

@ObjectType({ implements: Node, description: "A step of a pipeline." })
export class Stage extends Node {
  @Field(() => String, { description: "Its id in the CRM." })
  crmId!: number;

  @Field(() => String, { description: "As the CRM holds it." })
  name!: string;

  @Field(() => Int, { description: "Its place in the pipeline, counted as the CRM does." })
  position!: number;

  @Field(() => Int, {
    nullable: true,
    description: "Days without change after which the CRM calls a deal in this stage rotten; null where it does not.",
  })
  daysToRotten!: number | null;
}

export const CrmEntityEnum = apiEnum<MatchedEntity>("CrmEntity", "What can receive a note and a nominated field.", {
  DEAL: "A deal.",
  PERSON: "A person.",
  ORGANIZATION: "An organization.",
});

@ObjectType({ description: "An option of a field of type enum or set." })
export class CrmFieldOption {
  @Field(() => String, { description: "Its id in the CRM; other fields may have options of the same." })
  crmId!: string;

  @Field(() => String, {
    description: "The same. Caches take equal ids for one option, and show its label in all fields.",
    deprecationReason: "Until 2027-06-01: use crmId.",
  })
  id!: string;

  @Field(() => String, { description: "As people see it; not unique." })
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

  @Field(() => Boolean, { description: "Whether the customer made it." })
  custom!: boolean;

  @Field(() => Boolean, {
    description:
      "Whether the service could nominate it: custom, of a type that it can write, and not read-only in the CRM.",
  })
  writable!: boolean;

  @Field(() => [CrmFieldOption], { description: "Empty where the type has none." })
  options!: CrmFieldOption[];
}

@ObjectType({ description: "A custom field of a record, by the CRM's list of fields as it was last read." })
export class CrmFieldValue {
  @Field(() => String, { description: "The field's key in the CRM." })
  key!: string;

  @Field(() => String, { description: "As people named it; the key where the list does not have the field." })
  name!: string;

  @Field(() => String, {
    description: "The CRM's word for it, for example enum; `unknown` where the list does not have the field.",
  })
  type!: string;

  @Field(() => JsonScalar, { nullable: true, description: "As the CRM holds it; null where it is empty." })
  value!: unknown;

  @Field(() => String, {
    nullable: true,
    description:
      "For people, up to 1,000 characters: labels of options, names of users, amounts with currency; persons and organizations by name where they are matched, else by id. null where it is empty or has no words.",
  })
  text!: string | null;

  @Field(() => [String], { description: "Options of its value that the CRM's list, as last read, does not have." })
  missingOptionIds!: string[];
}

const FieldMappingHealthEnum = apiEnum<FieldMappingHealth>(
  "FieldMappingHealth",
  "What the CRM's field list last said of a nominated field.",
  {
    OK: "It is there, with the type that it had when it was nominated.",
    MISSING_IN_CRM: "The CRM no longer lists it.",
    TYPE_CHANGED: "Its type is another than when it was nominated; nominating it again accepts that.",
    NOT_WRITABLE: "It cannot be written any more, as where it is a formula.",
    UNKNOWN: "The last look failed, or the connection needs re-authorization.",
  },
);

@ObjectType({ description: "The nominated field of an entity." })
export class FieldMapping {
  @Field(() => CrmEntityEnum, { description: "Whose field it is." })
  entity!: MatchedEntity;

  @Field(() => String, { description: "The nominated field's key in the CRM." })
  fieldKey!: string;

  @Field(() => String, { nullable: true, description: "As last seen in the CRM." })
  fieldName!: string | null;

  @Field(() => String, { nullable: true, description: "As last seen in the CRM." })
  fieldType!: string | null;

  @Field(() => FieldMappingHealthEnum, { description: "OK, or what has become of the field since it was nominated." })
  health!: FieldMappingHealth;

  @Field(() => Date, { description: "When the CRM's field list was last read for it." })
  checkedAt!: Date;
}

/** The CRM's own keys have 40. */
const LONGEST_KEY = 100;

@InputType({ description: "Which field to nominate." })
export class FieldMappingInput {
  @Field(() => CrmEntityEnum, { description: "Whose field." })
  entity!: MatchedEntity;

  @Text(1, LONGEST_KEY)
  @Field(() => String, { description: "Of a field that connection.fields calls writable; 1 to 100 characters." })
  fieldKey!: string;
}

@ObjectType({ description: "The nominated fields as they now stand." })
export class FieldMappingSuccess {
  @Field(() => [FieldMapping], { description: "All mappings that hold now." })
  mappings!: FieldMapping[];
}

export const FieldMappingResult = resultOf("FieldMappingResult", () => FieldMappingSuccess);
