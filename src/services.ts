import { LRUCache } from "lru-cache";
import { Meetings } from "./briefing/meetings";
import { ShownNotes } from "./briefing/notes";
import { Boundaries } from "./briefing/quiet/boundaries";
import { QuietSettings } from "./briefing/quiet/quiet-settings";
import { judgeByPresentRules, Rejudging } from "./briefing/quiet/rejudging";
import { SAY_RULES } from "./briefing/quiet/rules";
import { hangingOn, judgeChanged } from "./briefing/quiet/stored-silence";
import { Rematching } from "./briefing/rematch";
import { Snoozing } from "./briefing/snoozing";
import { AccessTokens, lookedAtBriefly } from "./connections/access-tokens";
import { Budget } from "./connections/budget";
import { Connecting } from "./connections/connecting";
import { Credentials } from "./connections/credentials";
import { CrmStops } from "./connections/crm-stops";
import { Disconnecting, Uninstalls } from "./connections/disconnecting";
import { FieldMappings } from "./connections/field-mappings";
import { Grants } from "./connections/grants";
import { KeepOut } from "./connections/keep-out";
import { CrmApi } from "./crm/api";
import { CrmHttp } from "./crm/http";
import { CrmOAuth } from "./crm/oauth";
import { CONNECTION_CHANGED, CRM_STOP_CHANGED, Notifications } from "./database/between-processes";
import type { Database } from "./database/database";
import type { Clock } from "./platform/clock";
import type { Config } from "./platform/config";
import { Keyring, type Secret } from "./platform/keyring";
import type { Logger } from "./platform/logger";
import type { Metrics } from "./platform/metrics";
import { SyncEngine } from "./sync/engine";
import type { Judging } from "./sync/lists";
import { Schedule } from "./sync/schedule";
import { FieldWrites } from "./writeback/fields";
import { NoteWrites } from "./writeback/notes";

interface ServiceParts {
  config: Config;
  database: Database;
  url: Secret;
  metrics: Metrics;
  logger: Logger;
  clock: Clock;
}

export type Services = ReturnType<typeof compose>;

/** Calls to the CRM: as whom they are made, and from which tokens they are paid. */
export function crmOf({ config, database, url, metrics, logger, clock }: ServiceParts, crmStops: CrmStops) {
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
  return { base, oauth, credentials, keyring, keepOut, budget, reservationOf, tokens, tokensOf, apiOf, close };
}

/** The composition root: the only place that makes services and knows them all. */
export function compose(parts: ServiceParts) {
  const { config, database, url, metrics, logger, clock } = parts;
  const notifications = new Notifications(url, logger, config.roles.has("worker") ? SAY_RULES : "");
  const crmStops = new CrmStops(database, logger);
  notifications.subscribe(CRM_STOP_CHANGED, null, () => crmStops.forget());
  // Told too where it listens anew, as after a failover.
  notifications.subscribe(CRM_STOP_CHANGED, null, database.forgetIds);
  const crm = crmOf(parts, crmStops);
  const { base, oauth, credentials, keyring, keepOut, budget, reservationOf, tokens, tokensOf, apiOf } = crm;
  const fieldMappings = new FieldMappings({ ...base, apiOf });

  const stopped = () => crmStops.refusal();
  const writing = { ...base, tokensOf, reservationOf, stopped };
  const noteWrites = new NoteWrites({ ...writing, keepOut, keyring });
  const fieldWrites = new FieldWrites({ ...writing, mappings: fieldMappings });

  const schedule = new Schedule({ ...base, ...config.sync, budget });
  const engine = new SyncEngine({
    ...base,
    tokensOf: (tenantId, copyId) =>
      lookedAtBriefly(tokensOf(tenantId, copyId), (forget) =>
        notifications.subscribe(CONNECTION_CHANGED, tenantId, forget),
      ),
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
    connecting: new Connecting({ ...base, oauth, credentials, keepOut, startsSync: schedule, stopped }),
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
    lastCopies: new LRUCache<number, number>({ maxSize: MOST_LAST_COPIES, sizeCalculation: () => 1 }),
    noteWrites,
    fieldWrites,
    close,
  };
}

/** Tenants of which a process remembers the copy that they had last. */
const MOST_LAST_COPIES = 100_000;

const judgingBy = (clock: Clock): Judging => ({
  hangingOn,
  judge: async (copy, resource, ids, others) => {
    if (resource !== "STAGES") return judgeChanged(copy, resource, ids, others, clock());
    // A stage may have most deals of a copy, more than one transaction should judge.
    if (ids.length > 0) await judgeByPresentRules(copy, clock());
  },
  byPresentRules: (copy) => judgeByPresentRules(copy, clock()),
});
