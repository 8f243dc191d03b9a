import { once } from "node:events";
import { Agent, createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import type { RunningCrm } from "./processes";

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
