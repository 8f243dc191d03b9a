import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  GraphQLError,
  type GraphQLField,
  type GraphQLOutputType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isCompositeType,
  isInterfaceType,
  isListType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from "graphql";

/** Tokens of a document; the longest query of a frontend has some hundreds. The parser stops there. */
export const MAX_TOKENS = 2_000;
/** Of a subscription's document, which is kept parsed for as long as it is open; the page's have some tens. */
export const MAX_EVENT_TOKENS = 500;
/** Nested fields; the briefing with everything in it needs seven. */
const MAX_DEPTH = 12;
/** Aliases in a document: each may ask for the same thing again. */
const MAX_ALIASES = 30;
/** Objects that an answer may hold at most, by the sizes that are asked for and the bounds of lists without one. */
const MAX_COST = 50_000;
/** The same for an event of a subscription, which comes often and to many: no field that is read from the CRM either. */
export const MAX_EVENT_COST = 1_000;
/** A mutation weighs as much as this many objects: each may call the CRM. */
const MUTATION_COST = 2_500;
/** A list that has no `first` counts as this many, */
const LIST_SIZE = 10;
/** or as what it may hold, where that is more. */
const LIST_SIZES = new Map([
  // A town hall has 500, and a page of a hundred town halls nobody.
  ["Meeting.attendees", 100],
  ["Mutation.recordMeetings", 100],
  ["PersonMatch.candidates", 50],
  ["MeetingMatch.candidates", 50],
  ["MeetingMatch.persons", 100],
  ["MeetingMatch.organizations", 100],
  ["Briefing.persons", 100],
  ["Briefing.organizations", 100],
  ["Briefing.otherDeals", 50],
  ["Deal.participants", 100],
  ["Connection.pipelines", 100],
  ["Pipeline.stages", 50],
  ["Connection.users", 500],
  ["QuietSettings.thresholds", 500],
]);
/** Text of a note may have 100 KB; a record's custom fields are large as well. */
const LARGE_LEAVES = new Set([
  "Note.html",
  "Note.text",
  "Deal.customFields",
  "Person.customFields",
  "Organization.customFields",
]);
const LARGE_LEAF_COST = 4;
/** Fields that are work beyond what they show. */
const OWN_COSTS = new Map([
  // Its answer is read from the CRM while the caller waits.
  ["Connection.fields", 5_000],
  // Judges all deals of the tenant: one in an operation.
  ["Query.previewQuietSettings", 30_000],
]);

/** How large an operation is, before any of it is executed. */
export interface OperationSize {
  depth: number;
  aliases: number;
  /** Objects of the answer at most, with the variables as they were sent. */
  cost: number;
  /** Fields of the document when every fragment is written out, those of introspection among them. */
  fields: number;
}

type Variables = Readonly<Record<string, unknown>>;

/**
 * Measures a validated operation in time linear in its document: fragments are measured once, however often they are
 * spread, so that fragments which double each other cost nothing to refuse. Introspection has neither depth nor cost: it
 * is bounded by graphql-js' own rule, and off in production unless it is switched on.
 */
export function sizeOf(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  variables: Variables,
): OperationSize {
  const measure = new Measure(schema, document, defaultsOf(operation, variables));
  const root = schema.getRootType(operation.operation);
  const { cost, depth, fields, width } = measure.selection(operation.selectionSet, root?.name ?? "");
  const mutations = operation.operation === "mutation" ? width : 0;
  return { depth, aliases: countAliases(document), cost: cost + mutations * MUTATION_COST, fields };
}

/** @returns why the operation is not executed; null where it may be */
export function refusalOfSize({ depth, aliases, cost }: OperationSize, maxCost = MAX_COST): GraphQLError | null {
  if (depth > MAX_DEPTH) return tooLarge("DOCUMENT_TOO_DEEP", `The document is ${depth} fields deep`, MAX_DEPTH);
  if (aliases > MAX_ALIASES) return tooLarge("TOO_MANY_ALIASES", `The document has ${aliases} aliases`, MAX_ALIASES);
  if (cost <= maxCost) return null;
  return tooLarge("OPERATION_TOO_COSTLY", `The operation may answer with ${cost} objects`, maxCost);
}

const ADVICE = "Ask for less at once: shorter lists (first), fewer nested lists, or several operations.";

function tooLarge(code: string, what: string, most: number): GraphQLError {
  return new GraphQLError(`${what}; at most ${most} are allowed. ${ADVICE}`, {
    extensions: { code, http: { status: 400 } },
  });
}

interface Part extends Omit<OperationSize, "aliases"> {
  /** Fields of the selection itself, those of its fragments included. */
  width: number;
}

const NOTHING: Part = { cost: 0, depth: 0, fields: 0, width: 0 };
const LEAF: Part = { cost: 0, depth: 1, fields: 1, width: 1 };
/** The types of the fields that every schema has beside its own. */
const INTROSPECTED = new Map([
  ["__schema", "__Schema"],
  ["__type", "__Type"],
]);
const LARGE_LEAF: Part = { ...LEAF, cost: LARGE_LEAF_COST };

