import {
  type FieldNode,
  type GraphQLCompositeType,
  GraphQLIncludeDirective,
  type GraphQLResolveInfo,
  GraphQLSkipDirective,
  getArgumentValues,
  getDirectiveValues,
  getNamedType,
  isAbstractType,
  isCompositeType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from "graphql";
import { Extensions } from "type-graphql";
import type { Loaders } from "./loaders";

/**
 * What a query will look up is read ahead, in the statement that finds its ids: a field says by which property of its
 * parent's row it looks up what, and the fields within it go on from there. Where a field does not say, it looks up when
 * its turn comes, as all of them would; so a query costs one statement in the place of one for each level.
 */

/** A look-up that is to come: what is known of it before any row is there. */
export interface PlanStep {
  lookUp: keyof LookUps;
  first: number;
  by: Property[];
}
/** Where a read begins that is asked for otherwise. */
type Begin = "begin";
export type Source = PlanStep | Begin;

/** A property of rows that are to come. */
export interface Property {
  of: Source;
  name: string;
}

/** What can be looked up ahead, by its name. */
type LookUps = { readonly [N in keyof Loaders as Loaders[N] extends { ahead: unknown } ? N : never]: Loaders[N] };

/** A row that is to come. */
type Coming<Row> = { readonly [P in keyof Row]-?: Property } & { readonly [SOURCE]: Source };
const SOURCE = Symbol("source");
type RowOf<L> = L extends { load(id: never): Promise<infer Value> }
  ? Value extends (infer Row)[]
    ? Row
    : NonNullable<Value>
  : never;
/** Without a property: of the copy as a whole. */
export type Reads = {
  readonly [L in keyof LookUps]: (by?: Property, first?: number) => Coming<RowOf<LookUps[L]>>;
};
type Says<Row, Args> = (row: Coming<Row>, reads: Reads, args: Args) => { readonly [SOURCE]: Source } | undefined;

/** The arguments of a list inside a record. */
export interface Sized {
  first: number | null;
}

/** Says of a field what it looks up, and with which rows the fields within it go on; with none where those are no rows. */
export const LooksUp = <Row, Args = object>(says: Says<Row, Args>) => Extensions({ ahead: says });

/** Of an operation; more are looked up level by level, where those of all its fields are one read. */
export const MOST_STEPS = 60;
/** Plans of a field that are remembered, one for each set of page sizes and switches that it comes with. */
const MOST_PLANS = 20;
const plans = new WeakMap<FieldNode, { of: OperationDefinitionNode; known: Map<string, readonly PlanStep[]> }>();

/** The look-ups of the fields within one, each behind those whose rows name its ids. */
export function planOf(info: GraphQLResolveInfo): readonly PlanStep[] {
  const [field] = info.fieldNodes;
  if (!field) return [];
  // A fragment that two operations spread has the same node in both, beside other ones.
  const before = plans.get(field);
  const { known } = before?.of === info.operation ? before : { known: new Map<string, readonly PlanStep[]>() };
  const key = Object.entries(info.variableValues)
    .filter(([, value]) => typeof value === "number" || typeof value === "boolean")
    .join();
  const plan = known.get(key) ?? stepsOf(info);
  if (known.size >= MOST_PLANS) known.clear();
  plans.set(field, { of: info.operation, known: known.set(key, plan) });
  return plan;
}

/** What does not fit is said by the field itself, when its turn comes. */
function stepsOf(info: GraphQLResolveInfo): readonly PlanStep[] {
  try {
    return new Plan(info).steps;
  } catch {
    return [];
  }
}

class Plan {
  readonly #steps: PlanStep[] = [];
  /** What is followed already, and from where: a fragment may be spread often. */
  readonly #followed = new Map<SelectionSetNode, Set<Source>>();
  readonly #reads = new Proxy(
    {},
    {
      get: (_, lookUp: keyof LookUps) => (by?: Property, first?: number) =>
        coming(this.#stepOf(lookUp, by, first ?? 0)),
    },
  );

  constructor(private readonly info: GraphQLResolveInfo) {
    for (const { selectionSet } of info.fieldNodes) this.#follow(selectionSet, getNamedType(info.returnType), "begin");
  }

  get steps(): readonly PlanStep[] {
    const ordered = new Set<PlanStep>();
    const place = (step: PlanStep) => {
      // Ways to it may be many.
      if (ordered.has(step)) return;
      for (const { of } of step.by) if (of !== "begin") place(of);
      ordered.add(step);
    };
    for (const step of this.#steps) place(step);
    return [...ordered];
  }

  #follow(selections: SelectionSetNode | undefined, type: object, source: Source | null | undefined): void {
    if (!selections || !source || !isCompositeType(type)) return;
    const followed = this.#followed.get(selections) ?? new Set<Source>();
    if (followed.has(source)) return;
    this.#followed.set(selections, followed.add(source));
    for (const node of selections.selections) {
      const { schema, fragments, variableValues } = this.info;
      if (getDirectiveValues(GraphQLSkipDirective, node, variableValues)?.if === true) continue;
      if (getDirectiveValues(GraphQLIncludeDirective, node, variableValues)?.if === false) continue;
      if (node.kind === Kind.FIELD) this.#followField(node, type, source);
      else {
        const fragment = node.kind === Kind.FRAGMENT_SPREAD ? fragments[node.name.value] : node;
        const condition = fragment?.typeCondition;
        const of = condition && schema.getType(condition.name.value);
        const fits = !of || of === type || (isAbstractType(of) && isObjectType(type) && schema.isSubType(of, type));
        if (fragment && fits) this.#follow(fragment.selectionSet, type, source);
      }
    }
  }

  #followField(node: FieldNode, type: GraphQLCompositeType, source: Source): void {
    const field = isObjectType(type) ? type.getFields()[node.name.value] : undefined;
    if (!field) return;
    const says: unknown = field.extensions.ahead;
    // A plain property has its parent's row.
    const within: Source | null | undefined =
      typeof says === "function"
        ? says(coming(source), this.#reads, getArgumentValues(field, node, this.info.variableValues))?.[SOURCE]
        : field.resolve
          ? null
          : source;
    this.#follow(node.selectionSet, getNamedType(field.type), within);
  }

  /** What is looked up alike is looked up once, unless one of them is found by the other. */
  #stepOf(lookUp: keyof LookUps, by: Property | undefined, first: number): PlanStep {
    const alike = this.#steps.find(
      (step) => step.lookUp === lookUp && step.first === first && !(by && hangsOn(by.of, step)),
    );
    const step = alike ?? { lookUp, first, by: [] };
    if (!alike && this.#steps.push(step) > MOST_STEPS) throw new Error("more than is read ahead");
    if (by && !step.by.some(({ of, name }) => of === by.of && name === by.name)) step.by.push(by);
    return step;
  }
}

function hangsOn(source: Source, step: PlanStep): boolean {
  // A set grows while it is gone through.
  const above = new Set<Source>([source]);
  for (const one of above) {
    if (one === step) return true;
    if (one !== "begin") for (const { of } of one.by) above.add(of);
  }
  return false;
}

const coming = (of: Source): object =>
  new Proxy({}, { get: (_, name: string | symbol) => (name === SOURCE ? of : { of, name }) });
