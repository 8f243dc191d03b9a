import { Field } from "type-graphql";
import { Meeting } from "./meeting";
import { ObjectType } from "./object-type";
import { Deal } from "./records";

@ObjectType({ description: "A deal that a meeting could be about." })
export class DealCandidate {
  @Field(() => Deal)
  deal!: Deal;

  @Field(() => String, { description: "What speaks for it." })
  reason!: string;
}

@ObjectType({ description: "What a seller needs before or in a meeting." })
export class Briefing {
  @Field(() => Meeting)
  meeting!: Meeting;
}
