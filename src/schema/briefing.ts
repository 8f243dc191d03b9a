import { Field } from "type-graphql";
import { ObjectType } from "./base";
import { Meeting } from "./meeting";
import { Deal } from "./records";

@ObjectType({ description: "A deal that a meeting could be about." })
export class DealCandidate {
  @Field(() => Deal, { description: "The deal that could be meant." })
  deal!: Deal;

  @Field(() => String, { description: "What speaks for it." })
  reason!: string;
}

@ObjectType({ description: "What a seller needs before or in a meeting." })
export class Briefing {
  @Field(() => Meeting, { description: "The meeting that it is for." })
  meeting!: Meeting;
}
