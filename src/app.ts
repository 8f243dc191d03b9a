import { setTimeout as sleep } from "node:timers/promises";
import { createActorVerifier } from "./auth/actor";
import { sweepAudit } from "./auth/audit";
import { hangingOn, judgeByPresentRules, judgeChanged } from "./briefing/quiet/stored-silence";
import { Meetings } from "./briefing/record-meeting";
import { Rematching } from "./briefing/rematch";
import { ShownNotes } from "./briefing/shown-notes";
import { AccessTokens } from "./connections/access-tokens";
import { Budget } from "./connections/budget";
import { readBudgetTotals } from "./connections/company-ledger";
import { Connecting } from "./connections/connecting";
import { PURGE_JOB, type PurgeRef, purgeCopy, sweepPurges } from "./connections/copies";
import { Credentials, type Resealed, resealAll } from "./connections/credentials";
import { type CrmStop, CrmStops, OBEYED_WITHIN_MS, resumeCrm, stopCrm } from "./connections/crm-stops";
import { Disconnecting } from "./connections/disconnecting";
import { FieldMappings } from "./connections/field-mappings";
import { Grants } from "./connections/grants";
import { CrmApi } from "./crm/api";
import { CrmHttp } from "./crm/http";
import { CrmOAuth } from "./crm/oauth";
import { asApplication } from "./database/application-role";
import { createDataSource } from "./database/data-source";
import { Database, reachOf } from "./database/database";
import { startEmbeddedPostgres } from "./database/embedded/embedded-postgres";
import { type JobRunner, readQueueState, startJobRunner } from "./database/jobs";
import { connectDatabase, migrate } from "./database/migrate";
import { CRM_STOP_CHANGED, Notifications } from "./database/notifications";
import { observedSql } from "./database/session";
import { entities } from "./entities";
import { startChores } from "./platform/chores";
import { type Clock, systemClock } from "./platform/clock";
import type { Config } from "./platform/config";
import { Keyring } from "./platform/keyring";
import type { Logger } from "./platform/logger";
import { createMetrics, type Metrics } from "./platform/metrics";
import type { Secret } from "./platform/secret";
import { startTracing } from "./platform/tracing";
import { buildGraphQLSchema } from "./resolvers/graphql-schema";
import { createHttpServer, type HttpServer } from "./server/http-server";
import { startMetricsServer } from "./server/metrics-server";
import { SyncEngine } from "./sync/engine";
import { RUN_ENDED_JOB, type RunRef, SYNC_JOB } from "./sync/runs";
import { Schedule, SWEEP_MS, SYNC_DUE_JOB } from "./sync/schedule";
import { FieldLookUps } from "./writeback/fields/field-look-ups";
import { FIELD_LOOK_UP_JOB } from "./writeback/fields/field-receipts";
import { FieldWrites } from "./writeback/fields/field-writes";
import { NoteLookUps } from "./writeback/note-look-ups";
import { NOTE_LOOK_UP_JOB } from "./writeback/note-receipts";
import { NoteWrites } from "./writeback/note-writes";
import type { WriteRef } from "./writeback/unsettled";

const EMBEDDED_DIRECTORY = ".data/postgres";
const PAGE_DIRECTORY = "dist/web";

export interface App {
  /** Starts the configured roles. @returns the address of the API, or null where this process does not serve it */
  start(): Promise<string | null>;
  /** Finishes requests and pages in hand, then ends. */
  stop(): Promise<void>;
}

