import {
  type DocumentNode,
  type GraphQLNamedType,
  type GraphQLSchema,
  getNamedType,
  isInputObjectType,
  Kind,
  type OperationDefinitionNode,
  OperationTypeNode,
  type TypeNode,
  visit,
} from "graphql";
import { type CompiledQuery, compileQuery, isCompiledQuery } from "graphql-jit";
import { sizeOf } from "./operation-size";

/** Fields and fragments with all of them written out, as the compiler does. */
const MAX_COMPILED_NODES = 1_000;
/** Operations with compiled code, each of at most half a megabyte; a document may have hundreds. A frontend has some dozens. */
const MAX_PLANS = 200;

type Execute = CompiledQuery["query"];

interface Plan {
  uses: number;
  /** Once it was compiled; null where it is not to be. */
  execute?: Execute | null;
}

/**
 * Queries that come again are executed by compiled code (graphql-jit): the same answers for less work. Whatever that library
 * is known to do otherwise is left to graphql-js (decision 0006). Of those with code only the ones used last are kept: it is
 * large beside its document.
 */
export class Plans {
  readonly #plans = new WeakMap<OperationDefinitionNode, Plan>();
  /** In the order of their last use. */
  readonly #withCode = new Set<Plan>();

  /** @param compileAtUse at which use of an operation it is compiled: one that comes once would never pay it back; 0: never */
  constructor(private readonly compileAtUse: number) {}

  /** null where graphql-js is to execute it */
  executeOf(schema: GraphQLSchema, document: DocumentNode, operation: OperationDefinitionNode): Execute | null {
    const plan = this.#plans.get(operation) ?? { uses: 0 };
    this.#plans.set(operation, plan);
    plan.uses += 1;
    if (this.compileAtUse === 0 || plan.uses < this.compileAtUse) return null;
    if (plan.execute === undefined) plan.execute = compile(schema, document, operation);
    if (plan.execute) this.#keep(plan);
    return plan.execute;
  }

  #keep(plan: Plan): void {
    this.#withCode.delete(plan);
    this.#withCode.add(plan);
    const [oldest] = this.#withCode;
    if (!oldest || this.#withCode.size <= MAX_PLANS) return;
    this.#withCode.delete(oldest);
    delete oldest.execute;
    oldest.uses = 0;
  }
}

function compile(schema: GraphQLSchema, document: DocumentNode, operation: OperationDefinitionNode): Execute | null {
  if (!isSafeToCompile(schema, document, operation)) return null;
  const compiled = compileQuery(schema, document, operation.name?.value ?? "");
  return isCompiledQuery(compiled) ? compiled.query : null;
}

/**
 * Not: mutations and subscriptions; recursive input types (it compiles them without end and the process dies); a variable with the
 * name of what every object has (`constructor`: where absent, it is taken for that), or inside an input object (where absent, it
 * becomes null); directives (a fragment's @skip and @include are taken for another's); an alias with `_` (it names a field by its way,
 * `b_a` for `a { b }`, and takes one of that alias for it; `__proto__` sets what an object inherits from, and the query may never
 * end); documents that grow too large when fragments are written out.
 */
export function isSafeToCompile(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): boolean {
  if (operation.operation !== OperationTypeNode.QUERY) return false;
  if (sizeOf(schema, document, operation, {}).nodes > MAX_COMPILED_NODES) return false;
  const variables = operation.variableDefinitions ?? [];
  if (variables.some(({ type }) => isRecursive(schema.getType(nameOf(type))))) return false;
  if (variables.some(({ variable }) => variable.name.value in {})) return false;
  let safe = true;
  const refuse = () => {
    safe = false;
  };
  visit(document, {
    Directive: refuse,
    Field: ({ alias }) => (alias?.value.includes("_") ? refuse() : undefined),
    [Kind.OBJECT]: (node) => visit(node, { Variable: refuse }),
  });
  return safe;
}

const nameOf = (type: TypeNode): string => (type.kind === Kind.NAMED_TYPE ? type.name.value : nameOf(type.type));

/** Whether an input type holds itself, at whatever depth. */
function isRecursive(named: GraphQLNamedType | undefined, within: ReadonlySet<string> = new Set()): boolean {
  if (!isInputObjectType(named)) return false;
  if (within.has(named.name)) return true;
  const holders = new Set(within).add(named.name);
  return Object.values(named.getFields()).some((field) => isRecursive(getNamedType(field.type), holders));
}
