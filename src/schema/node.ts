import { Field, ID, InterfaceType } from "type-graphql";

@InterfaceType()
export abstract class Node {
  @Field(() => ID, {
    description: "Opaque and global; unknown, foreign and never-matched ids are all answered alike: null.",
  })
  id!: string;
}
