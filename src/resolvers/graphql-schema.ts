import { writeFileSync } from "node:fs";
// Types and operations stand in schema.graphql in the order in which their classes are declared.
import "../schema/sync";
import "../schema/meeting";
import "../schema/records";
import "../schema/connection";
import "./root-resolvers";
import "./meeting-resolver";
import "./briefing-resolver";
import "./connection-resolver";
import "./record-resolvers";
import "./field-resolver";
import {
  defaultFieldResolver,
  type GraphQLFieldResolver,
  type GraphQLSchema,
  isObjectType,
  printSchema,
} from "graphql";
import { buildSchemaSync, type ClassType, getMetadataStorage, type NonEmptyArray } from "type-graphql";
import { DateTimeScalar } from "../schema/base";
import { BriefingResolver, MeetingMatchResolver, PersonMatchResolver } from "./briefing-resolver";
import { ConnectionResolver } from "./connection-resolver";
import type { OperationContext } from "./context";
import { ActivityResolver, NoteResolver, PipelineResolver, StageResolver } from "./crm-resolvers";
import { DealResolver } from "./deal-resolver";
import {
  DealFieldsResolver,
  FieldMappingResolver,
  FieldMappingSuccessResolver,
  NominatedFieldResolver,
  OrganizationFieldsResolver,
  PersonFieldsResolver,
} from "./field-resolver";
import { DealConnectionResolver, ListsResolver, MeetingConnectionResolver } from "./lists-resolver";
import { MeetingResolver } from "./meeting-resolver";
import {
  InteractionResolver,
  QuietReasonResolver,
  QuietSettingsResolver,
  QuietSignalResolver,
  QuietThresholdResolver,
  SnoozingResolver,
} from "./quiet-resolver";
import { OrganizationResolver, PersonResolver } from "./record-resolvers";
import { AuditResolver, NodeResolver, ViewerResolver } from "./root-resolvers";
import {
  DataGapResolver,
  OwnerVisibilityResolver,
  PipelineVisibilityResolver,
  SyncRequestedResolver,
  SyncRunResolver,
  SyncStatusResolver,
  VisibilityResolver,
} from "./sync-resolver";
import { FieldWriteResolver, NoteWriteResolver } from "./writeback-resolver";

/** Each subscription brings its own iterator; type-graphql wants a hub all the same, and this one is never used. */
function unusedHub(): never {
  throw new Error("subscriptions read rows and do not publish payloads");
}

type Resolve = GraphQLFieldResolver<unknown, OperationContext>;

/** The root types are declared by no class of ours. */
const ROOTS = {
  Query: "What can be read; all of it is of the viewer's tenant alone.",
  Mutation: "What can be done; a refusal that a client should handle is a member of the result's union.",
  Subscription: "What is told as it happens, over a WebSocket.",
};

/** A query reads by the copy that its tenant had last, together with which one it has: almost always that one, else it reads again. */
const byLastCopy =
  (resolve: Resolve = defaultFieldResolver): Resolve =>
  async (root, args, context, info) => {
    const holds = context.assumeCopy();
    const asked: unknown = resolve(root, args, context, info);
    await Promise.allSettled([asked]);
    if (await holds()) return asked;
    return resolve(root, args, context, info);
  };

const RESOLVERS: NonEmptyArray<ClassType> = [
  ViewerResolver,
  AuditResolver,
  ConnectionResolver,
  VisibilityResolver,
  OwnerVisibilityResolver,
  PipelineVisibilityResolver,
  NominatedFieldResolver,
  FieldMappingResolver,
  FieldMappingSuccessResolver,
  DealFieldsResolver,
  PersonFieldsResolver,
  OrganizationFieldsResolver,
  SyncRunResolver,
  SyncRequestedResolver,
  SyncStatusResolver,
  DataGapResolver,
  NodeResolver,
  ListsResolver,
  DealConnectionResolver,
  MeetingConnectionResolver,
  DealResolver,
  PersonResolver,
  OrganizationResolver,
  StageResolver,
  PipelineResolver,
  ActivityResolver,
  NoteResolver,
  MeetingResolver,
  PersonMatchResolver,
  MeetingMatchResolver,
  BriefingResolver,
  SnoozingResolver,
  QuietSignalResolver,
  QuietReasonResolver,
  InteractionResolver,
  QuietSettingsResolver,
  QuietThresholdResolver,
  NoteWriteResolver,
  FieldWriteResolver,
];

