import { type DocumentNode, type FieldNode, GraphQLError, Kind, type ValidationRule, visit } from "graphql";
import { LRUCache } from "lru-cache";
import { MINUTE_MS, SECOND_MS } from "../platform/clock";
import { errorOf } from "./errors";

// Anyone may reach the port. These numbers bound what such a peer holds of this process (decision 0041): whatever reads
// from a connection or writes to one keeps them.

/** Bytes of one message of a socket, in however many frames: a document with its variables. */
export const MAX_MESSAGE_BYTES = 64 * 1024;
/** Frames of one message. Clients send a message of 64 KB in one frame. */
export const MAX_FRAGMENTS = 64;
/** Pieces in which TCP may bring a message: each costs more than its bytes. Usual packets make 45 of 64 KB. */
export const MAX_PIECES = 256;

/** Bytes that wait to be written when more is to be written; a page's largest event has some tens of KB. */
export const MAX_UNREAD_BYTES = 256 * 1024;

/** Messages before the token is proven, WebSocket's own pings among them: `connection_init` and a few pings. */
export const UNPROVEN_MESSAGES = 8;
/** Bytes before the token is proven. Node takes as much of headers, where a token stands otherwise. */
export const UNPROVEN_BYTES = 16 * 1024;
/** Messages of a socket in a minute. A page that changes its subscriptions sends 4. */
export const SOCKET_MESSAGES_A_MINUTE = 240;
/** Bytes of a socket in a minute: the subscriptions of a page, many times over. */
export const SOCKET_BYTES_A_MINUTE = 1024 * 1024;
/** Messages of all sockets of a user in a minute: pages that come back together after a restart, each with some. */
export const USER_MESSAGES_A_MINUTE = 2_400;

/** Sockets of one tenant in one process: a large organization has thousands of pages open. */
export const MAX_TENANT_SOCKETS = 10_000;
/** Sockets of one user in one process: a person's pages on all devices, or a program's few. */
export const MAX_USER_SOCKETS = 100;
/** To send an answer to one socket takes as long as to work through so much text: 25 microseconds, with what it leaves to be swept. */
export const SENDING = 50;
/** Users whose messages are remembered when they have no socket, so that a new socket begins no new minute. */
export const MAX_USERS_REMEMBERED = 20_000;

/** Connections that the kernel keeps until we take them: beyond, a client tries again a second later. */
export const LISTEN_BACKLOG = 1_024;
/**
 * Connections of one address that have nothing in hand: idle, with half a header, or a socket without `connection_init`.
 * More than wait to be taken, so that nobody gives way before it could speak. About 30 KB each.
 */
export const WAITING_OF_ADDRESS = 1_500;
export const WAITING_IN_ALL = 5_000;
/** Requests of one address that are on their way in or answers on their way out, up to half a megabyte and more each. */
export const MOVING_OF_ADDRESS = 200;
export const MOVING_IN_ALL = 1_000;
/** Bytes of all whole answers that are on their way out, besides the newest: some thousands of usual ones, a few of the largest. */
export const MOVING_BYTES = 64 * 1024 * 1024;

/** From the upgrade to `connection_init`. */
export const INIT_WAIT_MS = 3 * SECOND_MS;
/** A socket whose peer answers no ping for this long is ended. */
export const PING_MS = 12 * SECOND_MS;
/** From our close frame to the peer's; then the socket is cut. */
export const CLOSE_WAIT_MS = 2 * SECOND_MS;
/** For the headers of a request to arrive, an upgrade's too. */
export const HEADERS_WAIT_MS = 10 * SECOND_MS;
/** For a whole request to arrive; Fastify would wait for ever. */
export const REQUEST_WAIT_MS = MINUTE_MS;
/** How often Node looks for requests that are late; by itself only every 30 s. */
export const LATE_LOOK_MS = 5 * SECOND_MS;
/** A connection with a request on which nothing moves for so long is cut: nobody reads the answer. A mutation may think for two minutes. */
export const STILL_MS = 5 * MINUTE_MS;
/** A connection without a request outlasts those of proxies, ten minutes at most: one that ends as they send on it has failed that request. */
export const IDLE_MS = 11 * MINUTE_MS;

/** A request still at work so long after is cut off: a mutation's calls to the CRM have their own 30 seconds. */
export const FINISH_MS = MINUTE_MS;

/** Why a connection was refused or ended: the label of a metric. */
export type EndReason =
  /** It gave way to a newer one. */
  | "crowded"
  /** It sent a request before the last one was answered. */
  | "pipelined"
  | "unread"
  | "messages"
  | "bytes"
  | "user_sockets"
  | "tenant_sockets"
  /** Too large, in too many pieces, or no WebSocket at all. */
  | "bad_frame"
  | "bad_message"
  | "bad_upgrade";

/** Errors that one document is told; the library would tell a hundred, each with all of its places. */
const MAX_ERRORS = 20;
/** Line breaks: each place that an error names is found by counting them from the beginning. A token has a line at most. */
const MAX_LINES = 2_000;
/** Characters of a name; errors repeat names, and look for similar ones. */
const MAX_NAME_LENGTH = 200;
/**
 * Comparisons that the rules may come to: fields that could be merged with each other, fragments with each other, and
 * what each operation reaches. The largest document of the page comes to 722.
 */
