import { Field, Int } from "type-graphql";
import { Node, ObjectType } from "./base";

@ObjectType({ implements: Node, description: "A user of the customer's CRM." })
export class CrmUser extends Node {
  @Field(() => String, { description: "Its id in the CRM." })
  crmId!: string;

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
  crmId!: string;

  @Field(() => String, { description: "As the CRM holds it." })
  name!: string;

  pipelineCrmId!: number;
}

@ObjectType({ implements: Node, description: "A step of a pipeline." })
export class Stage extends Node {
  @Field(() => String, { description: "Its id in the CRM." })
  crmId!: string;

  @Field(() => String, { description: "As the CRM holds it." })
  name!: string;

  @Field(() => Int, { description: "Its place in the pipeline, counted as the CRM does." })
  position!: number;

  @Field(() => Int, {
    nullable: true,
    description: "Days without change after which the CRM calls a deal in this stage rotten; null where it does not.",
  })
  daysToRotten!: number | null;

  pipelineId!: number | null;
}
