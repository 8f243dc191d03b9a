import type { Socket } from "node:net";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import Fastify, { type FastifyInstance } from "fastify";
import type { Gauge } from "prom-client";
import { readBudgetTotals } from "../connections/budget";
import type { UninstallOutcome, Uninstalls } from "../connections/disconnecting";
import type { Database } from "../database/database";
import { SYNC_ERROR_CODES, SYNC_KINDS, SYNC_RESOURCES } from "../entities/sync-run";
import { SECOND_MS } from "../platform/clock";
import type { Logger } from "../platform/logger";
import type { Metrics } from "../platform/metrics";
import { readQueueState } from "../sync/run-history";
import { readFreshnessOfAll } from "../sync/schedule-rows";
import { countUnsettled } from "../writeback/look-ups";
import { FINISH_MS, HEADERS_WAIT_MS } from "./bounds";
import type { Crowds } from "./crowds";
import { listen } from "./pages";

/**
 * Ends a server without failing a request: it is no longer ready, each answer ends its connection, and only then the
 * listening ends and requests in hand are waited for. A connection that is cut while a client sends on it would fail a
 * request that nobody can safely repeat.
 */
export class Draining {
  #begun = false;
  /** Connections that Node has taken from the system. */
  #taken = 0;
  /** With the bytes that each had sent when its last answer was out. */
  readonly #sockets = new Map<Socket, number>();

