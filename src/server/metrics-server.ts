import Fastify from "fastify";
import type { Metrics } from "../platform/metrics";
import { listen } from "./listen";

export interface MetricsServer {
  stop(): Promise<void>;
}

/** Prometheus metrics at `/metrics`, on a port of their own so that they are never served with the API. */
export async function startMetricsServer({ registry }: Metrics, host: string, port: number): Promise<MetricsServer> {
  const fastify = Fastify({ logger: false, forceCloseConnections: true });
  fastify.get("/metrics", async (_request, reply) => {
    reply.header("content-type", registry.contentType);
    return registry.metrics();
  });
  await listen(fastify, host, port, "METRICS_PORT");
  return { stop: () => fastify.close() };
}