const MAX_COMPARISONS = 100_000;

/** Directives at one place; `@skip` and `@include` are all that mean anything here. Each that is wrong would be an error of its own. */
const MAX_DIRECTIVES = 5;

/** Values in the variables, those within lists and objects among them: each is checked. A meeting of 500 attendees has 1,507. */
const MAX_VALUES = 5_000;
/** Characters of all documents that are kept, some hundreds of a frontend's; parsed they take up to 300 times as much. */
const MAX_KEPT = 256 * 1024;

/** For `validate`. */
export const VALIDATION_OPTIONS = { maxErrors: MAX_ERRORS };
/** Values of variables that do not fit and are told; each is told with the whole that it is in. */
export const COERCION_OPTIONS = { maxErrors: 5 };

/**
 * A rule that refuses a document whose validation would take long, before any other rule looks into it. It measures in
 * time linear in the document, and at worst: what could meet counts as met.
 */
export const boundedDocument: ValidationRule = (context) => ({
  Document(document) {
    const refusal = refusalOfDocument(document);
    if (!refusal) return undefined;
    context.reportError(refusal);
    // To the visitor: this node is gone. So nothing below it is visited, by any rule.
    return null;
  },
});

/**
 * Valid documents, so that one that comes again is not parsed again. They weigh what their text does, because they hold
 * it: a comment of 500 KB is nothing in the parsed fields.
 */
export function keptDocuments(): LRUCache<string, DocumentNode> {
  return new LRUCache({
    maxSize: MAX_KEPT,
    sizeCalculation: ({ loc }) => Math.max(1, loc?.source.body.length ?? 0),
  });
}

/** @returns why variables are not looked into; null where they are */
export function refusalOfVariables(variables: Readonly<Record<string, unknown>>): GraphQLError | null {
  // Not by calls of itself: the values may be nested as deeply as a body holds brackets.
  const open: unknown[] = Object.values(variables);
  for (let seen = 1; open.length > 0; seen += 1) {
    const value = open.pop();
    const within = typeof value === "object" && value !== null ? Object.values(value) : [];
    if (seen + open.length + within.length > MAX_VALUES) return tooManyValues();
    open.push(...within);
  }
  return null;
}

function tooManyValues(): GraphQLError {
  const what = `The variables have more than ${MAX_VALUES} values. Send several operations with fewer values each.`;
  return errorOf("TOO_MANY_VALUES", what);
}

function refusalOfDocument(document: DocumentNode): GraphQLError | null {
  if (hasMoreLines(document.loc?.source.body ?? "", MAX_LINES))
    return tooComplex(`It has more than ${MAX_LINES} lines`);
  const { comparisons, longestName, directives } = measure(document);
  if (directives > MAX_DIRECTIVES)
    return tooComplex(`One place has ${directives} directives, more than ${MAX_DIRECTIVES}`);
  if (longestName > MAX_NAME_LENGTH)
    return tooComplex(`A name has ${longestName} characters, more than ${MAX_NAME_LENGTH}`);
  if (comparisons <= MAX_COMPARISONS) return null;
  return tooComplex(`Its fields and fragments would be compared ${comparisons} times, more than ${MAX_COMPARISONS}`);
}

function tooComplex(what: string): GraphQLError {
  const advice = "Repeat fewer of them, put texts into variables, or send several documents.";
  return errorOf("DOCUMENT_TOO_COMPLEX", `The document is not validated. ${what}. ${advice}`);
}

interface Work {
  comparisons: number;
  longestName: number;
  /** At the place that has most. */
  directives: number;
}

/** How much the rules would compare. */
function measure(document: DocumentNode): Work {
  const fields = new Map<string, { count: number; weight: number }>();
  let [operations, spreads, distinctSpreads, variables, longestName, directives] = [0, 0, 0, 0, 0, 0];
  visit(document, {
    Directive(_node, _key, beside) {
      directives = Math.max(directives, Array.isArray(beside) ? beside.length : 1);
    },
    Name({ value }) {
      longestName = Math.max(longestName, value.length);
    },
    OperationDefinition() {
      operations += 1;
    },
    Variable() {
      variables += 1;
    },
    SelectionSet({ selections }) {
      const names = selections.flatMap((node) => (node.kind === Kind.FRAGMENT_SPREAD ? [node.name.value] : []));
      spreads += names.length;
      distinctSpreads += new Set(names).size;
    },
    Field(node: FieldNode) {
      const name = (node.alias ?? node.name).value;
      const { count, weight } = fields.get(name) ?? { count: 0, weight: 0 };
      fields.set(name, { count: count + 1, weight: weight + 1 + (node.arguments?.length ?? 0) });
    },
  });
  let comparisons = distinctSpreads ** 2 + operations * (spreads + variables);
  for (const { count, weight } of fields.values()) comparisons += count * weight;
  return { comparisons, longestName, directives };
}

/** It stops to count at the first line that is too many. */
const hasMoreLines = (text: string, most: number): boolean => text.split(/\r\n|[\n\r]/, most + 1).length > most;
