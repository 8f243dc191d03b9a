import { type Callers, createCallers } from "./auth/actor";
import { FETCH_EVERY_MS } from "./auth/key-set";
import { sweepAudit } from "./auth/policies";
import { REJUDGE } from "./briefing/quiet/rejudging";
import { sweepConsents } from "./connections/connecting";
import { PURGE_COPY, purgeCopy, sweepPurges } from "./connections/copies";
import { mayMissReceipts } from "./connections/crm-stops";
import { CONFIRM_GRANT } from "./connections/disconnecting";
import { sweepChanges } from "./connections/journal";
import { reachOf } from "./database/cluster";
import { migrate, openDatabase } from "./database/data-source";
import { Database } from "./database/database";
import { levelOf } from "./database/errors";
import { enqueueJob, handlerOf, RUNNERS, startJobRunner, sweepDead } from "./database/jobs";
import { entities } from "./entities";
import { aheadOf, type Clock, MINUTE_MS, SECOND_MS, systemClock } from "./platform/clock";
import type { Config } from "./platform/config";
import { ServiceError } from "./platform/errors";
import type { Secret } from "./platform/keyring";
import type { Logger } from "./platform/logger";
import { createMetrics, observedSql, startTracing } from "./platform/metrics";
import { startPeriodic } from "./platform/work";
import { buildGraphQLSchema, callStraight } from "./resolvers/graphql-schema";
import { createHttpServer } from "./server/http-server";
import { startMetricsServer } from "./server/serving";
import { compose, type Services } from "./services";
import { sweepRuns } from "./sync/run-history";
import { SYNC_RUN, SYNC_RUN_ENDED } from "./sync/runs";
import { SWEEP_MS, SYNC_DUE } from "./sync/schedule";
import { FIELD, NOTE } from "./writeback/receipts";

const PAGE_DIRECTORY = "dist/web";
const EXPLORER_DIRECTORY = "dist/explorer";

export interface App {
  /** Starts the configured roles. @returns the address of the API, or null where this process does not serve it. It may throw where it is stopped meanwhile. */
  start(): Promise<string | null>;
  /** Finishes requests and pages in hand, then ends. */
  stop(): Promise<void>;
}

type Stop = () => Promise<void>;

/** The ends of what has begun. What begins after they were taken is ended at once. */
class Ends {
  readonly #ends: Stop[] = [];
  readonly #taken = new AbortController();
  /** They were taken: nothing more is to begin. */
  readonly taken = this.#taken.signal;

  /** @throws StoppedError where they were taken */
  async add(end: Stop): Promise<void> {
    if (!this.taken.aborted) return void this.#ends.push(end);
    await end();
    throw new StoppedError("It was stopped while it started.");
  }

  take(): Stop[] {
    this.#taken.abort();
    return this.#ends.splice(0);
  }
}

class StoppedError extends ServiceError {
  readonly code = "STOPPED";
}

/** A process of the service: its roles, and the end of all that it has started. */
export function createApp(config: Config, logger: Logger, clock: Clock = systemClock): App {
  const ends = new Ends();
  const end = async () => {
    for (const step of ends.take().reverse()) await step();
  };
  let ended: Promise<void> | null = null;
  const stop = () => {
    ended ??= end();
    return ended;
  };
  const start = async () => {
    if (config.tracesEndpoint !== null) await ends.add(await startTracing(config.tracesEndpoint, logger));
    const { url, dataSource, close } = await openDatabase(config.databaseUrl, { entities, logger });
    await ends.add(close);
    await migrate(url, logger);
    const metrics = createMetrics();
    const reach = await reachOf(dataSource);
    const database = new Database(dataSource, { reach, observe: observedSql(metrics, logger) });
    const services = compose({ config, database, url, metrics, logger, clock });
    await ends.add(services.close);
    await services.notifications.start();
    // Before the first note: what is restored from a backup until then knows that it was on another server.
    await mayMissReceipts(database, clock());
    await ends.add(await startPeriodic({ clock: () => lookAtClock(services) }, LOOKS_MS, logger, levelOf));
    if (config.metricsPort !== null)
      await ends.add(await startMetricsServer(metrics, database, config.host, config.metricsPort));
    const roles = new Ends();
    const begun = startRoles(services, url, roles);
    await ends.add(async () => {
      // At once: a worker that went on while requests are finished would take jobs that it has no time left for.
      await Promise.all(roles.take().map((end) => end()));
      // One that is still beginning works with what is ended next.
      await begun.catch(() => undefined);
    });
    return begun;
  };
  const startRoles = async (services: Services, url: Secret, roles: Ends) => {
    if (config.roles.has("worker")) await startWorker(services, url, roles);
    if (!config.roles.has("api")) return null;
    const callers = createCallers(config.auth, (tenant) => services.database.idOf(tenant), logger);
    // No start waits for the identity provider.
    const keys = startPeriodic({ keys: () => callers.keepKeys() }, FETCH_EVERY_MS, logger, levelOf);
    await roles.add(async () => (await keys)());
    const api = await createApi(config, services, callers);
    await roles.add(() => api.close(config.drainMs));
    return api.listen(config.host, config.port);
  };
  return {
    start: () =>
      start().catch(async (error: unknown) => {
        await stop();
        throw error;
      }),
    stop,
  };
}