/** The schema that the resolvers build. What a single input class cannot know is checked by the domain functions. */
export function buildGraphQLSchema(): GraphQLSchema {
  const schema = buildSchemaSync({
    resolvers: RESOLVERS,
    scalarsMap: [{ type: Date, scalar: DateTimeScalar }],
    validate: false,
    pubSub: { publish: unusedHub, subscribe: unusedHub },
  });
  for (const field of Object.values(schema.getQueryType()?.getFields() ?? {}))
    field.resolve = byLastCopy(field.resolve);
  for (const [type, description] of Object.entries(ROOTS)) {
    const root = schema.getType(type);
    if (root) root.description = description;
  }
  return schema;
}

/** A method that answers a field, as type-graphql knows it. */
type Method = ReturnType<typeof getMetadataStorage>["fieldResolvers"][number];

/** What a resolver is given besides arguments, in the order in which GraphQL gives it. */
const GIVEN = ["root", "context", "info"];
const NOTHING = GIVEN.length;

/** Where each parameter of a method stands in {@link GIVEN}; null where it takes anything else, or is not for everybody. */
function placesOf({ params = [], middlewares = [], roles }: Method): number[] | null {
  const places = [...params]
    .sort((one, other) => one.index - other.index)
    .map((param) => {
      const { propertyName, getType } = { propertyName: undefined, getType: undefined, ...param };
      return propertyName || getType ? -1 : GIVEN.indexOf(param.kind);
    });
  const isPlain = places.length <= GIVEN.length && !places.includes(-1) && middlewares.length === 0 && !roles;
  return isPlain ? places : null;
}

/**
 * Has methods without arguments called as GraphQL calls a resolver. Type-graphql, as it comes, gathers and sorts their parameters
 * for each object of an answer anew: a fifth of the CPU of a page of deals. A container, and middlewares of all fields, of which
 * we have none, would be passed by.
 */
export function callStraight(schema: GraphQLSchema): GraphQLSchema {
  const { fieldResolvers, interfaceTypes, objectTypes } = getMetadataStorage();
  const resolvers = RESOLVERS.map((Resolver) => new Resolver());
  for (const { name: typeName, interfaceClasses = [], fields: own = [] } of objectTypes) {
    const type = schema.getType(typeName);
    const shared = interfaceTypes.filter(({ target }) => interfaceClasses.includes(target));
    // A type's own field comes last, and takes the place of its interface's.
    const declared = [...shared.flatMap(({ fields = [] }) => fields), ...own];
    for (const { schemaName, name, target } of new Map(declared.map((field) => [field.schemaName, field])).values()) {
      const method = fieldResolvers.find((one) => one.methodName === name && one.getObjectType?.() === target);
      const resolve = method && straight(method, resolvers);
      const field = isObjectType(type) ? type.getFields()[schemaName] : undefined;
      if (field && resolve) field.resolve = resolve;
    }
  }
  return schema;
}

/** What calls a method; null where it is not to be called straight, or is that of a type's class, which no resolver is. */
function straight(method: Method, resolvers: readonly object[]): Resolve | null {
  const resolver = resolvers.find((one) => one instanceof method.target);
  const places = placesOf(method);
  if (!resolver || !places) return null;
  const [first = NOTHING, second = NOTHING, third = NOTHING] = places;
  const call: (...given: unknown[]) => unknown = Reflect.get(resolver, method.methodName).bind(resolver);
  return (root, _args, context, info) => {
    const given = [root, context, info, undefined];
    return call(given[first], given[second], given[third]);
  };
}

export const SCHEMA_FILE = "schema.graphql";

const HEADER = "# The public contract. Emitted from the resolvers by `npm run schema`; a test holds it up to date.";
export const printedSchema = (schema: GraphQLSchema): string => `${HEADER}\n\n${printSchema(schema)}\n`;

if (require.main === module) writeFileSync(SCHEMA_FILE, printedSchema(buildGraphQLSchema()));
