import { ApolloServer, type DocumentStore, HeaderMap } from "@apollo/server";
import {
  ApolloServerPluginCacheControlDisabled,
  ApolloServerPluginLandingPageDisabled,
} from "@apollo/server/plugin/disabled";
import fastifyApollo from "@as-integrations/fastify";
import fastifyCors from "@fastify/cors";
import Fastify, { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import type { GraphQLError } from "graphql";
import { type ActorVerifier, UnauthenticatedError } from "../auth/actor";
import { KeysUnavailableError } from "../auth/key-set";
import type { Logger } from "../platform/logger";
import type { Metrics } from "../platform/metrics";
import { createOperationContext, type OperationContext, type Services } from "../resolvers/context";
import {
  boundedDocument,
  EXECUTION_OPTIONS,
  HEADERS_WAIT_MS,
  keptDocuments,
  LATE_LOOK_MS,
  REQUEST_WAIT_MS,
  STILL_MS,
  VALIDATION_OPTIONS,
} from "./bounds";
import { type ErrorCode, errorOf } from "./codes";
import { compiledExecution } from "./compiled-execution";
import { ClientAddresses, Crowds } from "./crowds";
import { COST_HEADER, limitOperations } from "./limits";
import { maskErrors, observeOperations, observeRequests } from "./masked-errors";
import { MAX_TOKENS } from "./operation-size";
import { addFront, type FrontParts, Page } from "./pages";
import { addHealth, addUninstalls, Draining, listen, type UninstallRoute } from "./serving";
import { addSocketServer } from "./socket-server";

/** A document with its variables; meetings with hundreds of attendees stay far below. */
const MAX_BODY_BYTES = 512 * 1024;

/**
 * What a front end of an allowed origin may do: send operations with its user's token. No answer allows credentials,
 * because no cookie counts here.
 */
const CORS = {
  methods: ["POST"],
  allowedHeaders: ["authorization", "content-type", "x-request-id", COST_HEADER],
  exposedHeaders: ["retry-after", "x-request-id"],
  credentials: false,
  /** Seconds: how long an origin that is allowed no longer may still be believed to be. */
  maxAge: 600,
};

export interface HttpServerParts extends FrontParts {
  services: Services;
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
  close(): Promise<void>;
}

/** GraphQL at `/graphql` (POST with JSON, and WebSocket), `/healthz` for "the process lives" and `/readyz` for "it can serve". */
export async function createHttpServer(parts: HttpServerParts): Promise<HttpServer> {
  const page = parts.page && new Page(parts.page);
  const fastify = Fastify({
    bodyLimit: MAX_BODY_BYTES,
    requestTimeout: REQUEST_WAIT_MS,
    connectionTimeout: STILL_MS,
    http: { headersTimeout: HEADERS_WAIT_MS, connectionsCheckingInterval: LATE_LOOK_MS },
    logger: false,
    forceCloseConnections: "idle",
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
  const formatError = maskErrors(parts.logger, parts.introspection);
  const apollo = new ApolloServer<OperationContext>({
    schema: parts.schema,
    introspection: parts.introspection,
    includeStacktraceInErrorResponses: false,
    stopOnTerminationSignals: false,
    parseOptions: { maxTokens: MAX_TOKENS },
    documentStore: documentStore(),
    // Whoever may call could fill the store with half a megabyte at a time; a document is at most some KB on the wire.
    persistedQueries: false,
    validationRules: [boundedDocument],
    validationOptions: VALIDATION_OPTIONS,
    executionOptions: EXECUTION_OPTIONS,
    formatError,
    logger: parts.logger,
    plugins: [
      ApolloServerPluginCacheControlDisabled(),
      ApolloServerPluginLandingPageDisabled(),
      observeOperations(parts.metrics, parts.logger),
      limitOperations(),
      compiledExecution(parts.compileQueriesAtUse, formatError),
    ],
  });
  await apollo.start();
  await fastify.register((scope) => addGraphQL(scope, apollo, parts), { prefix: "/graphql" });
  addHealth(fastify, parts, draining);
  await addUninstalls(fastify, parts.uninstalls);
  await addFront(fastify, parts, page);
  const closeSockets = addSocketServer(fastify.server, crowds, parts);
  const close = async () => {
    await draining.finish(closeSockets);
    await apollo.stop();
  };
  return { listen: (host, port) => listen(fastify, host, port, "PORT"), close };
}

/** Preflights are answered here alone: nothing else is for other origins. */
async function addGraphQL(
  scope: FastifyInstance,
  apollo: ApolloServer<OperationContext>,
  parts: HttpServerParts,
): Promise<void> {
  await scope.register(fastifyCors, { ...CORS, origin: [...parts.allowedOrigins] });
  await scope.register(fastifyApollo(apollo), {
    path: "",
    method: "POST",
    context: (request) => contextOf(request, parts),
  });
}

function documentStore(): DocumentStore {
  const kept = keptDocuments();
  return {
    get: async (key) => kept.get(key),
    set: async (key, document) => void kept.set(key, document),
    delete: async (key) => kept.delete(key),
  };
}

async function contextOf(
  request: FastifyRequest,
  { verifyActor, services }: HttpServerParts,
): Promise<OperationContext> {
  const token = /^Bearer ([^\s]+)$/i.exec(request.headers.authorization ?? "")?.[1];
  if (!token) throw errorOf("UNAUTHENTICATED", "Send a bearer token: Authorization: Bearer <token>.");
  try {
    return createOperationContext(await verifyActor(token), services);
  } catch (error) {
    if (error instanceof UnauthenticatedError) throw errorOf("UNAUTHENTICATED", error.message);
    if (error instanceof KeysUnavailableError) throw unavailable(error);
    throw error;
  }
}

/** Never 401, which would sign everybody out while the identity provider is down. */
function unavailable({ message, code, retryAfterSeconds }: KeysUnavailableError): GraphQLError {
  return errorOf(code, message, new HeaderMap([["retry-after", String(retryAfterSeconds)]]));
}

/** Answers where Fastify refuses a body before GraphQL sees it: it is too large, no JSON, or of another type. */
function answerInFormOfGraphQL(logger: Logger) {
  return (error: FastifyError, { routeOptions }: FastifyRequest, reply: FastifyReply) => {
    const status = error.statusCode ?? 500;
    if (status >= 500) logger.error({ err: error }, "a request failed outside of its operation");
    const other: CodeAndWords = status < 500 ? ["BAD_REQUEST", error.message] : FAILED;
    const [code, message] = refusedBodies(routeOptions.bodyLimit)[status] ?? other;
    return reply.code(status).send({ errors: [{ message, extensions: { code } }] });
  };
}

type CodeAndWords = readonly [code: ErrorCode, message: string];
const FAILED: CodeAndWords = ["INTERNAL_SERVER_ERROR", "Something went wrong on our side. Try again later."];
const refusedBodies = (mostBytes = MAX_BODY_BYTES): Record<number, CodeAndWords> => ({
  413: ["BODY_TOO_LARGE", `The body has more than ${mostBytes} bytes.`],
  415: ["UNSUPPORTED_MEDIA_TYPE", "Send the operation as JSON: Content-Type: application/json."],
});
