import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLNamedType,
  type GraphQLOutputType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  getVariableValues,
  isCompositeType,
  isListType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
} from "graphql";
import {
  type ComplexityEstimatorArgs as Asked,
  fieldExtensionsEstimator,
  getComplexity,
} from "graphql-query-complexity";

/** Fields and fragments of an operation, with all fragments written out, that are weighed at all. */
const MAX_NODES = 10_000;

/** A mutation weighs as much as this many objects: each may call the CRM. */
const MUTATION_COST = 2_500;
/** A list that has no `first`, and whose field does not say what it costs, counts as this many. */
const LIST_SIZE = 10;

type Variables = Readonly<Record<string, unknown>>;

/** How large an operation is, before any of it is executed. */
export interface OperationSize {
  /** Objects of the answer at most, with the variables as they were sent. */
  cost: number;
  /** The field that makes most of it, by its way from the root; null where no field does. */
  dearest: string | null;
  depth: number;
  aliases: number;
  /** Fields and fragments of the operation when every fragment is written out, those of introspection among them. */
  nodes: number;
}

/** Sizes of an operation that are remembered, one for each set of page sizes and switches that it comes with. */
const MAX_REMEMBERED = 20;
/** By operation as it was parsed; kept documents come again as the same one. */
const remembered = new WeakMap<OperationDefinitionNode, Map<string, OperationSize>>();

/**
 * Measures a validated operation. Its fragments are measured once, however often they are spread, so that fragments which
 * double each other cost nothing to refuse; what it costs is summed only where that has shown it to be small. Introspection
 * has neither depth nor cost: it is bounded by graphql-js' own rule, and off in production unless it is switched on.
 */
export function sizeOf(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  variables: Variables,
): OperationSize {
  const sizes = remembered.get(operation) ?? new Map<string, OperationSize>();
  const weighing = weighingOf(operation, variables);
  const known = sizes.get(weighing);
  if (known) return known;
  const { depth, nodes } = new Shape(document).of(operation.selectionSet);
  const size = { depth, aliases: countAliases(document), cost: Number.POSITIVE_INFINITY, dearest: null, nodes };
  // Variables that do not fit are refused by the execution, in its words. They say nothing of what others would cost.
  if (!isFitting(schema, operation, variables)) return { ...size, cost: 0 };
  const weighed = nodes <= MAX_NODES ? { ...size, ...costOf(schema, document, operation, variables) } : size;
  if (sizes.size >= MAX_REMEMBERED) sizes.clear();
  remembered.set(operation, sizes.set(weighing, weighed));
  return weighed;
}

/** The variables that an operation's cost can depend on: those of `first`, `@skip` and `@include`. */
function weighingOf({ variableDefinitions = [] }: OperationDefinitionNode, variables: Variables): string {
  const values = variableDefinitions.map(({ variable }) => variables[variable.name.value]);
  return values.map((value) => (isWeighing(value) ? String(value) : typeof value)).join();
}

const isWeighing = (value: unknown) => value === null || typeof value === "number" || typeof value === "boolean";

/** Ends at the first value that does not fit: to word thousands of them takes minutes, and graphql-js words the first ones. */
export function isFitting(schema: GraphQLSchema, operation: OperationDefinitionNode, variables: Variables): boolean {
  return !getVariableValues(schema, operation.variableDefinitions ?? [], variables, { maxErrors: 0 }).errors;
}

type Part = Pick<OperationSize, "depth" | "nodes">;

/** Measures each fragment once, however often it is spread. */
class Shape {
  readonly #fragments = new Map<string, FragmentDefinitionNode>();
  readonly #measured = new Map<string, Part>();

  constructor({ definitions }: DocumentNode) {
    for (const definition of definitions)
      if (definition.kind === Kind.FRAGMENT_DEFINITION) this.#fragments.set(definition.name.value, definition);
  }

  of({ selections }: SelectionSetNode): Part {
    let [depth, nodes] = [0, 0];
    for (const node of selections) {
      const part = this.#part(node);
      depth = Math.max(depth, part.depth);
      nodes += 1 + part.nodes;
    }
    return { depth, nodes };
  }

