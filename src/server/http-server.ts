import { ApolloServer, type DocumentStore, HeaderMap } from "@apollo/server";
import {
  ApolloServerPluginCacheControlDisabled,
  ApolloServerPluginLandingPageDisabled,
} from "@apollo/server/plugin/disabled";
import fastifyApollo from "@as-integrations/fastify";
import Fastify, { type FastifyError, type FastifyReply, type FastifyRequest } from "fastify";
import { GraphQLError, type GraphQLSchema } from "graphql";
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
import { compiledExecution } from "./compiled-execution";
import { ClientAddresses, Crowds } from "./crowds";
import { limitOperations } from "./limits";
import { maskErrors, observeOperations, observeRequests } from "./masked-errors";
import { MAX_TOKENS } from "./operation-size";
import { addHealth, addPage, addUninstalls, Draining, listen, type PageParts, type UninstallRoute } from "./serving";
import { addSocketServer } from "./socket-server";

/** A document with its variables; meetings with hundreds of attendees stay far below. */
const MAX_BODY_BYTES = 512 * 1024;

export interface HttpServerParts {
  schema: GraphQLSchema;
  services: Services;
  verifyActor: ActorVerifier;
  /** Throws while the service cannot serve. */
  checkReady(): Promise<void>;
  introspection: boolean;
  compileQueriesAtUse: number;
  metrics: Metrics;
  allowedOrigins: readonly string[];
  /** Addresses and networks whose `X-Forwarded-For` is believed. */
  trustedProxies: readonly string[];
  uninstalls: UninstallRoute;
  /** null: no page is served. */
  page: PageParts | null;
  logger: Logger;
}

export interface HttpServer {
  listen(host: string, port: number): Promise<string>;
  close(): Promise<void>;
}

/** GraphQL at `/graphql` (POST with JSON, and WebSocket), `/healthz` for "the process lives" and `/readyz` for "it can serve". */
export async function createHttpServer(parts: HttpServerParts): Promise<HttpServer> {
  const fastify = Fastify({
    bodyLimit: MAX_BODY_BYTES,
    requestTimeout: REQUEST_WAIT_MS,
    connectionTimeout: STILL_MS,
    http: { headersTimeout: HEADERS_WAIT_MS, connectionsCheckingInterval: LATE_LOOK_MS },
    logger: false,
    forceCloseConnections: "idle",
    return503OnClosing: false,
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
  await fastify.register(fastifyApollo(apollo), {
    path: "/graphql",
    method: "POST",
    context: (request) => contextOf(request, parts),
  });
  addHealth(fastify, parts, draining);
  await addUninstalls(fastify, parts.uninstalls);
  if (parts.page) await addPage(fastify, parts.page);
  const closeSockets = addSocketServer(fastify.server, crowds, parts);
  const close = async () => {
    await draining.finish(closeSockets);
    await apollo.stop();
  };
  return { listen: (host, port) => listen(fastify, host, port, "PORT"), close };
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
  if (!token) throw unauthenticated("Send a bearer token: Authorization: Bearer <token>.");
  try {
    return createOperationContext(await verifyActor(token), services);
  } catch (error) {
    if (error instanceof UnauthenticatedError) throw unauthenticated(error.message);
    if (error instanceof KeysUnavailableError) throw unavailable(error);
    throw error;
  }
}

function unauthenticated(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: "UNAUTHENTICATED", http: { status: 401 } } });
}

/** Never 401, which would sign everybody out while the identity provider is down. */
function unavailable({ message, code, retryAfterSeconds }: KeysUnavailableError): GraphQLError {
  const headers = new HeaderMap([["retry-after", String(retryAfterSeconds)]]);
  return new GraphQLError(message, { extensions: { code, http: { status: 503, headers } } });
}

/** Answers where Fastify refuses a body before GraphQL sees it: it is too large, no JSON, or of another type. */
function answerInFormOfGraphQL(logger: Logger) {
  return (error: FastifyError, { routeOptions }: FastifyRequest, reply: FastifyReply) => {
    const status = error.statusCode ?? 500;
    if (status >= 500) logger.error({ err: error }, "a request failed outside of its operation");
    const [code, message] =
      refusedBodies(routeOptions.bodyLimit)[status] ?? (status < 500 ? ["BAD_REQUEST", error.message] : FAILED);
    return reply.code(status).send({ errors: [{ message, extensions: { code } }] });
  };
}

const FAILED = ["INTERNAL_SERVER_ERROR", "Something went wrong on our side. Try again later."] as const;
const refusedBodies = (mostBytes = MAX_BODY_BYTES): Record<number, readonly [code: string, message: string]> => ({
  413: ["BODY_TOO_LARGE", `The body has more than ${mostBytes} bytes.`],
  415: ["UNSUPPORTED_MEDIA_TYPE", "Send the operation as JSON: Content-Type: application/json."],
});