class Measure {
  readonly #fragments = new Map<string, FragmentDefinitionNode>();
  readonly #measured = new Map<string, Part>();

  constructor(
    private readonly schema: GraphQLSchema,
    document: DocumentNode,
    private readonly variables: Variables,
  ) {
    for (const definition of document.definitions)
      if (definition.kind === Kind.FRAGMENT_DEFINITION) this.#fragments.set(definition.name.value, definition);
  }

  /** Selections of one set are counted together, also those of types that exclude each other: at most, not exactly. */
  selection({ selections }: SelectionSetNode, typeName: string): Part {
    let { cost, depth, fields, width } = NOTHING;
    for (const node of selections) {
      const part =
        node.kind === Kind.FIELD
          ? this.#field(node, typeName)
          : node.kind === Kind.INLINE_FRAGMENT
            ? this.selection(node.selectionSet, node.typeCondition?.name.value ?? typeName)
            : this.#spread(node.name.value);
      cost += part.cost;
      fields += part.fields;
      width += part.width;
      depth = Math.max(depth, part.depth);
    }
    return { cost, depth, fields, width };
  }

  #spread(name: string): Part {
    const known = this.#measured.get(name);
    if (known) return known;
    const fragment = this.#fragments.get(name);
    if (!fragment) return NOTHING;
    this.#measured.set(name, NOTHING);
    const part = this.selection(fragment.selectionSet, fragment.typeCondition.name.value);
    this.#measured.set(name, part);
    return part;
  }

  #field(node: FieldNode, typeName: string): Part {
    const field = this.#definition(typeName, node.name.value);
    if (!field) return this.#introspection(node);
    const named = getNamedType(field.type);
    const path = `${typeName}.${node.name.value}`;
    if (!node.selectionSet || !isCompositeType(named)) return LARGE_LEAVES.has(path) ? LARGE_LEAF : LEAF;
    const inner = this.selection(node.selectionSet, named.name);
    const first = this.#first(node, field);
    const own = OWN_COSTS.get(path) ?? 0;
    // A page's own `first` has already multiplied what its `edges` and `nodes` hold.
    const items = first ?? (isList(field.type) && !this.#isPage(typeName) ? (LIST_SIZES.get(path) ?? LIST_SIZE) : 1);
    return { cost: own + items * (1 + inner.cost), depth: inner.depth + 1, fields: inner.fields + 1, width: 1 };
  }

  #introspection({ name, selectionSet }: FieldNode): Part {
    const inner = selectionSet ? this.selection(selectionSet, INTROSPECTED.get(name.value) ?? "") : NOTHING;
    return { ...NOTHING, fields: inner.fields + 1 };
  }

  #definition(typeName: string, field: string): GraphQLField<unknown, unknown> | undefined {
    const type = this.schema.getType(typeName);
    return isObjectType(type) || isInterfaceType(type) ? type.getFields()[field] : undefined;
  }

  #isPage(typeName: string): boolean {
    const type = this.schema.getType(typeName);
    return isObjectType(type) && type.getFields().pageInfo !== undefined;
  }

  /** `first` as it will be: given, a variable's value, or the argument's default; null where the field has none. */
  #first(node: FieldNode, field: GraphQLField<unknown, unknown>): number | null {
    const argument = field.args.find(({ name }) => name === "first");
    if (!argument) return null;
    const given = node.arguments?.find(({ name }) => name.value === "first")?.value;
    const value =
      given?.kind === Kind.INT
        ? Number(given.value)
        : given?.kind === Kind.VARIABLE
          ? (this.variables[given.name.value] ?? argument.defaultValue)
          : argument.defaultValue;
    return typeof value === "number" ? Math.max(1, value) : LIST_SIZE;
  }
}

const isList = (type: GraphQLOutputType) => isListType(getNullableType(type));

/** Variables with their defaults. One of a wrong type is refused by the execution, whatever it would have cost. */
function defaultsOf({ variableDefinitions = [] }: OperationDefinitionNode, sent: Variables): Variables {
  const values: Record<string, unknown> = { ...sent };
  for (const { variable, defaultValue } of variableDefinitions) {
    const name = variable.name.value;
    if (values[name] === undefined && defaultValue?.kind === Kind.INT) values[name] = Number(defaultValue.value);
  }
  return values;
}

/** Counted in the document as written: what fragments repeat is in the cost. */
function countAliases(document: DocumentNode): number {
  let count = 0;
  const walk = ({ selections }: SelectionSetNode): void => {
    for (const node of selections) {
      if (node.kind === Kind.FIELD && node.alias) count += 1;
      if (node.kind !== Kind.FRAGMENT_SPREAD && node.selectionSet) walk(node.selectionSet);
    }
  };
  for (const definition of document.definitions) {
    if (definition.kind === Kind.OPERATION_DEFINITION || definition.kind === Kind.FRAGMENT_DEFINITION)
      walk(definition.selectionSet);
  }
  return count;
}
