import { createHash } from "node:crypto";
import type { Actor } from "../../auth/actor";
import { type PolicyRefusal, recordAudit, refusalToSetQuiet, refusedByPolicy } from "../../auth/policies";
import { lockConnection, NOT_CONNECTED, readConnection } from "../../connections/connection";
import { holdCopyToJudge } from "../../connections/copies";
import type { CopyScope, Database, TenantScope } from "../../database/database";
import { SyncedCopyRow } from "../../entities/connection";
import { PipelineRow, StageRow } from "../../entities/crm-company";
import { JudgedCopyRow } from "../../entities/silence";
import { type OwnThreshold, QuietSettingsRow } from "../../entities/tenant";
import type { Clock } from "../../platform/clock";
import { accepted, type Outcome, type Refused, refused } from "../../platform/errors";
import type { Logger } from "../../platform/logger";
import { MOST_OF_SETUP, readSetup } from "../records";
import { type Preview, previewQuiet } from "./preview";
import { readRotting } from "./read-quiet";
import { judgeByPresentRules, wantedBy } from "./rejudging";
import { NO_WISHES, STANDARD, type Wishes } from "./rules";

/** Settings as they are asked for. A pipeline or stage that no id of this copy names is null. */
export interface WishedSettings extends Omit<Wishes, "thresholds"> {
  thresholds: readonly (Omit<OwnThreshold, "crmId"> & { crmId: number | null })[];
}

export type QuietSettingsRefusal = PolicyRefusal | "NOT_CONNECTED" | "INVALID_INPUT" | "CHANGED_MEANWHILE";

const CHANGED_MEANWHILE = refused(
  "CHANGED_MEANWHILE",
  "Other settings have been saved since you read these, so yours were not. Read the settings again and make your change there.",
  "version",
);

/** What a save was made from: the copy whose ids it has, and the version that was read; null: whatever is stored. */
interface Base {
  copyId: number | null;
  version: string | null;
}

/** A tenant's settings, as they are shown. */
export interface ShownSettings extends Omit<Wishes, "timeZone"> {
  version: string;
  timeZone: string;
  timeZoneIsSet: boolean;
  rejudging: { done: number; total: number } | null;
}

/** How a tenant wants silence to be judged (decision 0079). */
export class QuietSettings {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly logger: Logger,
  ) {}

  /**
   * Replaces all settings, where they are those of the base. Saving what is there already changes nothing and succeeds on
   * whatever base: nobody's change is lost, and a save whose answer was lost may be sent again.
   */
  async set(
    actor: Actor,
    { copyId, version }: Base,
    input: WishedSettings,
  ): Promise<Outcome<null, QuietSettingsRefusal>> {
    const policy = await this.#policy(actor, "setQuietSettings");
    if (policy) return policy;
    const { tenantId } = actor;
    return this.database.tenant(tenantId).transaction(async (scope) => {
      const { bound, ...present } = await lockConnection(scope);
      // Connected to another copy meanwhile, the ids mean nothing.
      if (!bound || copyId === null || present.copyId !== copyId) return NOT_CONNECTED;
      const copy = { ...scope, copyId };
      const wishes = await known(copy, input);
      if (!wishes.ok) return wishes;
      const now = this.clock();
      const before = await scope.typed((orm) => orm.findOneBy(QuietSettingsRow, { tenantId }));
      const after = { tenantId, crmCompanyId: bound.companyId, ...wishes.value };
      const stored = versionOf(before);
      if (stored === versionOf(after)) return accepted(null);
      // The connection is locked: of two that save from one version the second reads what the first has saved.
      if (version !== null && version !== stored) return CHANGED_MEANWHILE;
      const by = { setBy: actor.userId, setAt: now };
      await scope.typed((orm) => orm.upsert(QuietSettingsRow, { ...after, ...by }, ["tenantId"]));
      const [was, became] = [before && inWords(before), inWords(after)];
      await recordAudit(scope, this.logger, { action: "QUIET_SETTINGS_SET", actor, at: now, was, became });
      if (await holdCopyToJudge(scope, copyId)) await judgeByPresentRules(copy, now);
      return accepted(null);
    });
  }

  /** Shows how these settings would change the board as it is now. Nothing is stored. */
  async preview(
    actor: Actor,
    copy: CopyScope | null,
    input: WishedSettings,
  ): Promise<Outcome<Preview, QuietSettingsRefusal>> {
    const policy = await this.#policy(actor, "previewQuietSettings");
    if (policy) return policy;
    const present = copy && (await copy.typed((orm) => orm.findOneBy(SyncedCopyRow, ofCopy(copy))));
    if (!copy || !present) return NOT_CONNECTED;
    const wishes = await known(copy, input);
    if (!wishes.ok) return wishes;
    const { crmCompanyId } = present;
    const proposed = wantedBy({ ...wishes.value, crmCompanyId }, present, await readRotting(copy));
    return accepted(await previewQuiet(copy, proposed, this.clock()));
  }

  #policy(actor: Actor, operation: string): Promise<Refused<PolicyRefusal> | null> {
    const policy = refusalToSetQuiet(actor);
    const message = "Only an owner or admin of your organization may set when a deal is quiet. Ask one of them.";
    const { database, logger, clock } = this;
    return refusedByPolicy({ database, logger, clock }, actor, operation, policy && refused(policy, message));
  }
}

