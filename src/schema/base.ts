import "reflect-metadata";
import { GraphQLError, GraphQLScalarType } from "graphql";
import type { ComplexityEstimatorArgs } from "graphql-query-complexity";
import { GraphQLDateTime, GraphQLJSON, GraphQLJSONObject } from "graphql-scalars";
import * as typeGraphql from "type-graphql";

type Options = typeGraphql.ObjectTypeOptions;

/**
 * type-graphql's decorator for types whose values are plain objects, as all of ours are: a field without a resolver of
 * its own is read as a property, and not through a function of the library's.
 */
export function ObjectType(options?: Options): ClassDecorator;
export function ObjectType(name: string, options?: Options): ClassDecorator;
export function ObjectType(name?: string | Options, options?: Options): ClassDecorator {
  if (typeof name === "string") return typeGraphql.ObjectType(name, { simpleResolvers: true, ...options });
  return typeGraphql.ObjectType({ simpleResolvers: true, ...name });
}

@typeGraphql.InterfaceType({ description: "Anything with a global id." })
export abstract class Node {
  @typeGraphql.Field(() => typeGraphql.ID, {
    description: "Opaque and global; unknown, foreign and never-matched ids are all answered alike: null.",
  })
  id!: string;
}

/**
 * An enum of the API: each value of the code's own type with its description. The API names it in capitals, and the code
 * sees it as it stores it.
 */
export function apiEnum<Value extends string>(
  name: string,
  description: string,
  values: Readonly<Record<Value, string>>,
): object {
  const described = Object.entries<string>(values);
  const named = Object.fromEntries(described.map(([value]) => [value.toUpperCase(), value]));
  const valuesConfig = Object.fromEntries(
    described.map(([value, words]) => [value.toUpperCase(), { description: words }]),
  );
  typeGraphql.registerEnumType(named, { name, description, valuesConfig });
  return named;
}

export const DateTimeScalar = new GraphQLScalarType<Date, string>({
  ...GraphQLDateTime.toConfig(),
  description: "An instant, RFC 3339 in UTC, for example 2026-11-20T09:30:00.000Z.",
  serialize: (value) => (value as Date).toISOString(),
});

export const DateScalar = new GraphQLScalarType({
  name: "Date",
  description: "A calendar day, YYYY-MM-DD.",
  /** A `Date` is the day's midnight in UTC. */
  serialize: (value) => (value instanceof Date ? value.toISOString().slice(0, 10) : String(value)),
});

const DECIMAL = /^-?\d{1,20}(\.\d{1,10})?$/;

export const DecimalScalar = new GraphQLScalarType({
  name: "Decimal",
  description: 'An exact decimal number as a string, for example "1250.50". Money is never a float.',
  serialize: String,
  parseValue(value) {
    if (typeof value === "string" && DECIMAL.test(value)) return value;
    throw new GraphQLError(
      'A Decimal is a string of at most 20 digits and 10 behind the point, for example "1250.50".',
    );
  },
});

export const JsonObjectScalar = new GraphQLScalarType({
  ...GraphQLJSONObject.toConfig(),
  description: "A JSON object: custom fields as the CRM holds them, keyed by field key.",
});

export const JsonScalar = new GraphQLScalarType({
  ...GraphQLJSON.toConfig(),
  description: "Any JSON value: what a custom field holds, or is to hold. Its shape depends on the field's type.",
});

/**
 * Costs are counted in objects of the answer. A page counts as its `first`, any other list as ten, a value as nothing; a
 * field that costs something else says so where it is declared.
 */

type Inner = Pick<ComplexityEstimatorArgs, "childComplexity">;

/** A list that may hold this many. */
export const asMany =
  (most: number) =>
  ({ childComplexity }: Inner): number =>
    most * (1 + childComplexity);

/** A record's custom fields; companies have some dozens. */
export const CUSTOM_FIELDS = asMany(100);

/** Attendees that a meeting is reckoned with: a town hall has 500, and a page of a hundred town halls nobody. */
export const A_DEPARTMENT = 100;

/** Text of a note may have 100 KB; a record's custom fields are large as well. */
export const LARGE_VALUE = 4;

/** A list that is read from the CRM while the caller waits. */
export const LIVE = (inner: Inner): number => 5_000 + asMany(10)(inner);

/** Judges all deals of the tenant: one in an operation. */
export const OF_ALL_DEALS = ({ childComplexity }: Inner): number => 30_000 + childComplexity;

/** Counts all records of the copy: a few in an operation, and none in an event. */
export const OF_THE_COPY = ({ childComplexity }: Inner): number => 10_000 + childComplexity;

@ObjectType({ description: "Where a page of a list ends." })
class PageInfo {
  @typeGraphql.Field(() => Boolean, { description: "Whether more follow after `endCursor`." })
  hasNextPage!: boolean;

  @typeGraphql.Field(() => Boolean, { description: "Whether the page was asked for with `after`." })
  hasPreviousPage!: boolean;

  @typeGraphql.Field(() => String, { nullable: true, description: "Of the first entry; null where the page is empty." })
  startCursor!: string | null;

  @typeGraphql.Field(() => String, {
    nullable: true,
    description: "Pass it as `after` for the next page; null where the page is empty.",
  })
  endCursor!: string | null;
}

@typeGraphql.ArgsType()
export class PageArgs {
  @typeGraphql.Field(() => typeGraphql.Int, {
    nullable: true,
    defaultValue: 20,
    description: "How many, from 1 to 100.",
  })
  first!: number | null;

  @typeGraphql.Field(() => String, {
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
export function connectionOf(name: string, node: () => object, description: string): typeGraphql.ClassType {
  @ObjectType(`${name}Edge`, { description: "One entry of a page, with its cursor." })
  class Edge {
    @typeGraphql.Field(() => String, { description: "Pass it as `after` for what follows this entry." })
    cursor!: string;

    @typeGraphql.Field(node, { description: "The entry itself." })
    node!: object;
  }

  @ObjectType(`${name}Connection`, { description })
  class Connection implements RelayPage<object> {
    @typeGraphql.Field(() => [Edge], { description: "The entries of this page, each with its cursor." })
    edges!: Edge[];

    @typeGraphql.Field(() => [node()], { description: "The same without their cursors." })
    nodes!: object[];

    @typeGraphql.Field(() => PageInfo, { description: "Whether and where the list goes on." })
    pageInfo!: PageInfo;
  }
  return Connection;
}
