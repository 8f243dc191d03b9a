import { randomUUID } from "node:crypto";
import fastifyCors from "@fastify/cors";
import { context, type Span, SpanKind, trace } from "@opentelemetry/api";
import Fastify, {
  errorCodes,
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from "fastify";
import { parseRequestParams } from "graphql-http";
import { type ActorVerifier, UnauthenticatedError } from "../auth/actor";
import { KeysUnavailableError } from "../auth/key-set";
import { messageOf } from "../platform/errors";
import type { Logger } from "../platform/logger";
import type { Metrics } from "../platform/metrics";
import { inWork } from "../platform/work";
import { createOperationContext, type OperationContext, type ResolverServices } from "../resolvers/context";
import { HEADERS_WAIT_MS, IDLE_MS, LATE_LOOK_MS, REQUEST_WAIT_MS, STILL_MS } from "./bounds";
import { ClientAddresses, Crowds } from "./crowds";
import type { Sent } from "./documents";
import { Arriving, type ErrorCode, errorOf, hearOut, refuseOtherMethods } from "./errors";
import { COST_HEADER, RETRY_AFTER_S } from "./limits";
import { type Answer, Operations } from "./operations";
import { addFront, type FrontParts, listen, ProductPage } from "./pages";
import { addHealth, addUninstalls, Draining, type UninstallRoute } from "./serving";
import { addSocketServer } from "./socket-server";

/** A document with its variables; meetings with hundreds of attendees stay far below. */
const MAX_BODY_BYTES = 512 * 1024;

/** A front end of an allowed origin may send operations with its user's token, and what headers its libraries add. No cookie counts. */
const CORS = {
  methods: ["POST"],
  exposedHeaders: ["retry-after", "x-request-id"],
  credentials: false,
  /** Seconds: how long an origin that is allowed no longer may still be believed to be. */
  maxAge: 600,
};

export interface HttpServerParts extends FrontParts {
  services: ResolverServices;
  verifyActor: ActorVerifier;
  /** Throws while the service cannot serve. */
  checkReady(): Promise<void>;
  compileQueriesAtUse: number;
  metrics: Metrics;
  /** Origins of front ends, besides the service's own. */
  allowedOrigins: readonly string[];
  /** Addresses and networks whose `X-Forwarded-For` is believed. */
  trustedProxies: readonly string[];
  uninstalls: UninstallRoute;
  logger: Logger;
}

export interface HttpServer {
  listen(host: string, port: number): Promise<string>;
  close(leaveMs: number): Promise<void>;
}

/** GraphQL at `/graphql` (POST with JSON, and WebSocket), `/healthz` for "the process lives" and `/readyz` for "it can serve". */
export async function createHttpServer(parts: HttpServerParts): Promise<HttpServer> {
  const page = parts.page && new ProductPage(parts.page);
  const fastify = Fastify({
    bodyLimit: MAX_BODY_BYTES,
    requestTimeout: REQUEST_WAIT_MS,
    connectionTimeout: STILL_MS,
    keepAliveTimeout: IDLE_MS,
    http: { headersTimeout: HEADERS_WAIT_MS, connectionsCheckingInterval: LATE_LOOK_MS, IncomingMessage: Arriving },
    return503OnClosing: false,
    // An address with a broken escape gets here before any route, and is nowhere too.
    frameworkErrors: page ? (_error, request, reply) => void page.sayNowhere(request, reply) : undefined,
  });
  const draining = new Draining(fastify);
  const clients = new ClientAddresses(parts.trustedProxies);
  const crowds = new Crowds(clients, (reason) => parts.metrics.connectionsEnded.inc({ reason }));
  crowds.watch(fastify);
  observeRequests(fastify);
  // Only JSON: what a form or a plain text post could carry would pass a browser's origin check unasked.
  fastify.removeContentTypeParser("text/plain");
  fastify.setErrorHandler(answerInFormOfGraphQL(parts.logger));
  await fastify.register((scope) => addGraphQL(scope, parts), { prefix: "/graphql" });
  addHealth(fastify, parts, draining);
  await addUninstalls(fastify, parts.uninstalls);
  await addFront(fastify, parts, page);
  fastify.addHook("onSend", async ({ raw }) => hearOut(raw));
  const closeSockets = addSocketServer(fastify.server, crowds, parts);
  const begin = (host: string, port: number) => listen(fastify, host, port, "PORT");
  return { listen: begin, close: (leaveMs) => draining.finish(leaveMs, closeSockets, crowds) };
}

/** Preflights are answered here alone: nothing else is for other origins. */
async function addGraphQL(scope: FastifyInstance, parts: HttpServerParts): Promise<void> {
  await scope.register(fastifyCors, { ...CORS, origin: [...parts.allowedOrigins] });
  const operations = new Operations(parts);
  scope.addHook("onRequest", async ({ headers: { accept } }, reply) => void reply.type(answerType(accept)));
  scope.addHook("preParsing", async ({ headers: { "content-encoding": encoding } }) => {
    if (encoding && encoding.toLowerCase() !== "identity")
      throw new errorCodes.FST_ERR_CTP_INVALID_MEDIA_TYPE(encoding);
  });
  refuseOtherMethods(scope);
  scope.post("", async (request, reply) => {
    const { status, result } = await answerOf(request, reply, operations, parts);
    if (status === 429) reply.header("retry-after", String(RETRY_AFTER_S));
    return reply.code(status).send(JSON.stringify(result));
  });
}

async function answerOf(
  request: FastifyRequest,
  reply: FastifyReply,
  operations: Operations,
  parts: HttpServerParts,
): Promise<Answer> {
  try {
    const context = await contextOf(request, reply, parts);
    return await operations.answer(await sentIn(request), context, COST_HEADER in request.headers, reply.raw);
  } catch (error) {
    return operations.turnAway(error, reply.elapsedTime);
  }
}

/** By the specification of GraphQL over HTTP (graphql-http). @throws GraphQLError */
async function sentIn({ method, url, headers, body: sent, raw }: FastifyRequest): Promise<Sent> {
  const body = recordOf(sent);
  if (body.query == null && "persistedQuery" in recordOf(body.extensions))
    throw errorOf("PERSISTED_QUERY_NOT_SUPPORTED", "PersistedQueryNotSupported"); // The words by which clients know it.
  const type = headers["content-type"];
  const [, charset = "utf-8"] = /;\s*charset\s*=\s*"?([^";\s]*)/i.exec(type ?? "") ?? [];
  if (!type || !/^utf-?8$/i.test(charset)) throw errorOf("UNSUPPORTED_MEDIA_TYPE", UNSUPPORTED);
  // Other types have been refused before this; of this one the library knows few spellings.
  const asJson = { ...headers, "content-type": JSON_TYPE };
  const read = await parseRequestParams({ method, url, headers: asJson, body, raw, context: undefined }).catch(
    (error) => {
      throw errorOf("BAD_REQUEST", `${Array.isArray(sent) ? "Send one operation a request" : messageOf(error)}.`);
    },
  );
  if ("query" in read) return read;
  throw errorOf("UNSUPPORTED_MEDIA_TYPE", UNSUPPORTED);
}

