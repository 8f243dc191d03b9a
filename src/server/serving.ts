import { setTimeout as sleep } from "node:timers/promises";
import Fastify, { type FastifyInstance } from "fastify";
import type { BudgetTotals } from "../connections/budget";
import type { QueueState } from "../database/jobs";
import { codeOf, messageOf, ServiceError } from "../platform/errors";
import type { Logger } from "../platform/logger";
import type { Metrics } from "../platform/metrics";
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

/**
 * `/healthz` for "the process lives" and `/readyz` for "it can serve".
 * @param checkReady throws while it cannot
 */
export function addHealth(
  fastify: FastifyInstance,
  { checkReady, logger }: { checkReady(): Promise<void>; logger: Logger },
  draining: Draining,
): void {
  fastify.get("/healthz", async () => ({ status: "ok" }));
  fastify.get("/readyz", async (_request, reply) => {
    if (draining.begun) return reply.code(503).send({ status: "stopping" });
    try {
      await checkReady();
      return { status: "ready" };
    } catch (error) {
      logger.warn({ err: error }, "not ready");
      return reply.code(503).send({ status: "not ready" });
    }
  });
}

interface StoredState {
  readQueue(): Promise<QueueState>;
  readBudgets(): Promise<BudgetTotals>;
}

/**
 * Prometheus metrics at `/metrics`, on a port of their own so that they are never served with the API.
 * Gauges of what is stored are set when metrics are asked for; where reading fails, they keep what they last were.
 * @returns ends it
 */
export async function startMetricsServer(
  { registry, jobsWaiting, jobsOldestSeconds, crmCompaniesShort, crmTokensLimit, crmTokensRemaining }: Metrics,
  { readQueue, readBudgets }: StoredState,
  host: string,
  port: number,
): Promise<() => Promise<void>> {
  const fastify = Fastify({ logger: false, forceCloseConnections: true });
  fastify.get("/metrics", async (_request, reply) => {
    const queue = await readQueue().catch(() => null);
    if (queue) {
      jobsWaiting.set(queue.waiting);
      jobsOldestSeconds.set(queue.oldestSeconds);
    }
    const budgets = await readBudgets().catch(() => null);
    if (budgets) {
      crmCompaniesShort.set(budgets.short);
      crmTokensLimit.set(budgets.limit);
      crmTokensRemaining.set(budgets.remaining);
    }
    reply.header("content-type", registry.contentType);
    return registry.metrics();
  });
  await listen(fastify, host, port, "METRICS_PORT");
  return () => fastify.close();
}
