import { once } from "node:events";
import { Agent, createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import type { Duplex } from "node:stream";
import type { RunningCrm, RunningService } from "./processes";

export interface Router {
  /** Both companies at one address, as one service knows one CRM. */
  url: string;
  /** Whose company the next consents and grants are for. */
  consentsGoTo(company: RunningCrm): void;
  stop(): void;
}

/** Sends each request to the company that its access token was first used for. */
export async function startRouter(first: RunningCrm): Promise<Router> {
  const agent = new Agent({ keepAlive: true });
  const companyOf = new Map<string, RunningCrm>();
  let current = first;
  const server = createServer((incoming, outgoing) => {
    const token = incoming.headers.authorization ?? "";
    const isApi = incoming.url?.startsWith("/api/");
    const company = (isApi && companyOf.get(token)) || current;
    if (isApi) companyOf.set(token, company);
    const address = new URL(incoming.url ?? "", company.crm.CRM_BASE_URL);
    const { method, headers } = incoming;
    const forwarded = request(address, { agent, method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    forwarded.on("error", (error) => outgoing.destroy(error));
    incoming.pipe(forwarded);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    consentsGoTo: (company) => {
      current = company;
    },
    stop: () => {
      server.close();
      server.closeAllConnections();
      agent.destroy();
    },
  };
}

/** How often the balancer asks each process whether it is ready. */
const LOOK_MS = 200;

/** As in production: new requests go to ready processes in turn, to any where none is ready, and none is repeated. */
export class Balancer {
  readonly #agent = new Agent({ keepAlive: true });
  readonly #server: Server = createServer((incoming, outgoing) => this.#forward(incoming, outgoing));
  readonly #processes = new Map<RunningService, { isReady: boolean }>();
  #turn = 0;
  url = "";

  async start(): Promise<void> {
    this.#server.on("upgrade", (incoming, socket, head) => this.#tunnel(incoming, socket, head));
    await once(this.#server.listen(0, "127.0.0.1"), "listening");
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    setInterval(() => void this.#look(), LOOK_MS).unref();
  }

  add(service: RunningService): void {
    this.#processes.set(service, { isReady: true });
    service.child.once("exit", () => this.#processes.delete(service));
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
    this.#agent.destroy();
  }

  async #look(): Promise<void> {
    const looks = [...this.#processes].map(async ([service, state]) => {
      const answer = await fetch(`${service.url}/readyz`, { signal: AbortSignal.timeout(2_000) }).catch(() => null);
      await answer?.body?.cancel();
      state.isReady = answer?.ok ?? false;
    });
    await Promise.all(looks);
  }

  #next(): URL | null {
    const all = [...this.#processes];
    const ready = all.filter(([, { isReady }]) => isReady);
    const among = ready.length > 0 ? ready : all;
    this.#turn += 1;
    const [service] = among[this.#turn % Math.max(1, among.length)] ?? [];
    return service ? new URL(service.url) : null;
  }

  #forward(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const to = this.#next();
    if (!to) return void outgoing.writeHead(502).end();
    const { method, headers } = incoming;
    const forwarded = request(new URL(incoming.url ?? "", to), { agent: this.#agent, method, headers }, (answer) => {
      const { connection: _ofTheirs, ...kept } = answer.headers;
      outgoing.writeHead(answer.statusCode ?? 502, kept);
      answer.pipe(outgoing);
      answer.on("error", () => outgoing.destroy());
    });
    forwarded.on("error", () => (outgoing.headersSent ? outgoing.destroy() : outgoing.writeHead(502).end()));
    incoming.pipe(forwarded);
  }

  #tunnel(incoming: IncomingMessage, socket: Duplex, head: Buffer): void {
    const to = this.#next();
    if (!to) return void socket.destroy();
    const onward = connect(Number(to.port), to.hostname);
    const lines = [`GET ${incoming.url} HTTP/1.1`];
    for (let at = 0; at < incoming.rawHeaders.length; at += 2) {
      lines.push(`${incoming.rawHeaders[at]}: ${incoming.rawHeaders[at + 1]}`);
    }
    onward.write(`${lines.join("\r\n")}\r\n\r\n`);
    onward.write(head);
    socket.pipe(onward).pipe(socket);
    for (const [one, other] of [[socket, onward] as const, [onward, socket] as const]) {
      one.on("error", () => other.destroy());
      one.on("close", () => other.destroy());
    }
  }
}
