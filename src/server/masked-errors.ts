import { randomUUID } from "node:crypto";
import type { ApolloServerPlugin, GraphQLRequestListener } from "@apollo/server";
import { unwrapResolverError } from "@apollo/server/errors";
import { context, type Span, SpanKind, trace } from "@opentelemetry/api";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { GraphQLError, type GraphQLFormattedError, Kind, type OperationDefinitionNode } from "graphql";
import { DeadlineError, heldUpOf, isFull } from "../database/session";
import { ServiceError } from "../platform/errors";
import type { Logger } from "../platform/logger";
import type { Metrics } from "../platform/metrics";
import { inWork, workCounts } from "../platform/work";
import type { OperationContext } from "../resolvers/context";
import type { ErrorCode } from "./codes";

/** Characters of a message: the library repeats what does not fit, and would repeat half a megabyte for each thing wrong. */
const LONGEST_MESSAGE = 1_000;

export type FormatError = (formatted: GraphQLFormattedError, error: unknown) => GraphQLFormattedError;

/** graphql-js says so after the last of the values that are told: Apollo does not know it for the client's mistake. */
const TOO_MANY_WRONG = "Too many errors processing variables";
/** graphql-js adds names of the schema that resemble one that is not there. */
const SUGGESTIONS = / Did you mean [^?]*\?/g;

/**
 * What a client sees of an error. GraphQL's own errors and the client's mistakes are shown as they are; anything else
 * is a bug of ours: the log has it under an id, and the client gets that id and nothing more.
 * @param introspection whether the schema may be read: where not, no message tells names of it either
 */
export function maskErrors(logger: Logger, introspection: boolean): FormatError {
  const shown = (error: GraphQLFormattedError) => bounded(introspection ? error : withoutSuggestions(error));
  const coded = (error: GraphQLFormattedError, code: ErrorCode) => shown({ ...error, extensions: { code } });
  return (formatted, error) => {
    const original = unwrapResolverError(error);
    if (original instanceof GraphQLError && original.message.startsWith(TOO_MANY_WRONG))
      return coded(formatted, "BAD_USER_INPUT");
    if (original instanceof GraphQLError && formatted.extensions?.code !== "INTERNAL_SERVER_ERROR")
      return shown({ ...formatted, extensions: { code: codeWithin(original) ?? formatted.extensions?.code } });
    if (original instanceof DeadlineError) return coded(formatted, original.code);
    const heldUp = heldUpOf(original);
    if (heldUp) {
      const level = isFull(original) ? "error" : "warn";
      logger[level]({ err: original, path: formatted.path }, "an operation was held up and called off");
      return coded({ ...formatted, message: heldUp.message }, heldUp.code);
    }
    const errorId = randomUUID();
    const code = original instanceof ServiceError ? original.code : undefined;
    logger.error({ errorId, code, err: original, path: formatted.path }, "an operation failed for a reason of our own");
    return {
      message: `Something went wrong on our side. Give this id to support: ${errorId}`,
      locations: formatted.locations,
      path: formatted.path,
      extensions: { code: "INTERNAL_SERVER_ERROR", errorId },
    };
  };
}

/** Apollo gives each error of validation its own code; a rule of ours has said a closer one. */
function codeWithin({ originalError }: GraphQLError): unknown {
  return originalError instanceof GraphQLError ? originalError.extensions.code : undefined;
}

const withoutSuggestions = (error: GraphQLFormattedError) => ({
  ...error,
  message: error.message.replace(SUGGESTIONS, ""),
});

function bounded({ message, locations, path, extensions }: GraphQLFormattedError): GraphQLFormattedError {
  const words = message.length > LONGEST_MESSAGE ? `${message.slice(0, LONGEST_MESSAGE)}...` : message;
  return { message: words, locations, path, extensions: { code: extensions?.code ?? "BAD_REQUEST" } };
}

/** An id of the caller's own, so that a front end's log and ours can be laid side by side. */
const CALLERS_ID = /^[A-Za-z0-9._-]{8,100}$/;

/** Characters of an operation's name in a log line or a span; a caller may send one as long as a body. */
const MAX_NAME = 100;

/** Each request is a piece of work with an id: in its answer, in each log line that it causes, and in its trace. */
export function observeRequests(fastify: FastifyInstance): void {
  const spans = new WeakMap<FastifyRequest, Span>();
  fastify.addHook("onRequest", (request, reply, done) => {
    const sent = request.headers["x-request-id"];
    const operationId = typeof sent === "string" && CALLERS_ID.test(sent) ? sent : randomUUID();
    reply.header("x-request-id", operationId);
    const attributes = { "http.request.method": request.method, "crm.operation_id": operationId };
    const span = trace.getTracer("crm-connection").startSpan("request", { kind: SpanKind.SERVER, attributes });
    spans.set(request, span);
    inWork({ operationId }, () => context.with(trace.setSpan(context.active(), span), done));
  });
  fastify.addHook("onResponse", async (request) => spans.get(request)?.end());
}

/** Times each operation, and logs it with what it asked of the database and the CRM. */
export function observeOperations(metrics: Metrics, logger: Logger): ApolloServerPlugin<OperationContext> {
  // To search a line for secrets costs more than to write it, and all that this one holds is listed below.
  const answered = logger.child({}, { redact: [] });
  return {
    async requestDidStart(): Promise<GraphQLRequestListener<OperationContext>> {
      const ended = metrics.operations.startTimer();
      return {
        async willSendResponse({ operation, operationName: named, response, contextValue }) {
          const operationName = named?.slice(0, MAX_NAME) ?? null;
          const kind = operation?.operation ?? "none";
          const errors = response.body.kind === "single" ? (response.body.singleResult.errors ?? []) : [];
          const codes = errors.map(({ extensions }) => extensions?.code);
          const seconds = ended({
            kind: asksForBriefing(operation) ? "briefing" : kind,
            outcome: String(codes[0] ?? "OK"),
          });
          const { tenant, tenantId, userId } = contextValue.actor ?? {};
          trace.getActiveSpan()?.updateName(`${kind} ${operationName ?? "unnamed"}`);
          const asked = { ...workCounts() };
          answered.info(
            { kind, operationName, tenant, tenantId, userId, seconds, ...asked, codes },
            "an operation was answered",
          );
        },
      };
    },
  };
}

/** What people wait for before a meeting is measured apart. */
function asksForBriefing(operation: OperationDefinitionNode | undefined): boolean {
  const asked = operation?.selectionSet.selections ?? [];
  return asked.some((field) => field.kind === Kind.FIELD && field.name.value === "briefing");
}
