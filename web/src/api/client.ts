import { type Client, cacheExchange, createClient, fetchExchange, subscriptionExchange } from "@urql/core";
import { CloseCode, createClient as createSocketClient, type Client as SocketClient } from "graphql-ws";
import { hearTime } from "./clock";
import { toldToWhoStays } from "./leaving";
import type { Liveness } from "./liveness";
import type { Tokens } from "./tokens";

const UNAUTHENTICATED = 401;
/** While one version of the service follows another: nothing was done of what a process of the other one does not understand. */
export const NOT_UNDERSTOOD = 400;
const MOST_TRIES = 8;
/** Longer with each try: four seconds for all of them. */
const TRY_AGAIN_MS = 150;
const LONGEST_WAIT_MS = 15_000;
/** A page that is left open over night, and its session has ended, asks the host product for a token with each try. */
const LONGEST_WAIT_SIGNED_OUT_MS = 300_000;
const KEEP_ALIVE_MS = 15_000;
const PONG_WITHIN_MS = 5_000;
/** Longer than the service takes for its slowest answer, a write that waits for another one: beyond it none will come. */
const ANSWER_WITHIN_MS = 120_000;

/** Queries and mutations by POST, subscriptions by WebSocket, both with the present token. */
export function createApi(tokens: Tokens, liveness: Liveness): Client {
  const sockets = createSockets(tokens, liveness);
  return createClient({
    url: "/graphql",
    preferGetMethod: false,
    fetch: toldToWhoStays(authorized(tokens)),
    exchanges: [
      cacheExchange,
      subscriptionExchange({
        forwardSubscription: ({ query, variables, operationName }) => ({
          subscribe: (sink) => ({
            unsubscribe: keepSubscribed(
              (error) => sockets.subscribe({ query: query ?? "", variables, operationName }, { ...sink, error }),
              (error) => sink.error(error),
            ),
          }),
        }),
      }),
      fetchExchange,
    ],
  });
}

/** Sends with the token, and once more with a new one where the service no longer accepts it; to others where one does not understand. */
function authorized(tokens: Tokens): typeof fetch {
  return async (input, init) => {
    const send = async () => {
      const headers = new Headers(init?.headers);
      headers.set("authorization", `Bearer ${await tokens.get()}`);
      return fetch(input, { ...init, headers, signal: endedWith(init?.signal) });
    };
    let answer = await send();
    for (let tries = 1; answer.status === NOT_UNDERSTOOD && tries < MOST_TRIES; tries += 1) {
      await passed(tries * TRY_AGAIN_MS);
      answer = await send();
    }
    hearTime(answer);
    if (answer.status !== UNAUTHENTICATED) return answer;
    tokens.forget();
    return send();
  };
}

/**
 * By whoever asked, or where no answer will come. `AbortSignal.any` is newer than browsers that the page is built for, and
 * WebKit throws a limit away that nothing but it refers to: there it never came.
 */
function endedWith(asked: AbortSignal | null | undefined): AbortSignal {
  const ending = new AbortController();
  const end = () => ending.abort();
  setTimeout(end, ANSWER_WITHIN_MS);
  asked?.addEventListener("abort", end);
  if (asked?.aborted) end();
  return ending.signal;
}

/** Again, later each time, where a process of another version does not understand it: that one ends, and the next one may. */
function keepSubscribed(subscribe: (onError: OnError) => () => void, onError: OnError): () => void {
  let end = () => {};
  const ask = (attempt: number) => {
    end = subscribe((error) => {
      if (!isNotUnderstood(error)) return onError(error);
      const timer = setTimeout(() => ask(attempt + 1), waitOf(attempt));
      end = () => clearTimeout(timer);
    });
  };
  ask(0);
  return () => end();
}

type OnError = (error: unknown) => void;

const isNotUnderstood = (error: unknown) =>
  Array.isArray(error) && error.some(({ extensions }) => extensions?.code === "GRAPHQL_VALIDATION_FAILED");

const waitOf = (attempt: number, longest = LONGEST_WAIT_MS) =>
  Math.min(longest, 500 * 2 ** attempt) * (0.5 + Math.random());

function createSockets(tokens: Tokens, liveness: Liveness): SocketClient {
  let lost: ReturnType<typeof setTimeout> | undefined;
  let authorization = "";
  const sockets = createSocketClient({
    // The service waits 3 s for the token of an open socket, so it is asked for before. An exception here would end it for good; without
    // a token the service refuses the socket, and it is tried again later.
    url: async () => {
      authorization = `Bearer ${await tokens.get().catch(() => "")}`;
      return new URL("/graphql", window.location.href).href.replace(/^http/, "ws");
    },
    connectionParams: () => ({ authorization }),
    keepAlive: KEEP_ALIVE_MS,
    retryAttempts: Number.POSITIVE_INFINITY,
    shouldRetry: () => true,
    retryWait: (attempt) => passed(waitOf(attempt, tokens.isSignedOut ? LONGEST_WAIT_SIGNED_OUT_MS : LONGEST_WAIT_MS)),
    on: {
      connected: () => liveness.set(true),
      // A socket that a sleeping machine or a network has lost is told by nobody.
      ping: () => {
        lost = setTimeout(() => sockets.terminate(), PONG_WITHIN_MS);
      },
      pong: () => clearTimeout(lost),
      closed: (event) => {
        clearTimeout(lost);
        liveness.set(false);
        if ((event as CloseEvent).code === CloseCode.Forbidden) tokens.forget();
      },
    },
  });
  return sockets;
}

/** After that time, and at once where somebody comes back to the page. */
const passed = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
    window.addEventListener("focus", () => resolve(), { once: true, signal: AbortSignal.timeout(ms) });
  });
