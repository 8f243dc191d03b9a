import { once } from "node:events";
import WebSocket from "ws";
import { failed } from "./print";

/** Sockets that are opened at the same time. */
const AT_ONCE = 50;
const QUERY = "subscription { connectionStatusChanged { state boundEmail trouble { code } sync { lastSuccessAt } } }";

/** What came, to whom, and when (milliseconds since 1970, to the microsecond). */
export type Arrivals = [tenant: number, at: number][];

export interface ClientOptions {
  url: string;
  /** Of users, in turn because each may open so many sockets: a token for each tenant. */
  tokens: string[][];
  /** The tenant of each socket. */
  sockets: number[];
}

/** Asked with "collect", it answers with what came; with a number, so many sockets of the first tenant read nothing more. */
export type ClientRequest = ClientOptions | "collect" | number;

let arrivals: Arrivals = [];
const ofFirstTenant: WebSocket[] = [];
const openedOf = new Map<number, number>();
const now = () => performance.timeOrigin + performance.now();

/** Ends when the present state is there. */
async function open({ url, tokens }: ClientOptions, tenant: number): Promise<void> {
  const socket = new WebSocket(`${url.replace("http", "ws")}/graphql`, "graphql-transport-ws", {
    perMessageDeflate: false,
  });
  await once(socket, "open");
  const opened = openedOf.get(tenant) ?? 0;
  openedOf.set(tenant, opened + 1);
  const authorization = `Bearer ${tokens[opened % tokens.length]?.[tenant]}`;
  await new Promise<void>((resolve, reject) => {
    socket.on("close", (code) => reject(new Error(`a socket was closed with ${code}`)));
    socket.on("message", (data) => {
      const { type } = JSON.parse(String(data)) as { type: string };
      if (type === "connection_ack") {
        socket.send(JSON.stringify({ id: "1", type: "subscribe", payload: { query: QUERY } }));
      }
      if (type === "next") {
        arrivals.push([tenant, now()]);
        resolve();
      }
      if (type === "error") reject(new Error(String(data)));
    });
    socket.send(JSON.stringify({ type: "connection_init", payload: { authorization } }));
  });
  if (tenant === 0) ofFirstTenant.push(socket);
}

async function openAll(options: ClientOptions): Promise<void> {
  const left = [...options.sockets];
  const next = async () => {
    for (let tenant = left.pop(); tenant !== undefined; tenant = left.pop()) await open(options, tenant);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, next));
  arrivals = [];
}

process.on("message", (message: ClientRequest) => {
  if (message === "collect") {
    process.send?.(arrivals);
    arrivals = [];
  } else if (typeof message === "number") {
    for (const socket of ofFirstTenant.slice(0, message)) socket.pause();
    process.send?.("stalled");
  } else {
    openAll(message).then(
      () => process.send?.("open"),
      (error: unknown) => {
        failed(error);
        // Its open sockets would keep it alive, and the benchmark waiting.
        process.exit(1);
      },
    );
  }
});
