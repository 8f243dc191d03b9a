import {
  type DocumentNode,
  type FieldNode,
  type GraphQLNamedType,
  type GraphQLOutputType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isCompositeType,
  isListType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from "graphql";
import {
  type ComplexityEstimatorArgs as Asked,
  fieldExtensionsEstimator,
  getComplexity,
} from "graphql-query-complexity";

/** A mutation weighs as much as this many objects: each may call the CRM. */
const MUTATION_COST = 2_500;
/** A list that has no `first`, and whose field does not say what it costs, counts as this many. */
const LIST_SIZE = 10;

export interface Cost {
  /** Objects of the answer at most, with the variables as they were sent. */
  cost: number;
  /** The field that makes most of it, by its way from the root; null where no field does. */
  dearest: string | null;
}

export type Variables = Readonly<Record<string, unknown>>;

/** @param operation one whose fragments, written out, are few: they are followed */
export function costOf(
  schema: GraphQLSchema,
  query: DocumentNode,
  operation: OperationDefinitionNode,
  variables: Variables,
): Cost {
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
  const fields = new Set(fieldsOf(within, query));
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

function fieldsOf({ selections }: SelectionSetNode, query: DocumentNode): FieldNode[] {
  return selections.flatMap((node) => {
    if (node.kind === Kind.FIELD) return [node];
    if (node.kind === Kind.INLINE_FRAGMENT) return fieldsOf(node.selectionSet, query);
    const fragment = query.definitions.find(
      (definition) => definition.kind === Kind.FRAGMENT_DEFINITION && definition.name.value === node.name.value,
    );
    return fragment?.kind === Kind.FRAGMENT_DEFINITION ? fieldsOf(fragment.selectionSet, query) : [];
  });
}
