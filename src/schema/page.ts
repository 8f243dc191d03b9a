import { Field, ObjectType } from "type-graphql";

@ObjectType({ description: "Where a page of a list ends." })
export class PageInfo {
  @Field(() => Boolean, { description: "Whether more follow after `endCursor`." })
  hasNextPage!: boolean;

  @Field(() => String, {
    nullable: true,
    description: "Pass it as `after` for the next page; null where the page is empty.",
  })
  endCursor!: string | null;
}
