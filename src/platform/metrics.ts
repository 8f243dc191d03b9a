import { DiagLogLevel, diag } from "@opentelemetry/api";
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { SECOND_MS } from "./clock";
import { diagnosticsOf, type Logger } from "./logger";
import { traced, workCounts } from "./work";

/** From a fast page to the 30 seconds after which a call is given up. */
const SECONDS = [0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** The metrics of one app, in a registry of their own: nothing is counted on import, and two apps do not mix. */
export type Metrics = ReturnType<typeof createMetrics>;

export function createMetrics() {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  return {
    registry,
    operations: new Histogram({
      name: "graphql_operation_seconds",
      help: "GraphQL operations by kind (query, briefing, mutation, none) and outcome: OK, or the code of the first error.",
      labelNames: ["kind", "outcome"],
      buckets: SECONDS,
      registers,
    }),
    sqlStatements: new Histogram({
      name: "sql_statement_seconds",
      help: "Statements on tenant data.",
      buckets: SECONDS,
      registers,
    }),
    sockets: new Gauge({ name: "sockets_open", help: "Open sockets of subscribers.", registers }),
    connectionsEnded: new Counter({
      name: "connections_ended_total",
      help: "Connections and sockets refused or ended for a limit, by reason.",
      labelNames: ["reason"],
      registers,
    }),
    crmCalls: new Histogram({
      name: "crm_call_seconds",
      help: "Calls to the CRM by route and status; status 0: no whole answer came.",
      labelNames: ["route", "status"],
      buckets: SECONDS,
      registers,
    }),
    tokenRenewals: new Counter({
      name: "token_renewals_total",
      help: "Renewals of access tokens: GRANTED, or what the failure means.",
      labelNames: ["outcome"],
      registers,
    }),
    uninstallCallbacks: new Counter({
      name: "uninstall_callbacks_total",
      help: "What the CRM, or somebody in its name, said of uninstalls: TAKEN, UNKNOWN, UNREADABLE, HELD_UP, REFUSED.",
      labelNames: ["outcome"],
      registers,
    }),
    /** One that was UNKNOWN first is counted again when it is settled. */
    crmWrites: new Counter({
      name: "crm_writes_total",
      help: "Writes to the CRM (note, field) by the state they reached: WRITTEN, FAILED, UNKNOWN.",
      labelNames: ["kind", "state"],
      registers,
    }),
    crmTokens: new Counter({
      name: "crm_tokens_spent_total",
      help: "Tokens of the CRM that answered calls have cost, by purpose.",
      labelNames: ["purpose"],
      registers,
    }),
    ...syncMetrics(registers),
    /** Of what is stored: read when metrics are asked for. */
    stored: storedMetrics(registers),
  };
}

const syncMetrics = (registers: Registry[]) => ({
  syncPages: new Histogram({
    name: "sync_page_seconds",
    help: "Pages of a sync run, from asking the CRM to the commit.",
    labelNames: ["resource"],
    buckets: SECONDS,
    registers,
  }),
  syncRecords: new Counter({
    name: "sync_records_total",
    help: "Records of committed pages: written, unchanged, removed, rejected.",
    labelNames: ["resource", "outcome"],
    registers,
  }),
  syncRuns: new Counter({
    name: "sync_runs_total",
    help: "Ended sync runs: SUCCEEDED, MISCONFIGURED (the app registration), or the code of their failure.",
    labelNames: ["kind", "outcome"],
    registers,
  }),
});

/** Gauges that are absent while what they tell is not known: 0 would say that all is well. */
function storedMetrics(registers: Registry[]) {
  const absent = (name: string, help: string) => {
    const gauge = new Gauge({ name, help, registers });
    gauge.remove();
    return gauge;
  };
  return {
    jobsWaiting: absent("jobs_waiting", "Jobs that are due and that no living worker has taken."),
    jobsOldestSeconds: absent(
      "jobs_oldest_waiting_seconds",
      "How long the job that is due longest has waited for a worker.",
    ),
    jobsInHandSeconds: absent(
      "jobs_oldest_in_hand_seconds",
      "For how long the job that is due longest of those that living workers have in hand has been due.",
    ),
    jobsGivenUp: absent("jobs_given_up", "Jobs that have failed as often as they may."),
    oldestWatermarkSeconds: absent(
      "sync_oldest_watermark_seconds",
      "Age of the oldest watermark of connections that are read by the schedule; users, pipelines and stages: less 4 hours.",
    ),
    firstListsSeconds: absent(
      "sync_first_lists_seconds",
      "For how long the oldest working connection has had a list that was never read to its end; 0: none has.",
    ),
    writesUnsettled: absent("crm_writes_unsettled", "Writes that are UNKNOWN for more than an hour."),
    crmCompaniesShort: absent(
      "crm_companies_short",
      "Companies with less than a tenth of their daily tokens left, whoever spent them, or with none.",
    ),
    crmTokensLimit: absent(
      "crm_tokens_limit",
      "Daily tokens of all companies whose balance the CRM has told today, together.",
    ),
    crmTokensRemaining: absent(
      "crm_tokens_remaining",
      "What these companies have left today, as the CRM last said, together.",
    ),
  };
}

/** A collector that takes longer loses its traces: the end of the process waits for the last ones, too. */
const TAKEN_WITHIN_MS = 3 * SECOND_MS;

/**
 * Sends OpenTelemetry traces (OTLP over HTTP) to a collector: operations, their SQL and their calls to the CRM.
 * @param endpoint the collector's base address, as in OTEL_EXPORTER_OTLP_ENDPOINT
 * @returns sends what is left and ends; a collector that is away does not fail the process's end
 */
export async function startTracing(endpoint: string, logger: Logger): Promise<() => Promise<void>> {
  // They take a tenth of a process's start, for which most have no use.
  const [{ OTLPTraceExporter }, { resourceFromAttributes }, { BatchSpanProcessor, NodeTracerProvider }] =
    await Promise.all([
      import("@opentelemetry/exporter-trace-otlp-http"),
      import("@opentelemetry/resources"),
      import("@opentelemetry/sdk-trace-node"),
    ]);
  const exporter = new OTLPTraceExporter({ url: `${endpoint}/v1/traces`, timeoutMillis: TAKEN_WITHIN_MS });
  const provider = new NodeTracerProvider({
    resource: resourceFromAttributes({ "service.name": "crm-connection" }),
    spanProcessors: [new BatchSpanProcessor(exporter)],
  });
  provider.register();
  diag.setLogger(diagnosticsOf(logger), DiagLogLevel.WARN);
  return () => provider.shutdown().catch((error) => logger.warn({ err: error }, "the last traces could not be sent"));
}

/** Counts, times, traces and (at debug) logs each statement of the database's sessions. */
export function observedSql(metrics: Metrics, logger: Logger) {
  return async <T>(text: string, run: () => Promise<T>): Promise<T> => {
    const counts = workCounts();
    if (counts) counts.sql += 1;
    const ended = metrics.sqlStatements.startTimer();
    try {
      return await traced("sql", { "db.system.name": "postgresql", "db.query.text": text }, run);
    } finally {
      const seconds = ended();
      if (logger.isLevelEnabled("debug"))
        logger.debug({ sql: text.replace(/\s+/g, " ").trim(), seconds }, "a statement");
    }
  };
}