/** For whoever asks later what was set. */
const inWords = ({ timeZone, businessDays, twoWayTypes, thresholds }: Wishes): string =>
  JSON.stringify({ timeZone, businessDays, twoWayActivityTypes: twoWayTypes, thresholds });

/** What is stored by a name, the same for the same wishes. Whose pipelines and stages are meant is a part where some are named. */
function versionOf(settings: (Wishes & Pick<QuietSettingsRow, "crmCompanyId">) | null): string {
  const { timeZone, businessDays, twoWayTypes, thresholds } = settings ?? NO_WISHES;
  const own = thresholds.map(({ scope, crmId, code, days }) => [scope, crmId, code, days]);
  const company = thresholds.some(({ scope }) => scope !== "ALL") ? settings?.crmCompanyId : null;
  const content = JSON.stringify([timeZone, businessDays, twoWayTypes, own, company]);
  return createHash("sha256").update(content).digest("base64url");
}

const ofCopy = ({ tenantId, copyId }: CopyScope) => ({ tenantId, id: copyId });

/** The settings, once each pipeline and stage is known to be one of the copy's; in an order of their own. */
async function known(copy: CopyScope, input: WishedSettings): Promise<Outcome<Wishes, "INVALID_INPUT">> {
  const thresholds: OwnThreshold[] = [];
  const shown = await shownIn(copy, input.thresholds);
  for (const [index, { scope, crmId, code, days }] of input.thresholds.entries()) {
    if (crmId === null || !shown.has(`${scope} ${crmId}`)) {
      const [field, list] =
        scope === "STAGE" ? ["stageId", "connection.pipelines.stages"] : ["pipelineId", "connection.pipelines"];
      const path = `thresholds.${index}.${field}`;
      return refused("INVALID_INPUT", `${path} names none that the CRM shows. Take an id from ${list}.`, path);
    }
    thresholds.push({ scope, crmId, code, days });
  }
  thresholds.sort((a, b) => a.scope.localeCompare(b.scope) || a.crmId - b.crmId || a.code.localeCompare(b.code));
  return accepted({ ...input, thresholds });
}

type Scoped = Pick<WishedSettings["thresholds"][number], "scope" | "crmId">;

/** The scopes that are there: `SCOPE id`. */
async function shownIn(copy: CopyScope, thresholds: readonly Scoped[]): Promise<Set<string>> {
  const named = (wanted: OwnThreshold["scope"]) =>
    thresholds.flatMap(({ scope, crmId }) => (scope === wanted && crmId !== null ? [crmId] : []));
  const [pipelines, stages] = [named("PIPELINE"), named("STAGE")];
  const found = new Set(["ALL 0"]);
  for (const { crmId } of pipelines.length > 0 ? await readSetup(copy, PipelineRow, pipelines) : [])
    found.add(`PIPELINE ${crmId}`);
  for (const { crmId } of stages.length > 0 ? await readSetup(copy, StageRow, stages) : []) found.add(`STAGE ${crmId}`);
  return found;
}

/** A table of millions is not counted for a choice of some tens. */
const NEWEST_ACTIVITIES = 10_000;

/** The types of the activities that were made last, the commonest first. */
export function readActivityTypes({ tenantId, copyId, rows }: CopyScope) {
  return rows<{ key: string; count: number }>(
    `SELECT type AS key, count(*)::int AS count FROM (
       SELECT a.type FROM activity a WHERE a.tenant_id = $1 AND a.copy_id = $2 ORDER BY a.crm_id DESC LIMIT ${NEWEST_ACTIVITIES}
     ) newest WHERE type <> '' GROUP BY type ORDER BY count(*) DESC, type LIMIT ${MOST_OF_SETUP}`,
    [tenantId, copyId],
    { key: "text", count: "number" },
  );
}

/** Thresholds of what the CRM shows no more are left out: nobody could name them. */
export async function readQuietSettings(scope: TenantScope): Promise<ShownSettings> {
  const { tenantId, typed } = scope;
  const copyId = (await readConnection(scope))?.copyId ?? null;
  const settings = await typed((orm) => orm.findOneBy(QuietSettingsRow, { tenantId }));
  const found = copyId && (await typed((orm) => orm.findOneBy(SyncedCopyRow, { tenantId, id: copyId })));
  const { thresholds: own, twoWayTypes, businessDays, timeZone: ownZone } = settings ?? NO_WISHES;
  const known = { version: versionOf(settings), twoWayTypes, businessDays, timeZoneIsSet: ownZone !== null };
  if (!found || !copyId) {
    const thresholds = own.filter((threshold) => threshold.scope === "ALL");
    return { ...known, thresholds, timeZone: ownZone ?? STANDARD.timeZone, rejudging: null };
  }
  const copy = { ...scope, copyId };
  const { thresholds, timeZone } = wantedBy(settings, found, {});
  const shown = await shownIn(copy, thresholds);
  const judged = await typed((orm) => orm.findOneBy(JudgedCopyRow, { tenantId, copyId }));
  const rejudging = judged?.coming ? { done: judged.comingDone, total: judged.comingTotal } : null;
  return {
    ...known,
    thresholds: thresholds.filter((threshold) => shown.has(`${threshold.scope} ${threshold.crmId}`)),
    timeZone,
    rejudging,
  };
}