/** At this machine's clock. */
const LOOKS_MS = 10 * MINUTE_MS;
/** Of each of two machines: whether a note is absent is judged three minutes after it was sent, perhaps by another's clock. */
const CLOCK_OFF_MS = 10 * SECOND_MS;

/** Tokens and the receipts of writes go by this machine's clock, leases and jobs by the database's. */
async function lookAtClock({ database, logger, clock }: Services): Promise<void> {
  const { ms, give } = await aheadOf(clock, async () => {
    const [found] = await database.rows<{ now: Date }>("SELECT clock_timestamp() AS now", { now: "instant" });
    return found?.now;
  });
  if (Math.abs(ms) <= CLOCK_OFF_MS + give) return;
  logger.error(
    { aheadMs: -ms },
    "this machine's clock is not the database's: set both by NTP, or a note could be taken for absent too early",
  );
}

/** Jobs are told to end with all else, and already while the first round of sweeps is under way. */
async function startWorker(services: Services, url: Secret, roles: Ends): Promise<void> {
  const { logger } = services;
  for (const slots of RUNNERS) {
    const runner = await startJobRunner(url, jobsOf(services), logger, slots);
    await roles.add(() => runner.stop());
    // By itself: while another sweep takes its time, jobs in hand must not count as a killed process's.
    await roles.add(await startPeriodic({ lost: () => runner.freeLost() }, SWEEP_MS, logger, levelOf));
  }
  // Neither they nor the start wait for the CRM's answers to this one.
  const grants = startPeriodic({ grants: () => services.grants.sweep() }, SWEEP_MS, logger, levelOf);
  await roles.add(async () => (await grants)());
  await roles.add(await startPeriodic(sweepsOf(services), SWEEP_MS, logger, levelOf, roles.taken));
  await roles.add(services.boundaries.start());
}

/** The jobs that a worker takes from the queue. */
function jobsOf({ database, logger, ...services }: Services) {
  const { engine, schedule, noteWrites, fieldWrites, rejudging, rematching, fieldMappings, uninstalls } = services;
  return [
    handlerOf(SYNC_DUE, ({ tenantId }) => schedule.due(tenantId)),
    handlerOf(SYNC_RUN, (run, stop) => engine.run(run, stop)),
    handlerOf(SYNC_RUN_ENDED, async (run, stop) => {
      const { tenantId } = run;
      // What a sync brought may belong to meetings that were recorded before it.
      if (await rematching.run(tenantId, stop)) return enqueueJob(database.tenant(tenantId), SYNC_RUN_ENDED, run);
      await fieldMappings.refresh(tenantId, services.budget);
    }),
    handlerOf(CONFIRM_GRANT, (doubt) => uninstalls.confirm(doubt)),
    handlerOf(PURGE_COPY, (copy, stop) => purgeCopy(database, copy, stop, logger)),
    handlerOf(REJUDGE, (copy, stop) => rejudging.run(copy, stop)),
    handlerOf(NOTE.lookUpJob, (write) => noteWrites.lookUps.lookUp(write)),
    handlerOf(FIELD.lookUpJob, (write) => fieldWrites.lookUps.lookUp(write)),
  ];
}

/** Every few seconds a worker looks for work that is due by time alone, or that died with another worker. */
function sweepsOf({ database, logger, clock, ...services }: Services) {
  const { schedule, rejudging, noteWrites, fieldWrites } = services;
  return {
    schedule: () => schedule.sweep(),
    rejudging: () => rejudging.sweep(),
    purges: () => sweepPurges(database, logger),
    deadJobs: () => sweepDead(database),
    consents: () => sweepConsents(database, logger, clock()),
    audit: () => sweepAudit(database, logger, clock()),
    runs: () => sweepRuns(database, logger, clock()),
    journal: () => sweepChanges(database, logger, clock()),
    notes: () => noteWrites.lookUps.sweep(),
    fields: () => fieldWrites.lookUps.sweep(),
  };
}

function createApi(config: Config, services: Services, callers: Callers) {
  const { database, metrics, logger } = services;
  return createHttpServer({
    schema: callStraight(buildGraphQLSchema()),
    services,
    verifyActor: callers.verify,
    checkReady: async () => {
      callers.requireKeys();
      await database.answers();
    },
    introspection: config.introspection,
    compileQueriesAtUse: config.compileQueriesAtUse,
    metrics,
    allowedOrigins: [new URL(config.crm.redirectUrl).origin, ...config.allowedOrigins],
    trustedProxies: config.trustedProxies,
    uninstalls: { path: new URL(config.crm.redirectUrl).pathname, uninstalls: services.uninstalls },
    explorer: config.introspection && !config.production ? EXPLORER_DIRECTORY : null,
    page: config.page && { ...config.page, directory: PAGE_DIRECTORY, redirectUrl: config.crm.redirectUrl },
    logger,
  });
}
