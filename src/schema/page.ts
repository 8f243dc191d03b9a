import { ArgsType, type ClassType, Field, Int } from "type-graphql";
import { ObjectType } from "./object-type";

@ObjectType({ description: "Where a page of a list ends." })
export class PageInfo {
  @Field(() => Boolean, { description: "Whether more follow after `endCursor`." })
  hasNextPage!: boolean;

  @Field(() => Boolean, { description: "Whether the page was asked for with `after`." })
  hasPreviousPage!: boolean;

  @Field(() => String, { nullable: true, description: "Of the first entry; null where the page is empty." })
  startCursor!: string | null;

  @Field(() => String, {
    nullable: true,
    description: "Pass it as `after` for the next page; null where the page is empty.",
  })
  endCursor!: string | null;
}

@ArgsType()
export class PageArgs {
  @Field(() => Int, { nullable: true, defaultValue: 20, description: "How many, from 1 to 100." })
  first!: number | null;

  @Field(() => String, {
    nullable: true,
    description: "A cursor of this list in this order: what follows it. It holds while rows come, go and change.",
  })
  after?: string | null;
}

/** A page as clients see it. */
export interface RelayPage<Node> {
  edges: { cursor: string; node: Node }[];
  nodes: Node[];
  pageInfo: PageInfo;
}

/** The pair of types `<name>Edge` and `<name>Connection`. */
export function connectionOf<Node extends object>(
  name: string,
  node: () => ClassType<Node>,
  description: string,
): ClassType<RelayPage<Node>> {
  @ObjectType(`${name}Edge`, { description: "One entry of a page, with its cursor." })
  class Edge {
    @Field(() => String, { description: "Pass it as `after` for what follows this entry." })
    cursor!: string;

    @Field(node, { description: "The entry itself." })
    node!: Node;
  }

  @ObjectType(`${name}Connection`, { description })
  class Connection implements RelayPage<Node> {
    @Field(() => [Edge], { description: "The entries of this page, each with its cursor." })
    edges!: Edge[];

    @Field(() => [node()], { description: "The same without their cursors." })
    nodes!: Node[];

    @Field(() => PageInfo, { description: "Whether and where the list goes on." })
    pageInfo!: PageInfo;
  }
  return Connection;
}
