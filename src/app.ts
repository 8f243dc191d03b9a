import { createActorVerifier } from "./auth/actor";
import { sweepAudit } from "./auth/policies";
import { Meetings } from "./briefing/meetings";
import { ShownNotes } from "./briefing/notes";
import { Boundaries } from "./briefing/quiet/boundaries";
import { QuietSettings } from "./briefing/quiet/quiet-settings";
import { judgeByPresentRules, REJUDGE, Rejudging } from "./briefing/quiet/rejudging";
import { hangingOn, judgeChanged } from "./briefing/quiet/stored-silence";
import { Rematching } from "./briefing/rematch";
import { Snoozing } from "./briefing/snoozing";
import { AccessTokens } from "./connections/access-tokens";
import { Budget } from "./connections/budget";
import { Connecting, Disconnecting } from "./connections/connecting";
import { PURGE_COPY, purgeCopy, sweepPurges } from "./connections/copies";
import { Credentials } from "./connections/credentials";
import { CrmStops } from "./connections/crm-stops";
import { FieldMappings } from "./connections/field-mappings";
import { Grants } from "./connections/grants";
import { sweepChanges } from "./connections/journal";
import { KeepOut } from "./connections/keep-out";
import { CONFIRM_GRANT, Uninstalls } from "./connections/uninstalls";
import { CrmApi } from "./crm/api";
import { CrmHttp } from "./crm/http";
import { CrmOAuth } from "./crm/oauth";
import { CRM_STOP_CHANGED, Notifications } from "./database/between-processes";
import { migrate, openDatabase } from "./database/data-source";
import { Database, reachOf } from "./database/database";
import { handlerOf, startJobRunner } from "./database/jobs";
import { observedSql } from "./database/session";
import { entities } from "./entities";
import { type Clock, systemClock } from "./platform/clock";
import type { Config } from "./platform/config";
import { Keyring, type Secret } from "./platform/keyring";
import type { Logger } from "./platform/logger";
import { createMetrics, type Metrics, startTracing } from "./platform/metrics";
import { startPeriodic } from "./platform/work";
import { buildGraphQLSchema } from "./resolvers/graphql-schema";
import { createHttpServer } from "./server/http-server";
import { startMetricsServer } from "./server/serving";
import { SyncEngine } from "./sync/engine";
import type { Judging } from "./sync/lists";
import { SYNC_RUN, SYNC_RUN_ENDED } from "./sync/runs";
import { Schedule, SWEEP_MS, SYNC_DUE } from "./sync/schedule";
import { FieldWrites } from "./writeback/fields";
import { NoteWrites } from "./writeback/notes";
import { FIELD, NOTE } from "./writeback/receipts";

const PAGE_DIRECTORY = "dist/web";
const EXPLORER_DIRECTORY = "dist/explorer";

export interface App {
  /** Starts the configured roles. @returns the address of the API, or null where this process does not serve it */
  start(): Promise<string | null>;
  /** Finishes requests and pages in hand, then ends. */
  stop(): Promise<void>;
}

type Stop = () => Promise<void>;

