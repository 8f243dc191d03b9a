import { randomUUID } from "node:crypto";
import { IncomingMessage } from "node:http";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { GraphQLError, type GraphQLFormattedError } from "graphql";
import { CloseCode } from "graphql-ws";
import { DeadlineError, heldUpOf, levelOf } from "../database/errors";
import { EventsMissedError, ServiceError } from "../platform/errors";
import type { Logger } from "../platform/logger";

/** The status of the answer; null where it comes over a socket alone. */
type Told = readonly [status: number | null, words: string];

/** All codes of `errors`. docs/api.md shows them: `npm run schema` writes it. */
const ERRORS = {
  UNAUTHENTICATED: [401, "The token is missing, wrong or has ended: get another."],
  KEYS_UNAVAILABLE: [503, "The token cannot be proven now: keep it, try again after `Retry-After`."],
  BAD_REQUEST: [400, "The body is no JSON, or no operation."],
  METHOD_NOT_ALLOWED: [405, "Send a POST."],
  UNSUPPORTED_MEDIA_TYPE: [415, "Send `application/json`."],
  BODY_TOO_LARGE: [413, "Send less than 512 KB."],
  GRAPHQL_PARSE_FAILED: [400, "The document is no GraphQL, or has more than 2,000 tokens."],
  GRAPHQL_VALIDATION_FAILED: [400, "The document does not fit the schema."],
  OPERATION_RESOLUTION_FAILURE: [400, "`operationName` names none or is missing; no subscriptions."],
  PERSISTED_QUERY_NOT_SUPPORTED: [200, "Send the whole document."],
  BAD_USER_INPUT: [400, "Variables or arguments do not fit; 200 where single fields lack their data."],
  DOCUMENT_TOO_COMPLEX: [400, "Its validation would take long: repeat less, use variables."],
  DOCUMENT_TOO_DEEP: [400, "Nest less."],
  TOO_MANY_ALIASES: [400, "Use fewer aliases."],
  TOO_MANY_VALUES: [400, "Send fewer values in variables."],
  OPERATION_TOO_COSTLY: [400, "Ask for less of the field that is named."],
  TOO_MANY_OPERATIONS: [429, "Ask again after `Retry-After`."],
  DEADLINE_EXCEEDED: [200, "It took too long: ask for less."],
  TEMPORARILY_UNAVAILABLE: [200, "Try again in a few seconds, a write with the same key."],
  INTERNAL_SERVER_ERROR: [200, "A bug of ours: tell support the `errorId`."],
  NOT_ALLOWED_FOR_ROLE: [200, "Of `auditEvents`."],
  NOT_CONNECTED: [200, "Of `fields`."],
  NEEDS_REAUTHORIZATION: [200, "Of `fields`."],
  CRM_UNAVAILABLE: [200, "Of `fields`."],
  SUBSCRIPTIONS_ONLY: [null, "Send queries and mutations by POST."],
  EVENTS_MISSED: [null, "Events were missed: read anew."],
  TOO_MANY_SUBSCRIPTIONS: [null, "End some: 20 of a socket, 100 that differ of a tenant."],
} satisfies Record<string, Told>;
export type ErrorCode = keyof typeof ERRORS;
export const ERROR_CODES: ReadonlyMap<string, Told> = new Map(Object.entries(ERRORS));

/** An error that is told as it is. */
export const errorOf = (code: ErrorCode, message: string): GraphQLError =>
  new GraphQLError(message, { extensions: { code } });

/** An error of graphql-js with the code that tells what it is about; one of ours has said a closer one. */
export function withCode(code: ErrorCode, error: GraphQLError): GraphQLError {
  if (error.extensions.code !== undefined) return error;
  const { message, nodes, source, positions, path, originalError } = error;
  return new GraphQLError(message, { nodes, source, positions, path, originalError, extensions: { code } });
}

/** Failures of ours. Where these end an operation before it is executed, that is no success of HTTP. */
const OURS: ReadonlySet<unknown> = new Set<ErrorCode>([
  "INTERNAL_SERVER_ERROR",
  "TEMPORARILY_UNAVAILABLE",
  "DEADLINE_EXCEEDED",
]);
/** Whether what is asked for may be answered later, with nothing changed: the caller did nothing wrong. */
export const isOurs = ({ extensions }: GraphQLError): boolean => OURS.has(extensions.code);

/** The status of an answer to what was not executed. */
export function statusOf(errors: readonly { extensions?: { code?: unknown } }[]): number {
  const code = errors[0]?.extensions?.code;
  return OURS.has(code) ? 500 : (ERROR_CODES.get(String(code))?.[0] ?? 400);
}

/** With which codes sockets are closed: those of WebSocket's registry, and above 4000 those of the protocol. */
export const CLOSE = {
  goingAway: 1001,
  tryAgainLater: 1013,
  /** After HTTP's 429. */
  tooMany: CloseCode.TooManyInitialisationRequests,
};

