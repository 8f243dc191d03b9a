import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";

/**
 * Sends OpenTelemetry traces (OTLP over HTTP) to a collector: operations, their SQL and their calls to the CRM.
 * @param endpoint the collector's base address, as in OTEL_EXPORTER_OTLP_ENDPOINT
 * @returns sends what is left and ends
 */
export function startTracing(endpoint: string): () => Promise<void> {
  const exporter = new OTLPTraceExporter({ url: `${endpoint}/v1/traces` });
  const provider = new NodeTracerProvider({
    resource: resourceFromAttributes({ "service.name": "crm-connection" }),
    spanProcessors: [new BatchSpanProcessor(exporter)],
  });
  provider.register();
  return () => provider.shutdown();
}
