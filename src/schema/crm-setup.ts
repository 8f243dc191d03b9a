import { Field, Int } from "type-graphql";
import { Node } from "./node";
import { ObjectType } from "./object-type";

@ObjectType({ implements: Node, description: "A user of the customer's CRM." })
export class CrmUser extends Node {
  @Field(() => String)
  crmId!: string;

  @Field(() => String)
  name!: string;

  @Field(() => String)
  email!: string;

  @Field(() => Boolean)
  active!: boolean;
}

@ObjectType({ implements: Node })
export class Pipeline extends Node {
  @Field(() => String)
  crmId!: string;

  @Field(() => String)
  name!: string;

  pipelineCrmId!: number;
}

@ObjectType({ implements: Node })
export class Stage extends Node {
  @Field(() => String)
  crmId!: string;

  @Field(() => String)
  name!: string;

  @Field(() => Int)
  position!: number;

  @Field(() => Int, {
    nullable: true,
    description: "Days without change after which the CRM calls a deal in this stage rotten; null where it does not.",
  })
  daysToRotten!: number | null;

  pipelineId!: number | null;
}
