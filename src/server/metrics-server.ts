import Fastify from "fastify";
import type { QueueState } from "../database/jobs";
import type { Metrics } from "../platform/metrics";
import { listen } from "./listen";

export interface MetricsServer {
  stop(): Promise<void>;
}

/**
 * Prometheus metrics at `/metrics`, on a port of their own so that they are never served with the API.
 * @param readQueue the queue as it is when metrics are asked for; where that fails, its gauges keep what they last were
 */
export async function startMetricsServer(
  { registry, jobsWaiting, jobsOldestSeconds }: Metrics,
  readQueue: () => Promise<QueueState>,
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
    reply.header("content-type", registry.contentType);
    return registry.metrics();
  });
  await listen(fastify, host, port, "METRICS_PORT");
  return { stop: () => fastify.close() };
}
