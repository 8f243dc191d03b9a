import type { Server as HttpServer } from "node:http";
import type { Duplex } from "node:stream";
import { type ExecutionArgs, type ExecutionResult, type GraphQLError, type GraphQLSchema } from "graphql";
import { CloseCode, type Context, handleProtocols, makeServer, type Server, type SubscribePayload } from "graphql-ws";
import { WebSocketServer } from "ws";
import { type Actor, type ActorVerifier, UnauthenticatedError, type Viewer, viewerOf } from "../auth/actor";
import { KeysUnavailableError } from "../auth/key-set";
import { heldUpOf } from "../database/errors";
import type { Logger } from "../platform/logger";
import type { Metrics } from "../platform/metrics";
import { createOperationContext, type ResolverServices } from "../resolvers/context";
import { SharedReads } from "../resolvers/tenant-reads";
import { BoundedSocket, Seats } from "./bounded-socket";
import {
  CLOSE_WAIT_MS,
  type EndReason,
  INIT_WAIT_MS,
  MAX_FRAGMENTS,
  MAX_MESSAGE_BYTES,
  MAX_PIECES,
  MAX_TENANT_SOCKETS,
  MAX_USER_SOCKETS,
  PING_MS,
} from "./bounds";
import type { Arrival, Crowds } from "./crowds";
import { CLOSE, maskErrors } from "./errors";
import { readMessage, SharedSubscriptions, SubscriptionChecks, take, takeToken } from "./subscriptions";

/** The library keeps these limits itself. */
const FRAME_LIMITS = {
  maxPayload: MAX_MESSAGE_BYTES,
  maxFragments: MAX_FRAGMENTS,
  maxBufferedChunks: MAX_PIECES,
  closeTimeout: CLOSE_WAIT_MS,
  autoPong: false,
};

export interface SocketServerParts {
  schema: GraphQLSchema;
  services: ResolverServices;
  verifyActor: ActorVerifier;
  /** Origins from which a browser may open a socket, besides the service's own. */
  allowedOrigins: readonly string[];
  introspection: boolean;
  metrics: Metrics;
  logger: Logger;
}

interface Extra {
  socket: BoundedSocket;
  arrival: Arrival;
  /** Once the token is proven. */
  audience?: Audience;
  tokenEnds?: NodeJS.Timeout;
}

/** Who hears: what answers may depend on, and whose those are that are for one user alone. */
type Audience = { viewer: Viewer; userId: string };
type Subscriber = Audience & { socket: BoundedSocket; id: string };

type Protocol = Server<Extra>;
type SocketContext = Context<Record<string, unknown>, Extra>;

/** GraphQL subscriptions at `/graphql` by the graphql-transport-ws protocol. @returns closes the sockets with 1001 */
export function addSocketServer(server: HttpServer, crowds: Crowds, parts: SocketServerParts): () => Promise<void> {
  const { metrics } = parts;
  const sockets = new WebSocketServer({ noServer: true, WebSocket: BoundedSocket, handleProtocols, ...FRAME_LIMITS });
  const protocol: Protocol = makeServer(options(parts));
  const ended = (reason: EndReason) => metrics.connectionsEnded.inc({ reason });
  server.on("upgrade", (request, raw, head) => {
    const arrival = crowds.arrive(request, raw);
    const refusal = refusalOf(request.url, request.headers, parts.allowedOrigins);
    if (refusal) {
      ended("bad_upgrade");
      return refuse(raw, ...refusal);
    }
    // What is kept of the request would stay for as long as the socket.
    sockets.handleUpgrade(request, raw, head, (socket) => {
      metrics.sockets.inc();
      socket.once("close", () => metrics.sockets.dec());
      socket.watch(raw, ended);
      speak(protocol, { socket, arrival }, ended, parts.logger);
    });
  });
  return async () => {
    for (const socket of sockets.clients) socket.close(CLOSE.goingAway, "Going away");
    await new Promise<void>((resolve) => sockets.close(() => resolve()));
  };
}

/**
 * Browsers do not guard sockets by origin, so the server must; a client that is no browser sends none. The page at the
 * redirect address signs users in and shows the connection, so its origin is the foreign one that needs sockets.
 */
function isAllowed(origin: string | undefined, host: string | undefined, allowed: readonly string[]): boolean {
  if (origin === undefined) return true;
  if (!URL.canParse(origin)) return false;
  return new URL(origin).host === host || allowed.includes(origin);
}

/** @returns the status of an upgrade that is none of ours, and why: a proxy's mistake shows here first */
function refusalOf(
  url: string | undefined,
  { origin, host }: { origin?: string; host?: string },
  allowed: readonly string[],
): [status: string, why: string] | null {
  // Compared as text: a URL that does not parse would throw here, outside of every request.
  if (url?.split("?")[0] !== "/graphql") return ["404 Not Found", "Sockets are at /graphql."];
  if (isAllowed(origin, host, allowed)) return null;
  return ["403 Forbidden", "Origin is none of ALLOWED_ORIGINS, nor is it Host: a proxy must pass Host on as it comes."];
}

