import { setTimeout as sleep } from "node:timers/promises";
import type { LogEntry, Simulator } from "../../simulator";
import { recordsOf } from "../../simulator/model/company";
import { Budget } from "../../src/connections/budget";
import { DAY_MS, MINUTE_MS } from "../../src/platform/clock";
import type { Config } from "../../src/platform/config";
import { createLogger } from "../../src/platform/logger";
import { Schedule } from "../../src/sync/schedule";
import { copiedIds, copiedParticipants, visibleIds, visibleParticipants } from "./copy";
import type { TestDatabase } from "./database";
import type { Service } from "./service";
import { connect, dataOf, type EndedRun, syncEnds } from "./stories";
import { World, type WorldOptions } from "./world";

/** The CRM's lists that a sync reads page by page, or whole, with what a story does to their records. */
export const LISTS = {
  USERS: { path: /^\/api\/v1\/users$/, table: "crm_user", entity: "user" },
  PIPELINES: { path: /^\/api\/v2\/pipelines$/, table: "pipeline", entity: "pipeline" },
  STAGES: { path: /^\/api\/v2\/stages$/, table: "stage", entity: "stage" },
  ORGANIZATIONS: { path: /^\/api\/v2\/organizations$/, table: "organization", entity: "organization" },
  PERSONS: { path: /^\/api\/v2\/persons$/, table: "person", entity: "person" },
  DEALS: { path: /^\/api\/v2\/deals$/, table: "deal", entity: "deal" },
  ACTIVITIES: { path: /^\/api\/v2\/activities$/, table: "activity", entity: "activity" },
  NOTES: { path: /^\/api\/v1\/notes$/, table: "note", entity: "note" },
} as const;
export type ListName = keyof typeof LISTS;
export const CHANGING = ["ORGANIZATIONS", "PERSONS", "DEALS", "ACTIVITIES", "NOTES"] as const;
export type Changing = (typeof CHANGING)[number];

export type Query = Readonly<Record<string, string>>;
/** The CRM's cursors, and the offsets of version 1. */
export const isFirstPage = (query: Query): boolean =>
  query.cursor === undefined && (query.start === undefined || query.start === "0");

type As = { tenant: string };

/** Whatever a run does: a day's tokens do not matter here. */
const PLENTY = 10_000_000;
const POLL_MS = 15;
const RUN_ENDS_WITHIN_MS = 90_000;
const QUEUED = `SELECT 1 FROM sync_run WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)
  AND state IN ('QUEUED', 'RUNNING')`;
const REQUEST = `mutation ($kind: SyncKind) { requestSync(kind: $kind) {
  ... on SyncRequested { run { kind } } ... on Refusal { code message } } }`;
const TEXTS = `SELECT t.kind, t.crm_id AS id, t.text FROM (
    SELECT tenant_id, copy_id, 'deal' AS kind, crm_id, title AS text FROM deal
    UNION ALL SELECT tenant_id, copy_id, 'organization', crm_id, name FROM organization
    UNION ALL SELECT tenant_id, copy_id, 'person', crm_id, name FROM person
    UNION ALL SELECT tenant_id, copy_id, 'activity', crm_id, subject FROM activity
  ) t JOIN connection c USING (tenant_id, copy_id)
  WHERE c.tenant_id = (SELECT id FROM tenant WHERE external_id = $1) ORDER BY 1, 2`;

/** A company, a service whose API has the true time, and a worker with a clock of the story's own. */
export class SyncWorld {
  /** Of both sides, so that minutes pass without anybody's waiting; later than everything that made the company. */
  static async start(options: WorldOptions = {}, worker: Partial<Config> = {}): Promise<SyncWorld> {
    const time = { aheadMs: 60_000, ours: () => new Date(Date.now() + time.aheadMs) };
    const now = () => new Date(Date.now() + time.aheadMs);
    const world = await World.start({ deals: 700, seed: 3, dailyTokens: PLENTY, ...options, clock: now });
    const { simulator } = world;
    // Participants are another story: a few deals have some.
    for (const id of [...simulator.company.deals.keys()].slice(20)) simulator.control.setParticipants(id, []);
    time.aheadMs += 10 * 60_000;
    const sync = { intervalMs: 0, reconcileIntervalMs: 0 };
    const api = await world.startService({ roles: ["api"], config: { sync } });
    await world.startService({ config: { clock: () => time.ours(), sync, ...worker } });
    return new SyncWorld(world, api, time);
  }

  private constructor(
    private readonly world: World,
    readonly api: Service,
    /** `ours` is the worker's clock. */
    readonly time: { aheadMs: number; ours: () => Date },
  ) {}

  stop(): Promise<void> {
    return this.world.stop();
  }

  get simulator(): Simulator {
    return this.world.simulator;
  }

  get database(): TestDatabase {
    return this.world.database;
  }

