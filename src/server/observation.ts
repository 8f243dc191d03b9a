import { randomUUID } from "node:crypto";
import type { ApolloServerPlugin, GraphQLRequestListener } from "@apollo/server";
import { context, type Span, SpanKind, trace } from "@opentelemetry/api";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Logger } from "../platform/logger";
import type { Metrics } from "../platform/metrics";
import { inWork, workCounts } from "../platform/work";
import type { OperationContext } from "../resolvers/context";

/** An id of the caller's own, so that a front end's log and ours can be laid side by side. */
const CALLERS_ID = /^[A-Za-z0-9._-]{8,100}$/;

/** Of an operation's name in a log line or a span; a caller may send one as long as a body. */
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
          const seconds = ended({ kind, outcome: String(codes[0] ?? "OK") });
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
