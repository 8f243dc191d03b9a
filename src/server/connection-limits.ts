import { MINUTE_MS, SECOND_MS } from "../platform/clock";

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
/** Users whose messages are remembered when they have no socket, so that a new socket begins no new minute. */
export const MAX_USERS_REMEMBERED = 20_000;

/** Connections that the kernel keeps until we take them, all in one turn: beyond, a client tries again a second later. */
export const LISTEN_BACKLOG = 1_024;
/**
 * Connections of one address that have nothing in hand: idle, with half a header, or a socket without `connection_init`.
 * More than are taken in one turn, so that nobody gives way before it could speak. About 30 KB each.
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
/** A connection on which nothing moves for so long is cut: nobody reads the answer. A mutation may think for two minutes. */
export const STILL_MS = 5 * MINUTE_MS;

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
