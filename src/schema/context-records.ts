import { Field } from "type-graphql";
import { Node, ObjectType } from "./base";

@ObjectType({ implements: Node, description: "A call, meeting, task or the like in the CRM." })
export class Activity extends Node {
  @Field(() => String, { description: "Its id in the CRM." })
  crmId!: string;

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

  links!: { owner: number | null; deal: number | null; person: number | null; organization: number | null };
}

@ObjectType({ implements: Node, description: "A note in the CRM." })
export class Note extends Node {
  @Field(() => String, { description: "Its id in the CRM." })
  crmId!: string;

  @Field(() => Date, { description: "When it was written." })
  createdAt!: Date;

  @Field(() => Date, { nullable: true, description: "Its last change." })
  updatedAt!: Date | null;

  @Field(() => Boolean, { description: "True where this service wrote it." })
  ours!: boolean;

  links!: {
    note: number;
    author: number | null;
    deal: number | null;
    person: number | null;
    organization: number | null;
  };
}