const recordOf = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null ? { ...value } : {};

async function contextOf(
  request: FastifyRequest,
  reply: FastifyReply,
  { verifyActor, services }: HttpServerParts,
): Promise<OperationContext> {
  const token = /^Bearer ([^\s]+)$/i.exec(request.headers.authorization ?? "")?.[1];
  if (!token) throw errorOf("UNAUTHENTICATED", "Send a bearer token: Authorization: Bearer <token>.");
  try {
    return createOperationContext(await verifyActor(token), services);
  } catch (error) {
    if (error instanceof UnauthenticatedError) throw errorOf("UNAUTHENTICATED", error.message);
    if (!(error instanceof KeysUnavailableError)) throw error;
    // Never 401, which would sign everybody out while the identity provider is down.
    reply.header("retry-after", String(error.retryAfterSeconds));
    throw errorOf(error.code, error.message);
  }
}

const JSON_TYPE = "application/json";
const GRAPHQL_TYPE = "application/graphql-response+json";

/** What the client likes best of the two, JSON where it accepts neither. Beside 4xx Apollo reads errors in GraphQL's own type alone. */
function answerType(accept = JSON_TYPE): string {
  const liked = accept
    .toLowerCase()
    .split(",")
    .map((range) => {
      const [type = "", ...parameters] = range.split(";").map((part) => part.trim());
      const weight = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2) ?? "1";
      return { type, weight: Number(weight) };
    });
  const best = liked
    .filter(({ type, weight }) => weight > 0 && (type === GRAPHQL_TYPE || type === JSON_TYPE))
    .sort((one, other) => other.weight - one.weight)[0];
  return `${best?.type ?? JSON_TYPE}; charset=utf-8`;
}

/** Answers where Fastify refuses a body before GraphQL sees it: it is too large, no JSON, or of another type. */
function answerInFormOfGraphQL(logger: Logger) {
  return (error: FastifyError, { routeOptions, headers }: FastifyRequest, reply: FastifyReply) => {
    const status = error.statusCode ?? 500;
    const errorId = status >= 500 ? randomUUID() : undefined;
    if (errorId) logger.error({ errorId, err: error }, "a request failed outside of its operation");
    const other: CodeAndWords = status < 500 ? ["BAD_REQUEST", error.message] : FAILED;
    const [code, message] = refusedBodies(routeOptions.bodyLimit)[status] ?? other;
    const body = { errors: [{ message, extensions: { code, errorId } }] };
    return reply.code(status).type(answerType(headers.accept)).send(body);
  };
}

const UNSUPPORTED = "Send the operation as JSON in UTF-8, not compressed: Content-Type: application/json.";
type CodeAndWords = readonly [code: ErrorCode, message: string];
const FAILED: CodeAndWords = ["INTERNAL_SERVER_ERROR", "Something went wrong on our side. Try again later."];
const refusedBodies = (mostBytes = MAX_BODY_BYTES): Record<number, CodeAndWords> => ({
  413: ["BODY_TOO_LARGE", `The body has more than ${mostBytes} bytes.`],
  415: ["UNSUPPORTED_MEDIA_TYPE", UNSUPPORTED],
});

/** An id of the caller's own, so that a front end's log and ours can be laid side by side. */
const CALLERS_ID = /^[A-Za-z0-9._-]{8,100}$/;

/** Each request is a piece of work with an id: in its answer, in each log line that it causes, and in its trace. */
function observeRequests(fastify: FastifyInstance): void {
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
