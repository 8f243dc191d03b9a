import {
  type ExecutionArgs,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  type OperationDefinitionNode,
  OperationTypeNode,
  parse,
  type ValidationRule,
  validate,
} from "graphql";
import type { SubscribePayload } from "graphql-ws";
import { boundedDocument, keptDocuments, refusalOfVariables, VALIDATION_OPTIONS } from "./document-bounds";
import { MAX_EVENT_COST, MAX_EVENT_TOKENS, refusalOfSize, sizeOf } from "./operation-size";

/** Subscriptions of one socket; the page needs two. */
const MAX_SUBSCRIPTIONS = 20;

const SUBSCRIPTIONS_ONLY = "This socket serves subscriptions. Send queries and mutations by POST to /graphql.";

/** Decides which subscriptions are begun. */
export class SubscriptionChecks {
  readonly #valid = keptDocuments();
  readonly #rules: readonly ValidationRule[];

  constructor(
    private readonly schema: GraphQLSchema,
    rules: readonly ValidationRule[],
  ) {
    this.#rules = [boundedDocument, ...rules];
  }

  /**
   * @param open how many subscriptions the socket has, this one among them
   * @returns what to execute, or why it is not begun
   */
  check(payload: SubscribePayload, open: number): ExecutionArgs | readonly GraphQLError[] {
    if (open > MAX_SUBSCRIPTIONS) {
      const what = `This socket has ${MAX_SUBSCRIPTIONS} subscriptions already. End some of them first.`;
      return [new GraphQLError(what, { extensions: { code: "TOO_MANY_SUBSCRIPTIONS" } })];
    }
    try {
      return this.#prepare(payload);
    } catch (error) {
      if (error instanceof GraphQLError) return [error];
      throw error;
    }
  }

  #prepare({ query, operationName, variables }: SubscribePayload): ExecutionArgs | readonly GraphQLError[] {
    const kept = this.#valid.get(query);
    const document = kept ?? parse(query, { maxTokens: MAX_EVENT_TOKENS });
    const operation = getOperationAST(document, operationName);
    if (operation?.operation !== OperationTypeNode.SUBSCRIPTION) {
      return [new GraphQLError(SUBSCRIPTIONS_ONLY, { extensions: { code: "SUBSCRIPTIONS_ONLY" } })];
    }
    const tooMany = refusalOfVariables(variables ?? {});
    if (tooMany) return [tooMany];
    if (!kept) {
      const faults = validate(this.schema, document, this.#rules, VALIDATION_OPTIONS);
      if (faults.length > 0) return faults;
    }
    const refusal = refusalOfSize(sizeOf(this.schema, document, operation, variables ?? {}), MAX_EVENT_COST);
    if (refusal) return [refusal];
    this.#valid.set(query, document);
    return { schema: this.schema, document, operationName, variableValues: declaredOf(operation, variables) };
  }
}

/** Variables that the operation does not know change nothing: kept, they would cost memory and make equal subscriptions differ. */
function declaredOf({ variableDefinitions = [] }: OperationDefinitionNode, given: SubscribePayload["variables"]) {
  const names = variableDefinitions.map(({ variable }) => variable.name.value);
  const declared = names.filter((name) => given && Object.hasOwn(given, name)).map((name) => [name, given?.[name]]);
  return declared.length > 0 ? Object.fromEntries(declared) : undefined;
}