/** The composition root: the only place that makes services and knows them all. */
export function createApp(config: Config, logger: Logger, clock: Clock = systemClock): App {
  const stops: (() => Promise<void>)[] = [];
  const stop = async () => {
    for (const step of stops.splice(0).reverse()) await step();
  };
  const start = async () => {
    if (config.tracesEndpoint !== null) stops.push(startTracing(config.tracesEndpoint));
    const url = await asApplication(config.databaseUrl ?? (await embedded(stops)));
    const dataSource = createDataSource({ url, entities, logger });
    await connectDatabase(dataSource, url);
    stops.push(() => dataSource.destroy());
    await migrate(url);
    const metrics = createMetrics();
    const reach = await reachOf(dataSource);
    const database = new Database(dataSource, { reach, observe: observedSql(metrics, logger) });
    const parts = compose(config, database, metrics, url, logger, clock);
    stops.push(parts.close);
    await parts.notifications.start();
    if (config.metricsPort !== null) {
      const stored = {
        readQueue: () => readQueueState(parts.database),
        readBudgets: () => readBudgetTotals(parts.database),
      };
      stops.push(stopping(await startMetricsServer(parts.metrics, stored, config.host, config.metricsPort)));
    }
    if (config.roles.has("worker")) stops.push(stopping(await startWorker(parts, url, logger)));
    return config.roles.has("api") ? startApi(config, parts, logger, stops) : null;
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

const stopping = (part: { stop(): Promise<void> }) => () => part.stop();

async function embedded(stops: (() => Promise<void>)[]): Promise<Secret> {
  const server = await startEmbeddedPostgres({ directory: EMBEDDED_DIRECTORY, durable: true });
  stops.push(stopping(server));
  return server.url;
}

interface Parts {
  database: Database;
  budget: Budget;
  connecting: Connecting;
  crmStops: CrmStops;
  disconnecting: Disconnecting;
  meetings: Meetings;
  fieldMappings: FieldMappings;
  grants: Grants;
  rematching: Rematching;
  notifications: Notifications;
  metrics: Metrics;
  engine: SyncEngine;
  schedule: Schedule;
  noteWrites: NoteWrites;
  noteLookUps: NoteLookUps;
  shownNotes: ShownNotes;
  fieldWrites: FieldWrites;
  fieldLookUps: FieldLookUps;
  clock: Clock;
  logger: Logger;
  close(): Promise<void>;
}

function compose(
  config: Config,
  database: Database,
  metrics: Metrics,
  databaseUrl: Secret,
  logger: Logger,
  clock: Clock,
): Parts {
  const notifications = new Notifications(databaseUrl, logger);
  const crmStops = new CrmStops(database);
  notifications.subscribe(CRM_STOP_CHANGED, null, () => crmStops.forget());
  const http = new CrmHttp(metrics, logger, () => crmStops.requireNone());
  const oauth = new CrmOAuth(http, config.crm);
  const credentials = new Credentials(new Keyring(config.encryptionKeys));
  const crmBaseUrl = config.crm.baseUrl;
  const budget = new Budget({ database, clock, logger, share: config.budgetShare, metrics });
  const purseOf = (tenantId: number, copyId: number) => budget.purse(tenantId, copyId, "WRITES");
  const tokens = new AccessTokens({
    ...{ database, databaseUrl, http, crmBaseUrl, oauth, credentials, purseOf, clock, logger, metrics },
  });
  const apiOf = (tenantId: number, copyId: number) =>
    new CrmApi({ http, baseUrl: crmBaseUrl, tokens: tokens.of(tenantId, copyId), purse: purseOf(tenantId, copyId) });
  const tokensOf = (tenantId: number, copyId: number) => tokens.of(tenantId, copyId);
  const writeback = {
    ...{ database, http, crmBaseUrl, tokensOf, purseOf, clock, logger, metrics },
    stopped: () => crmStops.refusal(),
  };
  const noteWrites = new NoteWrites(writeback);
  const noteLookUps = new NoteLookUps(writeback);
  const shownNotes = new ShownNotes(database, logger);
  const mappings = new FieldMappings({ database, apiOf, clock, logger });
  const fieldWrites = new FieldWrites({ ...writeback, mappings });
  const schedule = new Schedule({ database, budget, clock, logger, ...config.sync });
  return {
    database,
    budget,
    clock,
    crmStops,
    logger,
    notifications,
    metrics,
    schedule,
    meetings: new Meetings(database, clock, logger),
    fieldMappings: mappings,
    grants: new Grants({ database, tokens, clock, logger }),
    rematching: new Rematching(database, clock, logger),
    disconnecting: new Disconnecting({ database, endsSync: schedule, clock, logger }),
    connecting: new Connecting({ database, http, oauth, credentials, crmBaseUrl, startsSync: schedule, clock, logger }),
    engine: new SyncEngine({
      ...{ database, http, crmBaseUrl, clock, logger, metrics },
      concurrency: config.crm.concurrency,
      intervalMs: config.sync.intervalMs,
      budget,
      settling: { settleNotes: (copy, notes) => noteLookUps.settleSynced(copy, notes) },
      judging: {
        hangingOn,
        judge: (copy, resource, ids, others) => judgeChanged(copy, resource, ids, others, clock()),
        byPresentRules: (copy) => judgeByPresentRules(copy, clock()),
      },
      planNext: (scope, copyId, failure) => schedule.planNext(scope, copyId, failure),
      tokensOf,
    }),
    noteWrites,
    shownNotes,
    noteLookUps,
    fieldWrites,
    fieldLookUps: new FieldLookUps({ ...writeback, mappings }),
    close: async () => {
      await notifications.stop();
      await noteWrites.close();
      await shownNotes.close();
      await fieldWrites.close();
      await tokens.close();
      await budget.close();
      await http.close();
    },
  };
}

async function startWorker(
  { database, clock, engine, rematching, schedule, grants, fieldMappings, noteLookUps, fieldLookUps }: Parts,
  url: Secret,
  logger: Logger,
): Promise<JobRunner> {
  const jobs = {
    [SYNC_JOB]: (payload: unknown, stop: AbortSignal) => engine.run(payload as RunRef, stop),
    [SYNC_DUE_JOB]: (payload: unknown) => schedule.due((payload as { tenantId: number }).tenantId),
    [PURGE_JOB]: (payload: unknown, stop: AbortSignal) => purgeCopy(database, payload as PurgeRef, stop, logger),
    [NOTE_LOOK_UP_JOB]: (payload: unknown) => noteLookUps.lookUp(payload as WriteRef),
    [FIELD_LOOK_UP_JOB]: (payload: unknown) => fieldLookUps.lookUp(payload as WriteRef),
    // What a sync brought may belong to meetings that were recorded before it.
    [RUN_ENDED_JOB]: async (payload: unknown, stop: AbortSignal) => {
      const { tenantId } = payload as RunRef;
      await rematching.run(tenantId, stop);
      await fieldMappings.refresh(tenantId);
    },
  };
  const chores = {
    schedule: () => schedule.sweep(),
    grants: () => grants.sweep(),
    purges: () => sweepPurges(database, logger),
    audit: () => sweepAudit(database, logger, clock()),
    notes: () => noteLookUps.sweep(),
    fields: () => fieldLookUps.sweep(),
  };
  const runner = await startJobRunner(url, jobs, logger);
  const endChores = await startChores(chores, SWEEP_MS, logger);
  return {
    async stop() {
      await Promise.all([endChores(), runner.stop()]);
    },
  };
}

async function startApi(
  config: Config,
  services: Parts,
  logger: Logger,
  stops: (() => Promise<void>)[],
): Promise<string> {
  const server: HttpServer = await createHttpServer({
    schema: buildGraphQLSchema(),
    services,
    verifyActor: createActorVerifier(config.auth, (tenant) => services.database.idOf(tenant), logger),
    checkReady: () => services.database.answers(),
    introspection: config.introspection,
    compileQueriesAtUse: config.compileQueriesAtUse,
    metrics: services.metrics,
    allowedOrigins: [new URL(config.crm.redirectUrl).origin],
    trustedProxies: config.trustedProxies,
    page: config.page && { ...config.page, directory: PAGE_DIRECTORY, redirectUrl: config.crm.redirectUrl },
    logger,
  });
  stops.push(() => server.close());
  return server.listen(config.host, config.port);
}

/** `npm run keys:rotate`: seals every credential under the first of ENCRYPTION_KEYS; workers may go on meanwhile. */
export function rotateKeys(config: Config, logger: Logger): Promise<Resealed> {
  const credentials = new Credentials(new Keyring(config.encryptionKeys));
  return withDatabase(config, logger, (database) => resealAll(database, credentials, systemClock, logger));
}

/**
 * `npm run crm:stop`: when it resolves, every process that runs begins no further call to the CRM.
 * @returns the stop that holds, which may be an earlier one
 */
export function stopCrmCalls(config: Config, logger: Logger, reason: string): Promise<CrmStop> {
  return withDatabase(config, logger, async (database) => {
    const stop = await stopCrm(database, reason, systemClock());
    await sleep(OBEYED_WITHIN_MS);
    return stop;
  });
}

/** `npm run crm:resume`. @returns whether calls were stopped */
export function resumeCrmCalls(config: Config, logger: Logger): Promise<boolean> {
  return withDatabase(config, logger, (database) => resumeCrm(database, systemClock()));
}

/** For an operator's command: the tenant database without a service behind it. */
async function withDatabase<T>(config: Config, logger: Logger, work: (database: Database) => Promise<T>): Promise<T> {
  const stops: (() => Promise<void>)[] = [];
  try {
    const url = await asApplication(config.databaseUrl ?? (await embedded(stops)));
    const dataSource = createDataSource({ url, entities, logger });
    await connectDatabase(dataSource, url);
    stops.push(() => dataSource.destroy());
    return await work(new Database(dataSource, { reach: await reachOf(dataSource) }));
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}