  get userId(): number {
    return this.simulator.company.stories.singleDeal.ownerId;
  }

  passMinutes(minutes: number): void {
    this.time.aheadMs += minutes * 60_000;
  }

  /** Connects and waits for the end of the first run. */
  async connect(as: As): Promise<EndedRun> {
    await connect(this.api, this.simulator, as);
    return this.runEnds(as);
  }

  async request(as: As, kind = "INCREMENTAL"): Promise<void> {
    const { requestSync } = dataOf(await this.api.ask<{ requestSync: object }>(REQUEST, { kind }, as));
    expect(requestSync).toEqual({ run: { kind: expect.any(String) } });
  }

  async sync(as: As, kind = "INCREMENTAL"): Promise<EndedRun> {
    await this.request(as, kind);
    return this.runEnds(as);
  }

  async runEnds(as: As): Promise<EndedRun> {
    for (const began = Date.now(); await this.isOpen(as); await sleep(POLL_MS)) {
      if (Date.now() - began > RUN_ENDS_WITHIN_MS) throw new Error(`the run of ${as.tenant} does not end`);
    }
    return syncEnds(this.api, as);
  }

  /** What is due is read, as by a schedule of such an interval. */
  async due(as: As, intervalMinutes: number, reconcileIntervalMs = 30 * DAY_MS): Promise<void> {
    const [database, clock, logger] = [this.database.opened(), this.time.ours, createLogger("silent")];
    const budget = new Budget({ database, clock, logger, share: 0.25 });
    const intervals = { intervalMs: intervalMinutes * MINUTE_MS, reconcileIntervalMs };
    const schedule = new Schedule({ database, budget, clock, logger, ...intervals });
    await schedule.due(await this.database.tenantId(as.tenant));
    await this.runEnds(as);
  }

  async isOpen({ tenant }: As): Promise<boolean> {
    return (await this.database.query(QUEUED, [tenant])).length > 0;
  }

  /** Every record of a list changes, by its update time alone. */
  touch(list: Changing): void {
    const { entity } = LISTS[list];
    for (const id of recordsOf(this.simulator.company, entity).keys()) this.simulator.control.change(entity, id, {});
  }

  /** Visible records of a list, at least so many: more than a page. */
  fill(list: Changing, atLeast: number): void {
    const seen = visibleIds(this.simulator, this.userId)[LISTS[list].table]?.length ?? 0;
    for (let count = seen; count < atLeast; count += 1) this.simulator.control.add(LISTS[list].entity);
  }

  /** Before a story: nothing fails, nothing was asked, and what was read last is ten minutes old. */
  beginAnew(): void {
    this.world.beginAnew();
    this.passMinutes(10);
  }

  asked(list: ListName): LogEntry[] {
    return this.simulator.log.of("GET", LISTS[list].path);
  }

  /** The copy has what the CRM shows: ids, texts and participants; of all lists, or but for one. */
  async isExact({ tenant }: As, except?: ListName): Promise<void> {
    const { simulator, database, userId } = this;
    const table = except && LISTS[except].table;
    const without = (ids: Record<string, number[]>) => ({ ...ids, ...(table && { [table]: [] }) });
    expect(without(await copiedIds(database, tenant))).toEqual(without(visibleIds(simulator, userId)));
    const isMeant = ({ kind }: { kind: string }) => kind !== table;
    const held = await database.query<{ kind: string; id: number; text: string }>(TEXTS, [tenant]);
    expect(held.filter(isMeant)).toEqual(this.#shownTexts().filter(isMeant));
    if (except === "DEALS") return;
    expect(await copiedParticipants(database, tenant)).toEqual(visibleParticipants(simulator, userId));
  }

  #shownTexts(): { kind: string; id: number; text: string }[] {
    const { activities, deals, organizations, persons } = this.simulator.control.visibleTo(this.userId);
    const texts = [
      activities.map(({ id = 0, subject }) => ({ kind: "activity", id, text: subject ?? "" })),
      deals.map(({ id = 0, title }) => ({ kind: "deal", id, text: title ?? "" })),
      organizations.map(({ id = 0, name }) => ({ kind: "organization", id, text: name ?? "" })),
      persons.map(({ id = 0, name }) => ({ kind: "person", id, text: name ?? "" })),
    ];
    return texts.flatMap((list) => list.sort((a, b) => a.id - b.id));
  }

  async watermarks({ tenant }: As): Promise<Map<string, number>> {
    const rows = await this.database.query<{ resource: string; watermark: Date }>(
      `SELECT l.resource, l.watermark FROM sync_list l JOIN connection c USING (tenant_id, copy_id)
       WHERE c.tenant_id = (SELECT id FROM tenant WHERE external_id = $1) AND l.watermark IS NOT NULL`,
      [tenant],
    );
    return new Map(rows.map(({ resource, watermark }) => [resource, watermark.getTime()]));
  }
}