/** The composition root: the only place that makes services and knows them all. */
export function createApp(config: Config, logger: Logger, clock: Clock = systemClock): App {
  const stops: Stop[] = [];
  const stop = async () => {
    for (const step of stops.splice(0).reverse()) await step();
  };
  const start = async () => {
    if (config.tracesEndpoint !== null) stops.push(startTracing(config.tracesEndpoint));
    const { url, dataSource, close } = await openDatabase(config.databaseUrl, { entities, logger });
    stops.push(close);
    await migrate(url);
    const metrics = createMetrics();
    const reach = await reachOf(dataSource);
    const database = new Database(dataSource, { reach, observe: observedSql(metrics, logger) });
    const services = compose({ config, database, url, metrics, logger, clock });
    stops.push(services.close);
    await services.notifications.start();
    if (config.metricsPort !== null) stops.push(await startMetrics(services, config.host, config.metricsPort));
    if (config.roles.has("worker")) await startWorker(services, url, stops);
    if (!config.roles.has("api")) return null;
    const api = await createApi(config, services);
    stops.push(() => api.close());
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

interface AppParts {
  config: Config;
  database: Database;
  url: Secret;
  metrics: Metrics;
  logger: Logger;
  clock: Clock;
}

type Services = ReturnType<typeof compose>;

/** Calls to the CRM: as whom they are made, and from which tokens they are paid. */
export function crmOf({ config, database, url, metrics, logger, clock }: AppParts, crmStops: CrmStops) {
  const http = new CrmHttp(metrics, logger, () => crmStops.requireNone());
  const oauth = new CrmOAuth(http, config.crm);
  const keyring = new Keyring(config.encryptionKeys);
  const credentials = new Credentials(keyring);
  const crmBaseUrl = config.crm.baseUrl;
  const base = { database, http, crmBaseUrl, clock, logger, metrics };

  const budget = new Budget({ ...base, share: config.budgetShare });
  const reservationOf = (tenantId: number, copyId: number) => budget.reservation(tenantId, copyId, "WRITES");
  const tokens = new AccessTokens({ ...base, databaseUrl: url, oauth, credentials, reservationOf });
  const tokensOf = (tenantId: number, copyId: number) => tokens.of(tenantId, copyId);
  const apiOf = (tenantId: number, copyId: number) =>
    new CrmApi({
      http,
      baseUrl: crmBaseUrl,
      tokens: tokensOf(tenantId, copyId),
      reservation: reservationOf(tenantId, copyId),
    });
  const close = async () => {
    await tokens.close();
    await budget.close();
    await http.close();
  };
  const keepOut = new KeepOut(keyring);
  return { base, oauth, credentials, keepOut, budget, reservationOf, tokens, tokensOf, apiOf, close };
}

function compose(parts: AppParts) {
  const { config, database, url, metrics, logger, clock } = parts;
  const notifications = new Notifications(url, logger);
  const crmStops = new CrmStops(database);
  notifications.subscribe(CRM_STOP_CHANGED, null, () => crmStops.forget());
  const crm = crmOf(parts, crmStops);
  const { base, oauth, credentials, keepOut, budget, reservationOf, tokens, tokensOf, apiOf } = crm;
  const fieldMappings = new FieldMappings({ ...base, apiOf });

  const writing = { ...base, tokensOf, reservationOf, stopped: () => crmStops.refusal() };
  const noteWrites = new NoteWrites(writing);
  const fieldWrites = new FieldWrites({ ...writing, mappings: fieldMappings });

  const schedule = new Schedule({ ...base, ...config.sync, budget });
  const engine = new SyncEngine({
    ...base,
    tokensOf,
    budget,
    concurrency: config.crm.concurrency,
    intervalMs: config.sync.intervalMs,
    keepOut,
    settling: { settleNotes: (copy, notes) => noteWrites.settleSynced(copy, notes) },
    judging: judgingBy(clock),
    planNext: (scope, copyId, failure) => schedule.planNext(scope, copyId, failure),
  });

  const shownNotes = new ShownNotes(database, logger);
  const close = async () => {
    await notifications.stop();
    await noteWrites.close();
    await shownNotes.close();
    await fieldWrites.close();
    await crm.close();
  };
  return {
    database,
    metrics,
    logger,
    clock,
    notifications,
    crmStops,
    budget,
    connecting: new Connecting({ ...base, oauth, credentials, startsSync: schedule }),
    disconnecting: new Disconnecting({ ...base, endsSync: schedule }),
    grants: new Grants({ ...base, tokens }),
    uninstalls: new Uninstalls({ ...base, credentials, tokens, crm: config.crm }),
    fieldMappings,
    schedule,
    engine,
    meetings: new Meetings(database, keepOut, clock, logger),
    snoozing: new Snoozing(database, clock, logger),
    quietSettings: new QuietSettings(database, clock, logger),
    rejudging: new Rejudging(database, clock, logger),
    boundaries: new Boundaries(database, clock, logger),
    rematching: new Rematching(database, clock, logger),
    shownNotes,
    noteWrites,
    fieldWrites,
    close,
  };
}

const judgingBy = (clock: Clock): Judging => ({
  hangingOn,
  judge: (copy, resource, ids, others) => judgeChanged(copy, resource, ids, others, clock()),
  byPresentRules: (copy) => judgeByPresentRules(copy, clock()),
});

function startMetrics({ database, metrics }: Services, host: string, port: number): Promise<Stop> {
  return startMetricsServer(metrics, database, host, port);
}

/** Jobs are told to end with all else, and already while the first round of sweeps is under way. */
async function startWorker(services: Services, url: Secret, stops: Stop[]): Promise<void> {
  const runner = await startJobRunner(url, jobsOf(services), services.logger);
  const parts: Stop[] = [() => runner.stop()];
  stops.push(async () => {
    await Promise.all(parts.map((end) => end()));
  });
  parts.push(await startPeriodic(sweepsOf(services), SWEEP_MS, services.logger));
  parts.push(services.boundaries.start());
}

/** The jobs that a worker takes from the queue. */
function jobsOf({ database, logger, ...services }: Services) {
  const { engine, schedule, noteWrites, fieldWrites, rejudging, rematching, fieldMappings, uninstalls } = services;
  return [
    handlerOf(SYNC_DUE, ({ tenantId }) => schedule.due(tenantId)),
    handlerOf(SYNC_RUN, (run, stop) => engine.run(run, stop)),
    handlerOf(SYNC_RUN_ENDED, async ({ tenantId }, stop) => {
      // What a sync brought may belong to meetings that were recorded before it.
      await rematching.run(tenantId, stop);
      await fieldMappings.refresh(tenantId);
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
  const { schedule, grants, rejudging, noteWrites, fieldWrites } = services;
  return {
    schedule: () => schedule.sweep(),
    grants: () => grants.sweep(),
    rejudging: () => rejudging.sweep(),
    purges: () => sweepPurges(database, logger),
    audit: () => sweepAudit(database, logger, clock()),
    journal: () => sweepChanges(database, logger, clock()),
    notes: () => noteWrites.lookUps.sweep(),
    fields: () => fieldWrites.lookUps.sweep(),
  };
}

function createApi(config: Config, services: Services) {
  const { database, metrics, logger } = services;
  return createHttpServer({
    schema: buildGraphQLSchema(),
    services,
    verifyActor: createActorVerifier(config.auth, (tenant) => database.idOf(tenant), logger),
    checkReady: () => database.answers(),
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
