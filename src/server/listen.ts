import { setTimeout as sleep } from "node:timers/promises";
import type { FastifyInstance } from "fastify";
import { codeOf, messageOf, ServiceError } from "../platform/errors";
import { LISTEN_BACKLOG } from "./connection-limits";

/** How long answers ask clients to take a new connection elsewhere, before the listening ends. */
const LEAVE_MS = 1_000;
/** A request still at work after this long is cut off: a mutation's calls to the CRM have their own 30 seconds. */
const FINISH_MS = 60_000;

export class ServerStartError extends ServiceError {
  readonly code = "SERVER_START_FAILED";
}

/** @param variable the variable of the configuration that names the port. @throws ServerStartError with what to do */
export async function listen(fastify: FastifyInstance, host: string, port: number, variable: string): Promise<string> {
  try {
    return await fastify.listen({ host, port, backlog: LISTEN_BACKLOG });
  } catch (cause) {
    if (codeOf(cause) === "EADDRINUSE") {
      const advice = `Stop what uses it, or set ${variable} to another.`;
      throw new ServerStartError(`Port ${port} on ${host} is in use. ${advice}`, { cause });
    }
    throw new ServerStartError(`The server cannot listen on ${host}:${port}: ${messageOf(cause)}`, { cause });
  }
}

/**
 * Ends a server without failing a request: it is no longer ready, each answer ends its connection, and only then the
 * listening ends and requests in hand are waited for. A connection that is cut while a client sends on it would fail a
 * request that nobody can safely repeat.
 */
export class Draining {
  #begun = false;

  constructor(private readonly fastify: FastifyInstance) {
    fastify.addHook("onSend", async (_request, reply) => {
      if (this.#begun) reply.header("connection", "close");
    });
  }

  get begun(): boolean {
    return this.#begun;
  }

  /** @param besides ends what else holds connections, while requests are waited for */
  async finish(besides: () => Promise<void>): Promise<void> {
    this.#begun = true;
    await sleep(LEAVE_MS);
    const cut = setTimeout(() => this.fastify.server.closeAllConnections(), FINISH_MS);
    await Promise.all([this.fastify.close(), besides()]);
    clearTimeout(cut);
  }
}
