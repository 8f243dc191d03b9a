import type { Server } from "node:http";
import type { Duplex } from "node:stream";
import {
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  NoSchemaIntrospectionCustomRule,
  OperationTypeNode,
  parse,
  specifiedRules,
  validate,
} from "graphql";
import { CloseCode, type Context, type SubscribePayload } from "graphql-ws";
import { type Extra, useServer } from "graphql-ws/use/ws";
import { type WebSocket, WebSocketServer } from "ws";
import type { Actor, ActorVerifier } from "../auth/actor";
import type { Logger } from "../platform/logger";
import type { Metrics } from "../platform/metrics";
import { createOperationContext, type Services } from "../resolvers/context";
import { SharedReads } from "../resolvers/tenant-reads";
import { maskErrors } from "./masked-errors";
import { MAX_EVENT_COST, MAX_TOKENS, refusalOfSize, sizeOf } from "./operation-size";

const MAX_MESSAGE_BYTES = 64 * 1024;
/** Sockets of one tenant in one process: a large organization has thousands of pages open. */
const MAX_TENANT_SOCKETS = 10_000;
/** Close code, after HTTP's 429. */
const TOO_MANY_SOCKETS = 4429;
/** Subscriptions of one socket; the page needs two. */
const MAX_SUBSCRIPTIONS = 20;
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
  production: boolean;
  metrics: Metrics;
  logger: Logger;
}

type Session = { actor: Actor; tokenEnds: NodeJS.Timeout };

/** GraphQL subscriptions at `/graphql` by the graphql-transport-ws protocol. @returns closes the sockets with 1001 */
export function addSocketServer(server: Server, parts: SocketServerParts): () => Promise<void> {
  const sockets = new WebSocketServer({ noServer: true, maxPayload: MAX_MESSAGE_BYTES });
  const protocol = useServer<Record<string, unknown>, Session>(options(parts), sockets, PING_MS);
  server.on("upgrade", (request, socket, head) => {
    const { origin, host } = request.headers;
    // Compared as text: a URL that does not parse would throw here, outside of every request.
    if (request.url?.split("?")[0] !== "/graphql") return refuse(socket, "404 Not Found");
    if (!isAllowed(origin, host, parts.allowedOrigins)) return refuse(socket, "403 Forbidden");
    sockets.handleUpgrade(request, socket, head, (opened) => {
      parts.metrics.sockets.inc();
      opened.once("close", () => parts.metrics.sockets.dec());
      sockets.emit("connection", opened, request);
    });
  });
  return async () => protocol.dispose();
}

/** How many sockets each tenant has open in this process, so that one token cannot open them without end. */
export class TenantSeats {
  readonly #taken = new Map<string, number>();

  constructor(private readonly most: number) {}

  /** @returns false where there is none left, or where the socket has closed meanwhile; then it is told why */
  take(tenantId: string, socket: Pick<WebSocket, "readyState" | "OPEN" | "close" | "once">): boolean {
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

  #giveBack(tenantId: string): void {
    const left = (this.#taken.get(tenantId) ?? 1) - 1;
    if (left > 0) this.#taken.set(tenantId, left);
    else this.#taken.delete(tenantId);
  }
}

type SocketContext = Context<Record<string, unknown>, Extra & Partial<Session>>;

function options({ schema, services, verifyActor, production, logger }: SocketServerParts) {
  const rules = production ? [...specifiedRules, NoSchemaIntrospectionCustomRule] : specifiedRules;
  const shared = new SharedReads(services);
  const seats = new TenantSeats(MAX_TENANT_SOCKETS);
  const mask = maskErrors(logger);
  const masked = (errors: readonly GraphQLError[]) =>
    errors.map((error) => mask(error.toJSON(), error) as GraphQLError);
  return {
    schema,
    onConnect: async (context: SocketContext) => {
      const actor = await verifyActor(tokenOf(context.connectionParams)).catch(() => null);
      if (!actor || !seats.take(actor.tenantId, context.extra.socket)) return false;
      context.extra.actor = actor;
      endWithToken(context, actor);
      return true;
    },
    jsonMessageReviver: refuseServerMessages,
    onDisconnect: ({ extra }: SocketContext) => clearTimeout(extra.tokenEnds),
    context: ({ extra }: SocketContext) => {
      if (!extra.actor) throw new GraphQLError("The socket has no actor.");
      return createOperationContext(extra.actor, services, shared);
    },
    onSubscribe: ({ subscriptions }: SocketContext, _id: string, payload: SubscribePayload) => {
      const refusal = refusalOf(schema, payload, Object.keys(subscriptions).length);
      return refusal ? [refusal] : undefined;
    },
    validate: (checked: GraphQLSchema, document: DocumentNode) => validate(checked, document, rules),
    onError: (_context: SocketContext, _id: string, _payload: unknown, errors: readonly GraphQLError[]) =>
      masked(errors),
    onNext: (
      _context: SocketContext,
      _id: string,
      _payload: unknown,
      _args: unknown,
      result: { errors?: readonly GraphQLError[] },
    ) => (result.errors ? { ...result, errors: masked(result.errors) } : undefined),
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

const SUBSCRIPTIONS_ONLY = "This socket serves subscriptions. Send queries and mutations by POST to /graphql.";

/** Why a subscription is not begun; null where it may be, or where the validation that follows says why not. */
function refusalOf(schema: GraphQLSchema, payload: SubscribePayload, open: number): GraphQLError | null {
  if (open > MAX_SUBSCRIPTIONS) {
    const what = `This socket has ${MAX_SUBSCRIPTIONS} subscriptions already. End some of them first.`;
    return new GraphQLError(what, { extensions: { code: "TOO_MANY_SUBSCRIPTIONS" } });
  }
  try {
    const document = parse(payload.query, { maxTokens: MAX_TOKENS });
    const operation = getOperationAST(document, payload.operationName);
    if (operation?.operation !== OperationTypeNode.SUBSCRIPTION) {
      return new GraphQLError(SUBSCRIPTIONS_ONLY, { extensions: { code: "SUBSCRIPTIONS_ONLY" } });
    }
    return refusalOfSize(sizeOf(schema, document, operation, payload.variables ?? {}), MAX_EVENT_COST);
  } catch (error) {
    if (error instanceof GraphQLError) return error;
    throw error;
  }
}

/** `connection_init` carries what an HTTP request has in its header: `{ authorization: "Bearer ..." }`. */
function tokenOf(parameters: Record<string, unknown> | undefined): string {
  const header = parameters?.authorization ?? parameters?.Authorization;
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
