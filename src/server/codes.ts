import type { HeaderMap } from "@apollo/server";
import { GraphQLError } from "graphql";
import { CloseCode } from "graphql-ws";

/** The status of the answer; null where it comes over a socket alone. */
type Told = readonly [status: number | null, words: string];

/** All codes of `errors`, besides refusals of single fields. docs/api.md shows them: `npm run schema` writes it. */
const ERRORS = {
  UNAUTHENTICATED: [401, "The token is missing, wrong or has ended: get another."],
  KEYS_UNAVAILABLE: [503, "The token cannot be proven now: keep it, try again after `Retry-After`."],
  BAD_REQUEST: [400, "The body is no JSON, or no operation."],
  UNSUPPORTED_MEDIA_TYPE: [415, "Send `application/json`."],
  BODY_TOO_LARGE: [413, "Send less than 512 KB."],
  GRAPHQL_PARSE_FAILED: [400, "The document is no GraphQL, or has more than 2,000 tokens."],
  GRAPHQL_VALIDATION_FAILED: [400, "The document does not fit the schema."],
  OPERATION_RESOLUTION_FAILURE: [400, "`operationName` names none of the document's."],
  PERSISTED_QUERY_NOT_SUPPORTED: [200, "Send the whole document."],
  BAD_USER_INPUT: [400, "Variables or arguments do not fit; 200 where single fields lack their data."],
  DOCUMENT_TOO_COMPLEX: [400, "Its validation would take long: repeat less, use variables."],
  DOCUMENT_TOO_DEEP: [400, "Nest less."],
  TOO_MANY_ALIASES: [400, "Use fewer aliases."],
  TOO_MANY_VALUES: [400, "Send fewer values in variables."],
  OPERATION_TOO_COSTLY: [400, "Ask for less of the field that is named."],
  TOO_MANY_OPERATIONS: [429, "Wait for some of the organization's to end."],
  DEADLINE_EXCEEDED: [200, "It took too long and was called off: ask for less."],
  TEMPORARILY_UNAVAILABLE: [200, "Try again in a few seconds, a write with the same key."],
  INTERNAL_SERVER_ERROR: [200, "A bug of ours: tell support the `errorId`."],
  SUBSCRIPTIONS_ONLY: [null, "Send queries and mutations by POST."],
  TOO_MANY_SUBSCRIPTIONS: [null, "End some: 20 of a socket, 100 that differ of a tenant."],
} satisfies Record<string, Told>;
export type ErrorCode = keyof typeof ERRORS;
export const ERROR_CODES: ReadonlyMap<string, Told> = new Map(Object.entries(ERRORS));

/** @param headers of the answer */
export function errorOf(code: ErrorCode, message: string, headers?: HeaderMap): GraphQLError {
  const [status] = ERRORS[code];
  // A member that is there and undefined would fail the answer.
  const http = { status, ...(headers && { headers }) };
  return new GraphQLError(message, { extensions: status === null ? { code } : { code, http } });
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
  [CloseCode.BadRequest, "no message of the protocol; a `ping` or `pong` has no payload here"],
  [CloseCode.Unauthorized, "a subscription before `connection_init`"],
  [CloseCode.Forbidden, "the token is not valid, or has ended"],
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