  #part(node: SelectionNode): Part {
    if (node.kind === Kind.INLINE_FRAGMENT) return this.of(node.selectionSet);
    if (node.kind === Kind.FRAGMENT_SPREAD) return this.#spread(node.name.value);
    const { depth, nodes } = node.selectionSet ? this.of(node.selectionSet) : NOTHING;
    return { depth: node.name.value.startsWith("__") ? 0 : depth + 1, nodes };
  }

  #spread(name: string): Part {
    const known = this.#measured.get(name);
    if (known) return known;
    const fragment = this.#fragments.get(name);
    if (!fragment) return NOTHING;
    // A fragment within itself would never end; validation refuses such a circle later.
    this.#measured.set(name, NOTHING);
    const part = this.of(fragment.selectionSet);
    this.#measured.set(name, part);
    return part;
  }
}

const NOTHING: Part = { depth: 0, nodes: 0 };

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

/** @param operation one whose fragments, written out, are few: they are followed */
function costOf(
  schema: GraphQLSchema,
  query: DocumentNode,
  operation: OperationDefinitionNode,
  variables: Variables,
): Pick<OperationSize, "cost" | "dearest"> {
  const mutations = schema.getMutationType();
  const costs = new Map<FieldNode, number>();
  const estimate = (asked: Asked) => {
    const cost = costOfField(asked) + (asked.type === mutations ? MUTATION_COST : 0);
    costs.set(asked.node, Math.max(cost, costs.get(asked.node) ?? 0));
    return cost;
  };
  const options = { schema, query, variables, operationName: operation.name?.value, estimators: [estimate] };
  const cost = getComplexity({ ...options, maxQueryNodes: Number.POSITIVE_INFINITY });
  const way = dearestWithin(operation.selectionSet, query, costs);
  return { cost, dearest: way.length > 0 ? way.join(".") : null };
}

const declared = fieldExtensionsEstimator();

/** A field may say what it costs (schema/base.ts); else its type says it. */
function costOfField(asked: Asked): number {
  const { field, type, args, childComplexity } = asked;
  if (field.name.startsWith("__")) return 0;
  const said = declared(asked);
  if (typeof said === "number") return said;
  if (!isCompositeType(getNamedType(field.type))) return 0;
  const most = field.args.find(({ name }) => name === "first");
  // `first: null` is what the field takes for none.
  const first = most ? Math.max(1, args.first ?? most.defaultValue ?? LIST_SIZE) : null;
  // A page's own `first` has already multiplied what its `edges` and `nodes` hold.
  const items = first ?? (isList(field.type) && !isPage(type) ? LIST_SIZE : 1);
  return items * (1 + childComplexity);
}

const isList = (type: GraphQLOutputType) => isListType(getNullableType(type));
const isPage = (type: GraphQLNamedType) => isObjectType(type) && type.getFields().pageInfo !== undefined;

/** Goes on into a field as long as it costs more than its own object, and than all that stands beside it. */
function dearestWithin(within: SelectionSetNode, query: DocumentNode, costs: ReadonlyMap<FieldNode, number>): string[] {
  const fields = fieldsOf(within, query);
  let [dearest, most, all]: [FieldNode | null, number, number] = [null, 0, 0];
  for (const field of fields) {
    const cost = costs.get(field) ?? 0;
    all += cost;
    if (cost > most) [dearest, most] = [field, cost];
  }
  if (dearest === null || most <= 1 || most * 2 <= all) return [];
  const { name, selectionSet } = dearest;
  return [name.value, ...(selectionSet ? dearestWithin(selectionSet, query, costs) : [])];
}

/**
 * The fields that a selection asks for, in whatever fragments they stand.
 * @param seen each fragment is looked into once: they can double each other beyond all bounds
 */
export function fieldsOf({ selections }: SelectionSetNode, query: DocumentNode, seen = new Set<string>()): FieldNode[] {
  return selections.flatMap((node) => {
    if (node.kind === Kind.FIELD) return [node];
    if (node.kind === Kind.INLINE_FRAGMENT) return fieldsOf(node.selectionSet, query, seen);
    const name = node.name.value;
    if (seen.has(name)) return [];
    seen.add(name);
    const fragment = query.definitions.find((one) => one.kind === Kind.FRAGMENT_DEFINITION && one.name.value === name);
    return fragment?.kind === Kind.FRAGMENT_DEFINITION ? fieldsOf(fragment.selectionSet, query, seen) : [];
  });
}