export const CLOSE_CODES: ReadonlyMap<number | "none", string> = new Map<number | "none", string>([
  [CLOSE.goingAway, "the service stops: connect again"],
  [1008, "a message came in too many pieces"],
  [1009, "a message has more than 64 KB"],
  [CLOSE.tryAgainLater, "the token cannot be proven now: keep it, try again in a minute"],
  [CloseCode.BadRequest, "no message of the protocol; a `ping` or `pong` has no payload here, an id 90 bytes at most"],
  [CloseCode.Unauthorized, "a subscription before `connection_init`"],
  [CloseCode.Forbidden, "the token is not valid, or has ended"],
  [CloseCode.SubprotocolNotAcceptable, "no `graphql-transport-ws`"],
  [CloseCode.ConnectionInitialisationTimeout, "no `connection_init` within 3 s"],
  [CloseCode.SubscriberAlreadyExists, "two subscriptions with one id"],
  [
    CLOSE.tooMany,
    "too many: 100 sockets of a user, 10,000 of a tenant; 240 messages of a socket a minute, 2,400 of a user; two `connection_init`",
  ],
  [CloseCode.InternalServerError, "a bug of ours: connect again"],
  [
    "none",
    "256 KB waited unread, 1 MB came in a minute, or it said nothing while [its address had too many](operations.md#what-one-address-may-hold)",
  ],
]);

/** Characters of a message: the library repeats what does not fit, and would repeat half a megabyte for each thing wrong. */
const LONGEST_MESSAGE = 1_000;

/** graphql-js adds names of the schema that resemble one that is not there. */
const SUGGESTIONS = / Did you mean [^?]*\?/g;

/** An error and where in the answer it stands; those of graphql-jit look like those of graphql-js and are none. */
type Placed = Pick<GraphQLError, "message" | "locations" | "path" | "originalError">;
export type MaskError = (error: unknown) => GraphQLFormattedError;

/**
 * What a client sees of an error. What has a code of the service's own is shown as it is; anything else is a bug of ours: the
 * log has it under an id, and the client gets that id and nothing more.
 * @param introspection whether the schema may be read: where not, no message tells names of it either
 */
export function maskErrors(logger: Logger, introspection: boolean): MaskError {
  const worded = (message: string) => bounded(introspection ? message : message.replace(SUGGESTIONS, ""));
  return (error) => {
    const { locations, path, originalError } = isPlaced(error) ? error : NOWHERE;
    const original = originalError ?? error;
    const told = (message: string, code: unknown) => ({
      message: worded(message),
      locations,
      path,
      extensions: { code },
    });
    const coded = [error, original].find(isCoded);
    if (coded) return told(coded.message, coded.extensions.code);
    if (original instanceof DeadlineError || original instanceof EventsMissedError) {
      return told(original.message, original.code);
    }
    const heldUp = heldUpOf(original);
    if (heldUp) {
      logger[levelOf(original)]({ err: original, path }, "an operation was held up and called off");
      return told(heldUp.message, heldUp.code);
    }
    const errorId = randomUUID();
    const code = original instanceof ServiceError ? original.code : undefined;
    logger.error({ errorId, code, err: original, path }, "an operation failed for a reason of our own");
    const message = `Something went wrong on our side. Give this id to support: ${errorId}`;
    return { message, locations, path, extensions: { code: "INTERNAL_SERVER_ERROR", errorId } };
  };
}

const NOWHERE: Placed = { message: "", locations: undefined, path: undefined, originalError: undefined };

const isPlaced = (error: unknown): error is Placed =>
  typeof error === "object" && error !== null && "locations" in error && "path" in error && "originalError" in error;

/** Errors of compiled queries are of that class and may have no extensions. */
const isCoded = (error: unknown): error is GraphQLError =>
  error instanceof GraphQLError && error.extensions?.code !== undefined;

const bounded = (message: string): string =>
  message.length > LONGEST_MESSAGE ? `${message.slice(0, LONGEST_MESSAGE)}...` : message;

/** Requests that offer another protocol. Beside them, for Node says so while it makes one, before a field of ours stands. */
const offered = new WeakSet<IncomingMessage>();
/** Node takes each offer of another protocol for a socket's. Who offers HTTP/2, as Java's client does, is answered without it. */
export class Arriving extends IncomingMessage {
  get upgrade(): boolean {
    return offered.has(this) && (this.method === "CONNECT" || /^websocket$/i.test(this.headers.upgrade ?? "websocket"));
  }

  set upgrade(isOffered: boolean) {
    if (isOffered) offered.add(this);
  }
}

/** Bytes of a refused request that are read: several times what any may have. */
const HEARD_OUT_BYTES = 4 * 1024 * 1024;

/**
 * Waits for the rest of a request that is answered before it has come whole. A connection that is closed with bytes unread is reset: the
 * proxy before it loses the answer, tells 502, and sends nobody to this process for a while. A minute is the limit, as of any request.
 */
export async function hearOut(request: IncomingMessage): Promise<void> {
  if (request.complete || request.destroyed) return;
  const { socket } = request;
  const until = socket.bytesRead + HEARD_OUT_BYTES;
  await new Promise<void>((resolve) => {
    const hear = () => socket.bytesRead > until && resolve();
    request.once("end", resolve).once("close", resolve).on("data", hear).resume();
  });
}

/** As GraphQL over HTTP has it. Preflights and upgrades do not get here. */
export function refuseOtherMethods(scope: FastifyInstance): void {
  // Before a body is looked at, which may be anything.
  const onRequest = async ({ headers }: FastifyRequest, reply: FastifyReply) => {
    // What a proxy leaves of an upgrade that it was not told to pass on.
    const wasSocket = headers["sec-websocket-key"] !== undefined;
    const why = wasSocket ? "For a socket a proxy must pass Upgrade and Connection on." : "Send operations by POST.";
    const { message, extensions } = errorOf("METHOD_NOT_ALLOWED", why);
    return reply
      .code(405)
      .header("allow", "POST")
      .send({ errors: [{ message, extensions }] });
  };
  scope.route({ method: ["GET", "PUT", "PATCH", "DELETE"], url: "", onRequest, handler: onRequest });
}