/** The HTTP server no longer hears an upgrade's socket, and an error that nobody hears would end the process. */
function refuse(socket: Duplex, status: string, why: string): void {
  socket.on("error", () => socket.destroy());
  socket.once("finish", () => socket.destroy());
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Type: text/plain\r\n\r\n${why}\n`);
}

/** Joins a socket to the protocol, and ends it when its peer is gone without a word. */
function speak(protocol: Protocol, extra: Extra, ended: (reason: EndReason) => void, logger: Logger): void {
  const { socket } = extra;
  const failed = (error: unknown) => {
    logger.error({ err: error }, "a socket's message failed for a reason of our own");
    socket.close(CloseCode.InternalServerError, "Internal server error");
  };
  const closed = protocol.opened(
    {
      protocol: socket.protocol,
      send: (text) => socket.deliver(text),
      close: (code, reason) => {
        if (code === CloseCode.BadRequest) ended("bad_message");
        socket.close(code, reason);
      },
      onMessage: (handle) => {
        socket.on("message", (data) => {
          // What came together with a message that went too far is not looked at.
          if (socket.readyState === socket.OPEN) handle(String(data)).catch(failed);
        });
      },
    },
    extra,
  );
  let isThere = true;
  const pings = setInterval(() => {
    if (!isThere) return socket.terminate();
    isThere = false;
    socket.ping();
  }, PING_MS);
  socket.on("pong", () => {
    isThere = true;
  });
  socket.once("close", (code, reason) => {
    clearInterval(pings);
    closed(code, String(reason)).catch(failed);
  });
}

function options(parts: SocketServerParts) {
  const { schema, services, verifyActor, introspection, logger } = parts;
  const checks = new SubscriptionChecks(schema, introspection);
  const reads = new SharedReads(services);
  const seats = new Seats({ ofTenant: MAX_TENANT_SOCKETS, ofUser: MAX_USER_SOCKETS });
  const mask = maskErrors(logger, introspection);
  const shared = new SharedSubscriptions((viewer) => createOperationContext(viewer, services, reads), mask);
  return {
    connectionInitWaitTimeout: INIT_WAIT_MS,
    onConnect: async (context: SocketContext) => {
      context.extra.arrival.verifying();
      const token = takeToken(context.connectionParams);
      const actor = await verifyActor(token).catch((error) => refuseInit(context, error, parts));
      if (!actor || !seats.take(actor, context.extra.socket)) return false;
      context.extra.arrival.proven();
      context.extra.audience = { viewer: viewerOf(actor), userId: actor.userId };
      endWithToken(context, actor);
      return true;
    },
    jsonMessageReviver: readMessage,
    onDisconnect: ({ extra }: SocketContext) => clearTimeout(extra.tokenEnds),
    onSubscribe: ({ extra, subscriptions }: SocketContext, id: string, payload: SubscribePayload) => {
      const checked = checks.check(take(payload), Object.keys(subscriptions).length);
      const contextValue = { ...extra.audience, socket: extra.socket, id };
      return "document" in checked ? { ...checked, contextValue } : checked;
    },
    subscribe: async ({ contextValue, ...args }: ExecutionArgs) => {
      const { viewer, userId, socket, id } = contextValue as Subscriber;
      const answers = await shared.subscribe(viewer, args, userId);
      return "next" in answers ? socket.sending(id, answers) : answers;
    },
    onError: (_context: SocketContext, _id: string, _payload: unknown, errors: readonly GraphQLError[]) =>
      errors.map((error) => mask(error)),
    // Masked already.
    onNext: (_context: SocketContext, _id: string, _payload: unknown, _args: unknown, result: ExecutionResult) =>
      result,
  };
}

/** False closes with 4403; while the keys cannot be fetched the token may be good, and the client is to come again. */
function refuseInit({ extra }: SocketContext, error: unknown, { metrics, logger }: SocketServerParts): null {
  const why = error instanceof UnauthenticatedError || error instanceof KeysUnavailableError ? error : heldUpOf(error);
  metrics.operations.observe({ kind: "none", outcome: why?.code ?? "INTERNAL_SERVER_ERROR" }, 0);
  if (error instanceof KeysUnavailableError) {
    extra.socket.close(CLOSE.tryAgainLater, `Keep the token and try again in ${error.retryAfterSeconds} s`);
  } else if (!(error instanceof UnauthenticatedError)) {
    logger.error({ err: error }, "whose a socket's token is could not be looked up");
    extra.socket.close(CLOSE.tryAgainLater, "Keep the token and try again later");
  }
  return null;
}

/** A token ends a day from now at most (`auth/actor.ts`), far below the longest wait of a timer. */
function endWithToken({ extra }: SocketContext, { expiresAt }: Actor): void {
  const end = () => extra.socket.close(CloseCode.Forbidden, "The token has ended");
  extra.tokenEnds = setTimeout(end, Math.max(0, expiresAt.getTime() - Date.now())).unref();
}
