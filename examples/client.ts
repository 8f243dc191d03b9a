import { print, type TypedQueryDocumentNode } from "graphql";
import { createClient, type Client as SocketClient } from "graphql-ws";

export interface ClientOptions {
  /** Of the service, without `/graphql`. */
  url: string;
  /** Asked before each operation and each socket, so that a token may be short. */
  token(): Promise<string>;
  /** Where there is no global WebSocket, as in Node 20. */
  webSocketImpl?: unknown;
}

interface Answer<Data> {
  data?: Data | null;
  errors?: readonly { message: string; extensions?: { code?: string } }[];
}

const LONGEST_WAIT_MS = 15_000;
const PING_MS = 10_000;
const PONG_WITHIN_MS = 5_000;

/** What a client of the service needs, in a browser and in Node: a POST, a socket, and types from the documents. */
export class Client {
  readonly #socket: SocketClient;

  constructor(private readonly options: ClientOptions) {
    let lost: ReturnType<typeof setTimeout> | undefined;
    let authorization = "";
    this.#socket = createClient({
      // The service waits 3 s for the token of an open socket, so it is asked for before. What throws here is never tried again; without
      // a token the service closes, and that is.
      url: async () => {
        authorization = `Bearer ${await options.token().catch(() => "")}`;
        return `${options.url.replace(/^http/, "ws")}/graphql`;
      },
      connectionParams: () => ({ authorization }),
      webSocketImpl: options.webSocketImpl,
      // By itself it gives up where nothing listens, as while the service is started anew, and waits twice as long each time.
      retryAttempts: Number.POSITIVE_INFINITY,
      shouldRetry: () => true,
      retryWait: (attempt) =>
        new Promise((resolve) =>
          setTimeout(resolve, Math.min(LONGEST_WAIT_MS, 500 * 2 ** attempt) * (0.5 + Math.random())),
        ),
      // A socket that a sleeping machine or a network has lost is told by nobody.
      keepAlive: PING_MS,
      on: {
        ping: () => {
          lost = setTimeout(() => this.#socket.terminate(), PONG_WITHIN_MS);
        },
        pong: () => clearTimeout(lost),
        closed: () => clearTimeout(lost),
      },
    });
  }

  /** @throws where the answer has errors; a refusal is data, and the caller's to look at */
  async ask<Data, Variables>(document: TypedQueryDocumentNode<Data, Variables>, variables: Variables): Promise<Data> {
    const answer = await fetch(`${this.options.url}/graphql`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${await this.options.token()}` },
      body: JSON.stringify({ query: print(document), variables }),
    });
    return dataOf<Data>((await answer.json()) as Answer<Data>);
  }

  /**
   * The state now and at each change; leaving the loop ends it. null where one could not be told, as in an outage: read anew what
   * you show. The next one may come in seconds, so that this is no end.
   * @throws where it cannot begin, or is turned away for good
   */
  async *hear<Data, Variables extends Record<string, unknown>>(
    document: TypedQueryDocumentNode<Data, Variables>,
    variables: Variables,
  ): AsyncGenerator<Data | null> {
    try {
      const events = this.#socket.iterate<Data>({ query: print(document), variables });
      for await (const { data, errors } of events) yield errors ? null : (data ?? null);
    } catch (thrown) {
      throw errorOf(thrown);
    }
  }

  close(): void {
    this.#socket.dispose();
  }
}

/** graphql-ws throws a list of errors where the subscription is refused, and the event of the close where the socket is. */
function errorOf(thrown: unknown): Error {
  if (thrown instanceof Error) return thrown;
  if (Array.isArray(thrown)) return errorIn(thrown) ?? new Error("refused without a reason");
  const { code, reason } = thrown as { code: number; reason: string };
  return new Error(`${code}: ${reason}`);
}

const errorIn = ([first]: Answer<unknown>["errors"] & object) =>
  first && new Error(`${first.extensions?.code}: ${first.message}`);

function dataOf<Data>({ data, errors = [] }: Answer<Data>): Data {
  const error = errorIn(errors);
  if (error) throw error;
  if (!data) throw new Error("an answer without data and errors");
  return data;
}
