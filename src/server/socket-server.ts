import type { Server } from "node:http";
import type { Duplex } from "node:stream";
import {
  type ExecutionArgs,
  type ExecutionResult,
  GraphQLError,
  type GraphQLSchema,
  NoSchemaIntrospectionCustomRule,
  specifiedRules,
} from "graphql";
import { CloseCode, type Context, type SubscribePayload } from "graphql-ws";
import { type Extra, useServer } from "graphql-ws/use/ws";
import { type WebSocket, WebSocketServer } from "ws";
import { type Actor, type ActorVerifier, UnauthenticatedError, type Viewer, viewerOf } from "../auth/actor";
import type { Logger } from "../platform/logger";
import type { Metrics } from "../platform/metrics";
import { createOperationContext, type Services } from "../resolvers/context";
import { SharedReads } from "../resolvers/tenant-reads";
import { maskErrors } from "./masked-errors";
import { SharedSubscriptions } from "./shared-subscriptions";
import { SubscriptionChecks } from "./subscription-checks";

const MAX_MESSAGE_BYTES = 64 * 1024;
/** Sockets of one tenant in one process: a large organization has thousands of pages open. */
const MAX_TENANT_SOCKETS = 10_000;
/** Close code, after HTTP's 429. */
const TOO_MANY_SOCKETS = 4429;
/** Close code of WebSocket itself: the token may be good, and a client that asks again later is served. */
const TRY_AGAIN_LATER = 1013;
/** A socket whose peer answers no ping for this long is ended. */
const PING_MS = 12_000;
/** The longest wait of a timer (2^31 - 1 ms); a token that lives longer is looked at again then. */
const LONGEST_TIMER_MS = 2_147_483_647;

export interface SocketServerParts {
  schema: GraphQLSchema;
  services: Services;
  verifyActor: ActorVerifier;
  /** Origins from which a browser may open a socket, besides the service's own. */
  allowedOrigins: readonly string[];
  introspection: boolean;
  metrics: Metrics;
  logger: Logger;
}

type Session = { viewer: Viewer; tokenEnds: NodeJS.Timeout };

/** GraphQL subscriptions at `/graphql` by the graphql-transport-ws protocol. @returns closes the sockets with 1001 */
export function addSocketServer(server: Server, parts: SocketServerParts): () => Promise<void> {
  const sockets = new WebSocketServer({ noServer: true, maxPayload: MAX_MESSAGE_BYTES });
  const closed = () => parts.metrics.sockets.dec();
  const protocol = useServer<Record<string, unknown>, Session>(options(parts), sockets, PING_MS);
  server.on("upgrade", (request, socket, head) => {
    const { origin, host } = request.headers;
    // Compared as text: a URL that does not parse would throw here, outside of every request.
    if (request.url?.split("?")[0] !== "/graphql") return refuse(socket, "404 Not Found");
    if (!isAllowed(origin, host, parts.allowedOrigins)) return refuse(socket, "403 Forbidden");
    // Without the request: what it holds would stay for as long as the socket.
    sockets.handleUpgrade(request, socket, head, (opened) => sockets.emit("connection", opened));
  });
  sockets.on("connection", (opened) => {
    parts.metrics.sockets.inc();
    opened.once("close", closed);
  });
  return async () => protocol.dispose();
}

/** How many sockets each tenant has open in this process, so that one token cannot open them without end. */
export class TenantSeats {
  readonly #taken = new Map<number, number>();

  constructor(private readonly most: number) {}

