import {
  BREAK,
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  getVariableValues,
  Kind,
  NoSchemaIntrospectionCustomRule,
  type OperationDefinitionNode,
  OperationTypeNode,
  parse,
  specifiedRules,
  type ValidationRule,
  type VariableDefinitionNode,
  validate,
  valueFromASTUntyped,
  visit,
} from "graphql";
import { boundedDocument, COERCION_OPTIONS, keptDocuments, refusalOfVariables, VALIDATION_OPTIONS } from "./bounds";
import { errorOf, withCode } from "./errors";
import { type OperationSize, sizeOf } from "./operation-size";

/** What a client sends of an operation. */
export interface Sent {
  query: string;
  operationName?: string | null;
  variables?: Readonly<Record<string, unknown>> | null;
}

/** An operation that fits the schema, with variables that fit it. */
export interface Operation {
  document: DocumentNode;
  operation: OperationDefinitionNode;
  operationName: string | undefined;
  /** Those that it declares, as they were sent; of the others their defaults. */
  variables: Record<string, unknown>;
  size: OperationSize;
}

/** Reads documents, whichever way they come; one that comes again is not read again. */
export class Documents {
  readonly #valid = keptDocuments();
  readonly #rules: readonly ValidationRule[];

  /**
   * @param maxTokens of a document
   * @param refusalOf why an operation is none for this way
   */
  constructor(
    private readonly schema: GraphQLSchema,
    introspection: boolean,
    private readonly maxTokens: number,
    private readonly refusalOf: (operation: OperationDefinitionNode) => GraphQLError | null,
  ) {
    this.#rules = [boundedDocument, ...specifiedRules, ...(introspection ? [] : [NoSchemaIntrospectionCustomRule])];
  }

  /** @returns what to execute, or why nothing is */
  read(sent: Sent): Operation | readonly GraphQLError[] {
    const kept = this.#valid.get(sent.query);
    const document = kept ?? parsed(sent.query, this.maxTokens);
    return document instanceof GraphQLError ? [document] : this.#check(sent, document, kept !== undefined);
  }

  /** An argument that a null is given for by a variable with a default is found only here: that fits by its type. */
  #sizeOf(document: DocumentNode, operation: OperationDefinitionNode, given: Record<string, unknown>) {
    try {
      return sizeOf(this.schema, document, operation, given);
    } catch (error) {
      if (error instanceof GraphQLError) return withCode("BAD_USER_INPUT", error);
      throw error;
    }
  }

  /** graphql-js knows no variables here, and throws where one says whether a subscription has its field. */
  #faultsOf(document: DocumentNode): readonly GraphQLError[] {
    try {
      return validate(this.schema, document, this.#rules, VALIDATION_OPTIONS);
    } catch (error) {
      if (!(error instanceof GraphQLError)) throw error;
      return [error.message.includes("variable") ? new GraphQLError(SKIPPED, { nodes: error.nodes }) : error];
    }
  }

  #check({ query, operationName, variables }: Sent, document: DocumentNode, isValid: boolean) {
    const operation = getOperationAST(document, operationName);
    const refusal = operation && this.refusalOf(operation);
    if (refusal) return [refusal];
    const given = variables ?? {};
    const tooMany = refusalOfVariables(given);
    if (tooMany) return [tooMany];
    const faults = isValid ? [] : this.#faultsOf(document);
    if (faults.length > 0) return faults.map((fault) => withCode("GRAPHQL_VALIDATION_FAILED", fault));
    if (!operation) return [noOperation(operationName)];
    const declared = operation.variableDefinitions ?? [];
    const { errors } = getVariableValues(this.schema, declared, given, COERCION_OPTIONS);
    if (errors) return errors.map((error) => withCode("BAD_USER_INPUT", error));
    const size = this.#sizeOf(document, operation, given);
    if (size instanceof GraphQLError) return [size];
    if (!isValid) this.#valid.set(query, document);
    const own = Object.fromEntries(declared.flatMap((variable) => sentOrDefault(variable, given)));
    return { document, operation, operationName: operationName ?? undefined, variables: own, size };
  }
}

/** With its default as if that were sent: compiled code refuses a `T! = x` that is absent, and does not read a default's dates. */
function sentOrDefault(
  { variable, defaultValue }: VariableDefinitionNode,
  given: Record<string, unknown>,
): [name: string, value: unknown][] {
  const name = variable.name.value;
  if (Object.hasOwn(given, name)) return [[name, given[name]]];
  return defaultValue ? [[name, valueFromASTUntyped(defaultValue)]] : [];
}

const SKIPPED =
  "A subscription's own field takes no @skip and no @include with a variable: subscribe to it, or do not subscribe.";

function parsed(query: string, maxTokens: number): DocumentNode | GraphQLError {
  try {
    return parse(query, { maxTokens });
  } catch (error) {
    if (error instanceof GraphQLError) return withCode("GRAPHQL_PARSE_FAILED", error);
    throw error;
  }
}

function noOperation(name: string | null | undefined): GraphQLError {
  const what =
    name == null
      ? "The document has several operations: `operationName` must say which."
      : `The document has no operation of the name that \`operationName\` gives.`;
  return errorOf("OPERATION_RESOLUTION_FAILURE", what);
}

/** A meeting of a whole department; a town hall has hundreds. */
const HEAVY_ITEMS = 50;
/** No input type is deeper; what a client nests beyond that is refused later. */
const INPUT_DEPTH = 8;

/** Whether any list in the input has very many items, in the variables or in the document. */
export function hasManyItems(operation: OperationDefinitionNode, variables: unknown): boolean {
  let isLong = hasLongList(variables, INPUT_DEPTH);
  if (operation.operation !== OperationTypeNode.MUTATION || isLong) return isLong;
  visit(operation, {
    [Kind.LIST]({ values }) {
      isLong ||= values.length > HEAVY_ITEMS;
      return isLong ? BREAK : undefined;
    },
  });
  return isLong;
}

function hasLongList(input: unknown, depth: number): boolean {
  if (typeof input !== "object" || input === null || depth === 0) return false;
  if (Array.isArray(input) && input.length > HEAVY_ITEMS) return true;
  return Object.values(input).some((value) => hasLongList(value, depth - 1));
}
