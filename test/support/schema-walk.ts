import {
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLNamedType,
  type GraphQLSchema,
  getNamedType,
  isAbstractType,
  isInputObjectType,
  isInterfaceType,
  isLeafType,
  isObjectType,
  isRequiredArgument,
} from "graphql";

/** Every operation, each of its arguments and each input field: `Query.deals`, `Query.deals(filter.stageId)`. */
export function coordinates(schema: GraphQLSchema): string[] {
  const roots = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()];
  return roots.flatMap((root) =>
    Object.values(root?.getFields() ?? {}).flatMap((field) => {
      const name = `${root?.name}.${field.name}`;
      return [name, ...field.args.flatMap((argument) => paths(argument).map((path) => `${name}(${path})`))];
    }),
  );
}

function paths(input: GraphQLArgument | GraphQLInputField, seen: readonly string[] = []): string[] {
  const type = getNamedType(input.type);
  if (!isInputObjectType(type)) return [input.name];
  if (seen.includes(type.name)) return [];
  const inner = Object.values(type.getFields()).flatMap((field) => paths(field, [...seen, type.name]));
  return inner.map((path) => `${input.name}.${path}`);
}

/** The object types that have a global id. */
export function nodeTypes(schema: GraphQLSchema): string[] {
  const node = schema.getType("Node");
  if (!isInterfaceType(node)) throw new Error("there is no interface Node");
  return schema.getPossibleTypes(node).map(({ name }) => name);
}

/**
 * A selection of a type: all of its own values, and every edge that needs no argument, up to the next thing with an id,
 * of which the id alone is asked for.
 */
function oneHop(schema: GraphQLSchema, type: GraphQLNamedType, leftOut: readonly string[]): string {
  return selection(schema, type, true, leftOut);
}

/** What counts all of the copy costs more than an event may. */
const NOT_IN_EVENTS = ["ActivityTypeUse", "VisibilityReport"];

/**
 * Selections that together ask for all that an event may have of what is within reach of an object type, each small enough to be answered: the own values
 * of it, and of each object that it leads to, at the end of a shortest way of fields that need no argument.
 */
export function selectionsWithin(schema: GraphQLSchema, root: string): string[] {
  const ways = new Map<string, string[]>([[root, []]]);
  for (const [name, path] of ways) {
    const type = schema.getType(name);
    const narrowed = isAbstractType(type) ? schema.getPossibleTypes(type) : [];
    for (const member of narrowed)
      if (!ways.has(member.name)) ways.set(member.name, [...path, `... on ${member.name}`]);
    for (const field of isObjectType(type) ? Object.values(type.getFields()) : []) {
      const next = getNamedType(field.type);
      if (
        isLeafType(next) ||
        ways.has(next.name) ||
        NOT_IN_EVENTS.includes(next.name) ||
        field.args.some(isRequiredArgument)
      )
        continue;
      ways.set(next.name, [...path, asked(field)]);
    }
  }
  return [...ways].map(([name, path]) => {
    const type = schema.getType(name);
    const fields = isObjectType(type) ? Object.values(type.getFields()) : [];
    const own = fields.filter((field) => isLeafType(getNamedType(field.type)) && !field.args.some(isRequiredArgument));
    return [...path, ["__typename", ...own.map(({ name: value }) => value)].join(" ")].reduceRight(
      (inner, way) => `${way} { ${inner} }`,
    );
  });
}

function selection(schema: GraphQLSchema, type: GraphQLNamedType, isRoot: boolean, above: readonly string[]): string {
  if (!isRoot && hasId(schema, type)) return "__typename id";
  if (isAbstractType(type)) {
    const members = schema.getPossibleTypes(type).map((member) => {
      const inner = selection(schema, member, isRoot, above);
      return `... on ${member.name} { ${inner} }`;
    });
    return `__typename ${members.join(" ")}`;
  }
  if (!isObjectType(type)) return "__typename";
  const fields = Object.values(type.getFields()).flatMap((field) => {
    const inner = edge(schema, field, [...above, type.name]);
    return inner === null ? [] : `${asked(field)}${inner}`;
  });
  return `__typename ${fields.join(" ")}`;
}

/** A field as it is asked for: of a list one, so that no selection is too costly. */
const asked = ({ name, args }: GraphQLField<unknown, unknown>) =>
  args.some((argument) => argument.name === "first") ? `${name}(first: 1)` : name;

function edge(schema: GraphQLSchema, field: GraphQLField<unknown, unknown>, above: readonly string[]): string | null {
  const type = getNamedType(field.type);
  if (field.args.some(isRequiredArgument)) return null;
  if (isLeafType(type)) return "";
  return above.includes(type.name) ? null : ` { ${selection(schema, type, false, above)} }`;
}

function hasId(schema: GraphQLSchema, type: GraphQLNamedType): boolean {
  if (type.name === "Node") return true;
  return isObjectType(type) && nodeTypes(schema).includes(type.name);
}

/** A document for one operation, with each argument as a variable. `of` narrows an abstract type to one of its members. */
export function operation(
  schema: GraphQLSchema,
  kind: "Query" | "Mutation" | "Subscription",
  name: string,
  args: readonly string[],
  of?: string,
): string {
  const root = schema.getType(kind);
  const field = isObjectType(root) ? root.getFields()[name] : undefined;
  if (!field) throw new Error(`there is no ${kind}.${name}`);
  const given = field.args.filter((argument) => args.includes(argument.name));
  const declared = given.map((argument) => `$${argument.name}: ${argument.type}`).join(", ");
  const passed = given.map((argument) => `${argument.name}: $${argument.name}`).join(", ");
  const narrowed = of === undefined ? null : schema.getType(of);
  const leftOut = kind === "Subscription" ? NOT_IN_EVENTS : [];
  const selected = narrowed
    ? `__typename ... on ${narrowed.name} { ${oneHop(schema, narrowed, leftOut)} }`
    : oneHop(schema, getNamedType(field.type), leftOut);
  const head = `${kind.toLowerCase()}${declared && ` (${declared})`}`;
  return `${head} { ${name}${passed && `(${passed})`} { ${selected} } }`;
}
