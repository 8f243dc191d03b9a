import Fastify from "fastify";
import type { BudgetTotals } from "../connections/company-ledger";
import type { QueueState } from "../database/jobs";
import type { Metrics } from "../platform/metrics";
import { listen } from "./listen";

export interface MetricsServer {
  stop(): Promise<void>;
}

export interface StoredState {
  readQueue(): Promise<QueueState>;
  readBudgets(): Promise<BudgetTotals>;
}

/**
 * Prometheus metrics at `/metrics`, on a port of their own so that they are never served with the API.
 * Gauges of what is stored are set when metrics are asked for; where reading fails, they keep what they last were.
 */
export async function startMetricsServer(
  { registry, jobsWaiting, jobsOldestSeconds, crmCompaniesShort, crmTokensLimit, crmTokensRemaining }: Metrics,
  { readQueue, readBudgets }: StoredState,
  host: string,
  port: number,
): Promise<MetricsServer> {
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
  return { stop: () => fastify.close() };
}
