import type { EventEmitter } from "node:events";
import { trace } from "@opentelemetry/api";
import {
  execute,
  type FieldNode,
  type FormattedExecutionResult,
  type GraphQLError,
  type GraphQLSchema,
  Kind,
  type OperationDefinitionNode,
  OperationTypeNode,
} from "graphql";
import { SECOND_MS } from "../platform/clock";
import type { Logger } from "../platform/logger";
import type { Metrics } from "../platform/metrics";
import { workCounts } from "../platform/work";
import type { OperationContext } from "../resolvers/context";
import { Plans } from "./compiled-execution";
import { Documents, type Operation, type Sent } from "./documents";
import { errorOf, type MaskError, maskErrors, statusOf } from "./errors";
import { costTold, MAX_COST, MAX_TOKENS, OperationLimits, refusalOfSize } from "./limits";
import { fieldsOf } from "./operation-size";

export interface OperationParts {
  schema: GraphQLSchema;
  introspection: boolean;
  compileQueriesAtUse: number;
  metrics: Metrics;
  logger: Logger;
}

export interface Answer {
  status: number;
  result: FormattedExecutionResult;
}

/** Operations that come by HTTP: each is read, bounded, executed in its tenant's turn, and noted. */
export class Operations {
  readonly #documents: Documents;
  readonly #plans: Plans;
  readonly #limits = new OperationLimits();
  /** To search a line for secrets costs more than to write it, and all that this one holds is listed below. */
  readonly #answered: Logger;
  readonly #mask: MaskError;

  constructor(private readonly parts: OperationParts) {
    const { schema, introspection, compileQueriesAtUse, logger } = parts;
    this.#documents = new Documents(schema, introspection, MAX_TOKENS, refusalOf);
    this.#plans = new Plans(compileQueriesAtUse);
    this.#answered = logger.child({}, { redact: [] });
    this.#mask = maskErrors(logger, introspection);
  }

  /** @param tellsCost whether the answer tells how large the operation is; `client` says "close" when nobody waits for it any more */
  async answer(sent: Sent, context: OperationContext, tellsCost: boolean, client: EventEmitter): Promise<Answer> {
    const ended = this.parts.metrics.operations.startTimer();
    const read = this.#documents.read(sent);
    const operation = "size" in read ? read : null;
    const answer = "size" in read ? await this.#answer(read, context, client) : this.#refused(read);
    try {
      this.#note(operation, sent, answer, context, ended);
    } catch (error) {
      // What was done is answered all the same.
      this.parts.logger.error({ err: error }, "an operation could not be noted");
    }
    if (!operation || !tellsCost) return answer;
    return { ...answer, result: { ...answer.result, extensions: { cost: costTold(operation) } } };
  }

  async #answer(operation: Operation, context: OperationContext, client: EventEmitter): Promise<Answer> {
    const tooLarge = refusalOfSize(operation.size, MAX_COST);
    if (tooLarge) return this.#refused([tooLarge]);
    try {
      const work = () => this.#execute(operation, context);
      const { data, errors } = await this.#limits.inTurn(operation, context, work, client);
      return { status: 200, result: errors ? { errors: errors.map(this.#mask), data } : { data } };
    } catch (error) {
      return this.#refused([error]);
    }
  }

  async #execute({ document, operation, operationName, variables }: Operation, context: OperationContext) {
    const { schema } = this.parts;
    const compiled = this.#plans.executeOf(schema, document, operation);
    if (compiled) return compiled({}, context, variables);
    return execute({ schema, document, operationName, contextValue: context, variableValues: variables });
  }

  /**
   * The answer to whoever is not let in, or sends what is no operation: counted, and no line, or strangers could fill the log.
   * @param ms that it took
   */
  turnAway(error: unknown, ms: number): Answer {
    const answer = this.#refused([error]);
    const [first] = answer.result.errors ?? [];
    this.parts.metrics.operations.observe({ kind: "none", outcome: String(first?.extensions?.code) }, ms / SECOND_MS);
    return answer;
  }

  /** The answer where nothing is executed. */
  #refused(errors: readonly unknown[]): Answer {
    const masked = errors.map(this.#mask);
    return { status: statusOf(masked), result: { errors: masked } };
  }

  /** With what it asked of the database and the CRM. */
  #note(
    read: Operation | null,
    sent: Sent,
    { result: { errors = [] } }: Answer,
    { actor: { tenant, tenantId, userId } }: OperationContext,
    ended: ReturnType<Metrics["operations"]["startTimer"]>,
  ): void {
    const kind = read?.operation.operation ?? "none";
    const named = sent.operationName ?? read?.operation.name?.value ?? null;
    const operationName = named?.slice(0, MAX_NAME) ?? null;
    const codes = errors.map(({ extensions }) => extensions?.code);
    const isBriefing = read !== null && asksForBriefing(read.operation);
    const seconds = ended({ kind: isBriefing ? "briefing" : kind, outcome: String(codes[0] ?? "OK") });
    trace.getActiveSpan()?.updateName(`${kind} ${operationName ?? "unnamed"}`);
    // An operation's name is its caller's word; these are the schema's.
    const did = read && kind === "mutation" ? namesOf(fieldsOf(read.operation.selectionSet, read.document)) : undefined;
    const line = { kind, operationName, did, tenant, tenantId, userId, seconds, ...workCounts(), codes };
    this.#answered.info(line, "an operation was answered");
  }
}

/** Characters of an operation's name in a log line or a span; a caller may send one as long as a body. */
const MAX_NAME = 100;

const namesOf = (fields: readonly FieldNode[]) => [...new Set(fields.map(({ name }) => name.value))];

/** What people wait for before a meeting is measured apart: `briefing`, and a meeting's own. */
function asksForBriefing({ selectionSet }: OperationDefinitionNode | FieldNode): boolean {
  return (selectionSet?.selections ?? []).some((field) => {
    if (field.kind !== Kind.FIELD) return false;
    return field.name.value === "briefing" || (field.name.value === "meeting" && asksForBriefing(field));
  });
}

function refusalOf({ operation }: OperationDefinitionNode): GraphQLError | null {
  if (operation !== OperationTypeNode.SUBSCRIPTION) return null;
  return errorOf("OPERATION_RESOLUTION_FAILURE", "Subscriptions come over the WebSocket at /graphql.");
}