  /** @returns false where there is none left, or where the socket has closed meanwhile; then it is told why */
  take(tenantId: number, socket: Pick<WebSocket, "readyState" | "OPEN" | "close" | "once">): boolean {
    if (socket.readyState !== socket.OPEN) return false;
    const taken = this.#taken.get(tenantId) ?? 0;
    if (taken >= this.most) {
      socket.close(TOO_MANY_SOCKETS, "Your organization has too many sockets open");
      return false;
    }
    this.#taken.set(tenantId, taken + 1);
    socket.once("close", () => this.#giveBack(tenantId));
    return true;
  }

  #giveBack(tenantId: number): void {
    const left = (this.#taken.get(tenantId) ?? 1) - 1;
    if (left > 0) this.#taken.set(tenantId, left);
    else this.#taken.delete(tenantId);
  }
}

type SocketContext = Context<Record<string, unknown>, Extra & Partial<Session>>;

function options({ schema, services, verifyActor, introspection, logger }: SocketServerParts) {
  const rules = introspection ? specifiedRules : [...specifiedRules, NoSchemaIntrospectionCustomRule];
  const checks = new SubscriptionChecks(schema, rules);
  const reads = new SharedReads(services);
  const seats = new TenantSeats(MAX_TENANT_SOCKETS);
  const mask = maskErrors(logger);
  const masked = (errors: readonly GraphQLError[]) =>
    errors.map((error) => mask(error.toJSON(), error) as GraphQLError);
  const shared = new SharedSubscriptions((viewer) => createOperationContext(viewer, services, reads), mask);
  return {
    onConnect: async (context: SocketContext) => {
      const actor = await verifyActor(takeToken(context.connectionParams)).catch((error: unknown) => {
        if (error instanceof UnauthenticatedError) return null;
        logger.error({ err: error }, "a socket's actor could not be looked up");
        context.extra.socket.close(TRY_AGAIN_LATER, "Try again later");
        return null;
      });
      if (!actor || !seats.take(actor.tenantId, context.extra.socket)) return false;
      context.extra.viewer = viewerOf(actor);
      endWithToken(context, actor);
      return true;
    },
    jsonMessageReviver: refuseServerMessages,
    onDisconnect: ({ extra }: SocketContext) => clearTimeout(extra.tokenEnds),
    onSubscribe: ({ extra, subscriptions }: SocketContext, _id: string, payload: SubscribePayload) => {
      const checked = checks.check(payload, Object.keys(subscriptions).length);
      return "document" in checked ? { ...checked, contextValue: extra.viewer } : checked;
    },
    subscribe: (args: ExecutionArgs) => shared.subscribe(args.contextValue as Viewer, args),
    onError: (_context: SocketContext, _id: string, _payload: unknown, errors: readonly GraphQLError[]) =>
      masked(errors),
    // Masked already: the library would write anew what all subscribers share.
    onNext: (_context: SocketContext, _id: string, _payload: unknown, _args: unknown, result: ExecutionResult) =>
      result,
  };
}

/**
 * `next` and `error` are a server's to send. The library takes one from a client for a fault of ours (4500, and a stack
 * on stderr); refused while it is read, it is a bad request (4400).
 */
function refuseServerMessages(key: string, value: unknown): unknown {
  const type = key === "" && typeof value === "object" && value !== null && "type" in value ? value.type : null;
  if (type === "next" || type === "error") throw new Error("a client sent what only a server sends");
  return value;
}

/**
 * `connection_init` carries what an HTTP request has in its header: `{ authorization: "Bearer ..." }`. It is taken out,
 * because the library keeps the rest for as long as the socket is open.
 */
function takeToken(parameters: Record<string, unknown> = {}): string {
  const header = parameters.authorization ?? parameters.Authorization;
  delete parameters.authorization;
  delete parameters.Authorization;
  return typeof header === "string" ? header.replace(/^Bearer /i, "") : "";
}

function endWithToken(context: SocketContext, actor: Actor): void {
  const remaining = actor.expiresAt.getTime() - Date.now();
  context.extra.tokenEnds = setTimeout(
    () => {
      if (remaining > LONGEST_TIMER_MS) endWithToken(context, actor);
      else context.extra.socket.close(CloseCode.Forbidden, "The token has ended");
    },
    Math.max(0, Math.min(remaining, LONGEST_TIMER_MS)),
  ).unref();
}

/** Browsers do not guard sockets by origin, so the server must; a client that is no browser sends none. */
function isAllowed(origin: string | undefined, host: string | undefined, allowed: readonly string[]): boolean {
  if (origin === undefined) return true;
  if (!URL.canParse(origin)) return false;
  return new URL(origin).host === host || allowed.includes(new URL(origin).origin);
}

/** The HTTP server no longer hears an upgrade's socket, and an error that nobody hears would end the process. */
function refuse(socket: Duplex, status: string): void {
  socket.on("error", () => socket.destroy());
  socket.once("finish", () => socket.destroy());
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\n\r\n`);
}
