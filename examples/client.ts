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
    this.#socket = createClient({
      url: `${options.url.replace(/^http/, "ws")}/graphql`,
      webSocketImpl: options.webSocketImpl,
      // By itself it gives up where nothing listens, as while the service is started anew, and waits twice as long each time.
      retryAttempts: Number.POSITIVE_INFINITY,
      shouldRetry: () => true,
      retryWait: (attempt) =>
        new Promise((resolve) =>
          setTimeout(resolve, Math.min(LONGEST_WAIT_MS, 500 * 2 ** attempt) * (0.5 + Math.random())),
        ),
      connectionParams: async () => ({ authorization: `Bearer ${await options.token()}` }),
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

  /** The state now and at each change; leaving the loop ends it. */
  async *hear<Data, Variables extends Record<string, unknown>>(
    document: TypedQueryDocumentNode<Data, Variables>,
    variables: Variables,
  ): AsyncGenerator<Data> {
    const events = this.#socket.iterate<Data>({ query: print(document), variables });
    for await (const event of events) yield dataOf<Data>(event);
  }

  close(): void {
    this.#socket.dispose();
  }
}

function dataOf<Data>({ data, errors }: Answer<Data>): Data {
  if (errors?.[0]) throw new Error(`${errors[0].extensions?.code}: ${errors[0].message}`);
  if (!data) throw new Error("an answer without data and errors");
  return data;
}
