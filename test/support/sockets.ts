import { type Client, createClient } from "graphql-ws";
import WebSocket from "ws";
import { type ActorClaims, tokenFor } from "./actors";
import { until } from "./stories";

export interface Subscription<T> {
  /** Every result so far, in order. */
  results: T[];
  /** The code with which the socket was closed, once it is. */
  closed: Promise<{ code: number; reason: string }>;
  /** Waits until the server listens for it: what happens from then on is told, where no present state comes first. */
  listens(): Promise<void>;
  end(): Promise<void>;
}

export interface SubscribeOptions {
  as?: ActorClaims;
  token?: string;
  origin?: string;
}

/** Subscribes over a socket of its own, as a browser would. */
export async function subscribe<T>(
  url: string,
  query: string,
  options: SubscribeOptions = {},
): Promise<Subscription<T>> {
  const token = options.token ?? (await tokenFor(options.as));
  const results: T[] = [];
  const { origin } = options;
  let closedWith: (event: { code: number; reason: string }) => void = () => undefined;
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    closedWith = resolve;
  });
  const client = createClient({
    url: `${url.replace("http", "ws")}/graphql`,
    webSocketImpl: origin ? withOrigin(origin) : WebSocket,
    connectionParams: { authorization: `Bearer ${token}` },
    lazy: true,
    retryAttempts: 0,
    on: { closed: (event) => closedWith(event as { code: number; reason: string }) },
  });
  client.subscribe<T>(
    { query },
    {
      next: ({ data, errors }) => results.push((errors ?? data) as T),
      error: (error) => closedWith({ code: 0, reason: JSON.stringify(error), ...(error as object) }),
      complete: () => undefined,
    },
  );
  return { results, closed, listens: () => answersLater(client), end: async () => client.dispose() };
}

/** Subscribes with a token that ends in a few seconds, in more of them where the machine is slow: the present state has come. */
export async function subscribeBriefly<T>(url: string, query: string, as?: ActorClaims): Promise<Subscription<T>> {
  for (let seconds = 2; seconds < 60; seconds *= 2) {
    const token = await tokenFor(as, Math.floor(Date.now() / 1000) + seconds);
    const watching = await subscribe<T>(url, query, { token });
    let isClosed = false;
    void watching.closed.then(() => {
      isClosed = true;
    });
    await until("the present state comes, or the token has ended", async () => watching.results.length > 0 || isClosed);
    if (watching.results.length > 0) return watching;
  }
  throw new Error("no state has come before a token ended");
}

/** A server takes up what a socket asks in its order: a state that comes for what is asked now comes after the rest was taken up. */
async function answersLater(client: Client): Promise<void> {
  const states = client.iterate({ query: "subscription { connectionStatusChanged { __typename } }" });
  const { value } = await states.next();
  expect(value?.errors).toBeUndefined();
  await states.return?.();
}

function withOrigin(origin: string): typeof WebSocket {
  return class extends WebSocket {
    constructor(address: string, protocols?: string | string[]) {
      super(address, protocols, { origin });
    }
  } as typeof WebSocket;
}