  constructor(private readonly fastify: FastifyInstance) {
    fastify.server.on("connection", (socket) => {
      this.#taken += 1;
      this.#sockets.set(socket, 0);
      socket.once("close", () => this.#sockets.delete(socket));
    });
    fastify.addHook("onSend", async (_request, reply) => {
      if (this.#begun) reply.header("connection", "close");
    });
    fastify.addHook("onResponse", async ({ raw: { socket } }) => {
      if (this.#sockets.has(socket)) this.#sockets.set(socket, socket.bytesRead);
    });
  }

  get begun(): boolean {
    return this.#begun;
  }

  /**
   * @param leaveMs how long clients are asked to take a new connection elsewhere, before the listening ends
   * @param besides ends what else holds connections, while requests are waited for
   */
  async finish(leaveMs: number, besides: () => Promise<void>, crowds: Crowds): Promise<void> {
    this.#begun = true;
    const headersBy = performance.now() + leaveMs + HEADERS_WAIT_MS;
    let seen = new Map<Socket, number>();
    // What was free at the look before as well: on one whose answer has just ended the next request may be on its way.
    const look = () => {
      const isFree = (socket: Socket, known: number) => socket.bytesRead <= known || performance.now() > headersBy;
      const free = [...this.#sockets].filter(([one, known]) => !crowds.hasInHand(one) && isFree(one, known));
      for (const [socket] of free) if (seen.get(socket) === socket.bytesRead) socket.destroy();
      seen = new Map(free.map(([socket]) => [socket, socket.bytesRead]));
    };
    look();
    if (this.fastify.server.listening) await sleep(leaveMs);
    look();
    // Fastify and then Node end also those whose answer is on its way out; to look twice at once would cut who has just connected.
    const cutNone = () => {};
    this.fastify.server.closeIdleConnections = cutNone;
    // When what has come is read.
    const looks = setInterval(() => setImmediate(look), SECOND_MS);
    const cut = setTimeout(() => this.fastify.server.closeAllConnections(), FINISH_MS);
    try {
      await this.#takeAll();
      const ended = new Promise((resolve) => this.fastify.server.close(resolve));
      await Promise.all([ended, this.fastify.close(), besides()]);
    } finally {
      for (const timer of [looks, cut]) clearTimeout(timer);
    }
  }

  /** Node takes one a turn. Who still waits to be taken as the listening ends is reset, with the request that it has sent. */
  async #takeAll(): Promise<void> {
    const until = performance.now() + SECOND_MS;
    for (let before = -1; before !== this.#taken && performance.now() < until; await nextTurn()) before = this.#taken;
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

/** The CRM's few ids; whoever sends more is not the CRM. */
const MAX_CALLBACK_BYTES = 4 * 1024;
const ANSWERS: Record<UninstallOutcome, number> = { TAKEN: 204, UNKNOWN: 204, UNREADABLE: 400, HELD_UP: 503 };

export interface UninstallRoute {
  /** Of the redirect address: the CRM has one address for consents and uninstalls. */
  path: string;
  uninstalls: Pick<Uninstalls, "admits" | "take">;
}

/** DELETE at the redirect address (wire fact 2.5). The body of whoever does not prove to be the CRM is not read. */
export async function addUninstalls(fastify: FastifyInstance, { path, uninstalls }: UninstallRoute): Promise<void> {
  await fastify.register(async (scope) => {
    // As what the CRM declares its body is not known.
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", { parseAs: "string" }, (_request, body, done) => done(null, body));
    scope.route({
      method: "DELETE",
      url: path,
      bodyLimit: MAX_CALLBACK_BYTES,
      onRequest: async ({ headers }, reply) => {
        if (!uninstalls.admits(headers.authorization))
          return reply.code(401).header("www-authenticate", "Basic").send();
      },
      handler: async ({ body }, reply) => {
        const outcome = await uninstalls.take(typeof body === "string" ? body : "");
        return reply.code(ANSWERS[outcome]).send();
      },
    });
  });
}

/**
 * Prometheus metrics at `/metrics`, on a port of their own so that they are never served with the API.
 * Gauges of what is stored are set when metrics are asked for; where reading fails, they are absent.
 * @returns ends it
 */
export async function startMetricsServer(
  metrics: Metrics,
  database: Database,
  host: string,
  port: number,
): Promise<() => Promise<void>> {
  const fastify = Fastify({ logger: false, forceCloseConnections: true });
  const readStored = storedReader(metrics, database);
  beginSeries(metrics);
  fastify.get("/metrics", async (_request, reply) => {
    await readStored();
    return reply.header("content-type", metrics.registry.contentType).send(await metrics.registry.metrics());
  });
  await listen(fastify, host, port, "METRICS_PORT");
  return () => fastify.close();
}

/** What alerts count begins at 0: a series that came with its first event would have had no increase by it. */
export function beginSeries(metrics: Metrics): void {
  const { operations, syncRuns, syncRecords, tokenRenewals, crmWrites } = metrics;
  for (const kind of ["query", "briefing", "mutation", "none"])
    for (const outcome of ["OK", "INTERNAL_SERVER_ERROR", "TEMPORARILY_UNAVAILABLE", "DEADLINE_EXCEEDED"])
      operations.zero({ kind, outcome });
  for (const outcome of ["UNAUTHENTICATED", "KEYS_UNAVAILABLE"]) operations.zero({ kind: "none", outcome });
  for (const outcome of ["SUCCEEDED", "MISCONFIGURED", ...SYNC_ERROR_CODES])
    for (const kind of SYNC_KINDS) syncRuns.inc({ kind, outcome }, 0);
  for (const resource of SYNC_RESOURCES) syncRecords.inc({ resource, outcome: "rejected" }, 0);
  for (const outcome of ["INVALID_GRANT", "MISCONFIGURED", "OUTAGE", "UNKNOWN"]) tokenRenewals.inc({ outcome }, 0);
  for (const kind of ["note", "field"])
    for (const state of ["WRITTEN", "FAILED", "UNKNOWN"]) crmWrites.inc({ kind, state }, 0);
  metrics.uninstallCallbacks.inc({ outcome: "REFUSED" }, 0);
  metrics.connectionsEnded.inc({ reason: "crowded" }, 0);
}

/**
 * Within so long, whatever the database does: by these metrics it is asked whether a worker lives (3 s in compose.yaml), and
 * one that is silent is no reason to start it again.
 */
const STORED_WAIT_MS = 2 * SECOND_MS;

/** One reading at a time, however often metrics are asked for; they do without one that takes too long. */
function storedReader(metrics: Metrics, database: Database): () => Promise<void> {
  let reading: Promise<void> | null = null;
  return async () => {
    reading ??= setStored(metrics, database).finally(() => {
      reading = null;
    });
    const isLate = await Promise.race([reading.then(() => false), sleep(STORED_WAIT_MS, true, { ref: false })]);
    if (isLate) for (const gauge of Object.values(metrics.stored)) gauge.remove();
  };
}

async function setStored({ stored }: Metrics, database: Database): Promise<void> {
  const queue = await readQueueState(database).catch(() => null);
  tell(stored.jobsWaiting, queue?.waiting);
  tell(stored.jobsOldestSeconds, queue?.oldestSeconds);
  tell(stored.jobsInHandSeconds, queue?.inHandSeconds);
  tell(stored.jobsGivenUp, queue?.givenUp);
  const budgets = await readBudgetTotals(database).catch(() => null);
  tell(stored.crmCompaniesShort, budgets?.short);
  tell(stored.crmTokensLimit, budgets?.limit);
  tell(stored.crmTokensRemaining, budgets?.remaining);
  const freshness = await readFreshnessOfAll(database).catch(() => null);
  tell(stored.oldestWatermarkSeconds, freshness?.oldestSeconds);
  tell(stored.firstListsSeconds, freshness?.firstSeconds);
  tell(stored.writesUnsettled, await countUnsettled(database).catch(() => null));
}

function tell(gauge: Gauge, value: number | null | undefined): void {
  if (typeof value === "number") gauge.set(value);
  else gauge.remove();
}
