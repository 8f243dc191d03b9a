import { writeFileSync } from "node:fs";
// Types and operations stand in schema.graphql in the order in which their classes are declared.
import "../schema/sync";
import "../schema/meeting";
import "../schema/records";
import "../schema/connection";
import "./viewer-resolver";
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
import { buildSchemaSync, getMetadataStorage } from "type-graphql";
import { DateTimeScalar } from "../schema/base";
import { BriefingResolver, MeetingMatchResolver, PersonMatchResolver } from "./briefing-resolver";
import { ConnectionResolver } from "./connection-resolver";
import type { OperationContext } from "./context";
import { ActivityResolver, NoteResolver, PipelineResolver, StageResolver } from "./crm-resolvers";
import { DealResolver } from "./deal-resolver";
import {
  DealFieldsResolver,
  FieldMappingResolver,
  NominatedFieldResolver,
  OrganizationFieldsResolver,
  PersonFieldsResolver,
} from "./field-resolver";
import { DealConnectionResolver, ListsResolver, MeetingConnectionResolver } from "./lists-resolver";
import { MeetingResolver } from "./meeting-resolver";
import { NodeResolver } from "./node-resolver";
import {
  InteractionResolver,
  QuietReasonResolver,
  QuietSettingsResolver,
  QuietSignalResolver,
  QuietThresholdResolver,
  SnoozingResolver,
} from "./quiet-resolver";
import { OrganizationResolver, PersonResolver } from "./record-resolvers";
import {
  DataGapResolver,
  OwnerVisibilityResolver,
  PipelineVisibilityResolver,
  SyncRunResolver,
  VisibilityResolver,
} from "./sync-resolver";
import { AuditResolver, ViewerResolver } from "./viewer-resolver";
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

/** The schema that the resolvers build. What a single input class cannot know is checked by the domain functions. */
export function buildGraphQLSchema(): GraphQLSchema {
  const schema = buildSchemaSync({
    resolvers: [
      ViewerResolver,
      AuditResolver,
      ConnectionResolver,
      VisibilityResolver,
      OwnerVisibilityResolver,
      PipelineVisibilityResolver,
      NominatedFieldResolver,
      FieldMappingResolver,
      DealFieldsResolver,
      PersonFieldsResolver,
      OrganizationFieldsResolver,
      SyncRunResolver,
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
    ],
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
  return places.includes(-1) || middlewares.length > 0 || roles ? null : places;
}

/**
 * Has methods without arguments called as GraphQL calls a resolver. Type-graphql, as it comes, gathers and sorts their parameters
 * for each object of an answer anew: a sixth of the CPU of a page of deals.
 */
export function callStraight(schema: GraphQLSchema): GraphQLSchema {
  const { fieldResolvers, objectTypes } = getMetadataStorage();
  const resolvers = new Map<unknown, Resolver>();
  for (const method of fieldResolvers) {
    const places = placesOf(method);
    if (!places) continue;
    const resolver: Resolver = resolvers.get(method.target) ?? Reflect.construct(method.target, []);
    resolvers.set(method.target, resolver);
    const resolve = straight(resolver, method.methodName, places);
    const of = method.getObjectType?.();
    for (const { name, target, interfaceClasses = [] } of objectTypes) {
      const type =
        target === of || interfaceClasses.some((implemented) => implemented === of) ? schema.getType(name) : null;
      const field = isObjectType(type) ? type.getFields()[method.schemaName] : undefined;
      if (field) field.resolve = resolve;
    }
  }
  return schema;
}

type Resolver = Record<string, (...given: unknown[]) => unknown>;

function straight(
  resolver: Resolver,
  method: string,
  [first = NOTHING, second = NOTHING, third = NOTHING]: readonly number[],
): Resolve {
  return (root, _args, context, info) => {
    const given = [root, context, info, undefined];
    return resolver[method]?.(given[first], given[second], given[third]);
  };
}

export const SCHEMA_FILE = "schema.graphql";

const HEADER = "# The public contract. Emitted from the resolvers by `npm run schema`; a test holds it up to date.";
export const printedSchema = (schema: GraphQLSchema): string => `${HEADER}\n\n${printSchema(schema)}\n`;

if (require.main === module) writeFileSync(SCHEMA_FILE, printedSchema(buildGraphQLSchema()));
