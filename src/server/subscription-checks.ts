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

/** Characters of a subscription's id; clients take a UUID. */
const MAX_ID_LENGTH = 100;

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

/**
 * `next` and `error` are a server's to send: the library takes one from a client for a fault of ours (4500, and a stack
 * on stderr). The payload of a `ping` it would send back, whatever its size. Refused while they are read, they are bad
 * requests (4400). Members that the protocol does not have are dropped.
 */
export function readMessage(key: string, value: unknown): unknown {
  if (key !== "" || typeof value !== "object" || value === null || !("type" in value)) return value;
  const { type } = value;
  if (type === "next" || type === "error") throw new Error("a client sent what only a server sends");
  if ((type === "ping" || type === "pong") && "payload" in value) throw new Error("a ping or pong has no payload here");
  const id = "id" in value ? value.id : undefined;
  if (typeof id === "string" && id.length > MAX_ID_LENGTH) throw new Error("an id of that length would be kept");
  return { type, ...("id" in value && { id }), ...("payload" in value && { payload: value.payload }) };
}

/** Takes everything out: the library keeps what came for as long as the socket or the subscription is open. */
export function take<T extends object>(payload: T): T {
  const taken = { ...payload };
  for (const name of Object.keys(payload)) Reflect.deleteProperty(payload, name);
  return taken;
}

/** `connection_init` carries what an HTTP request has in its header: `{ authorization: "Bearer ..." }`. */
export function takeToken(parameters: Record<string, unknown> = {}): string {
  const { authorization, Authorization } = take(parameters);
  const header = authorization ?? Authorization;
  return typeof header === "string" ? header.replace(/^Bearer /i, "") : "";
}
