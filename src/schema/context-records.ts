import { Field, Int } from "type-graphql";
import { Node, ObjectType } from "./base";

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

  @Field(() => Boolean, { description: "False where the CRM has deactivated the user." })
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
