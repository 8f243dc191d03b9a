import { type Simulator, startSimulator } from "../../simulator";
import { DAY_MS, MINUTE_MS } from "../../src/platform/clock";
import type { ActorClaims } from "./actors";
import { createTestDatabase, type TestDatabase } from "./database";
import { type Service, startService } from "./service";
import { connect, dataOf, noJobIsDue, type Refusal, recordMeeting, syncEnds, until } from "./stories";

interface Threshold {
  pipelineId?: string;
  stageId?: string;
  code: string;
  days: number;
}
export interface Settings {
  thresholds?: Threshold[];
  businessDays?: boolean;
  twoWayActivityTypes?: string[];
  timeZone?: string | null;
  version?: string | null;
}
export interface ShownSettings {
  version: string;
  thresholds: {
    scope: string;
    pipeline: { crmId: string } | null;
    stage: { crmId: string } | null;
    code: string;
    days: number;
  }[];
  businessDays: boolean;
  twoWayActivityTypes: string[];
  timeZone: string;
  timeZoneIsSet: boolean;
  rejudging: { done: number; total: number } | null;
}
export interface Preview {
  becomeQuiet: number;
  stopBeingQuiet: number;
  deals: { crmId: string }[];
}

const SHOWN = `version thresholds { scope pipeline { crmId } stage { crmId } code days } businessDays twoWayActivityTypes timeZone timeZoneIsSet
  rejudging { done total }`;
const REFUSAL = "... on Refusal { code message field }";
const whole = (settings: Settings) => ({ thresholds: [], businessDays: false, twoWayActivityTypes: [], ...settings });

export async function quietSettings(service: Service, as?: ActorClaims): Promise<ShownSettings> {
  const query = `{ quietSettings { ${SHOWN} } }`;
  return dataOf(await service.ask<{ quietSettings: ShownSettings }>(query, {}, as)).quietSettings;
}

/** @returns the settings, or why they were refused */
export async function setQuiet(
  service: Service,
  settings: Settings,
  as?: ActorClaims,
): Promise<Partial<Refusal> & { settings?: ShownSettings }> {
  const query = `mutation ($input: QuietSettingsInput!) { answer: setQuietSettings(input: $input) {
    ... on QuietSettingsSuccess { settings { ${SHOWN} } } ${REFUSAL} } }`;
  type Answer = Partial<Refusal> & { settings?: ShownSettings };
  return dataOf(await service.ask<{ answer: Answer }>(query, { input: whole(settings) }, as)).answer;
}

export async function previewQuiet(
  service: Service,
  settings: Settings,
  as?: ActorClaims,
): Promise<Preview & Partial<Refusal>> {
  const query = `query ($input: QuietSettingsInput!) { answer: previewQuietSettings(input: $input) {
    ... on QuietPreview { becomeQuiet stopBeingQuiet deals(first: 50) { crmId } } ${REFUSAL} } }`;
  type Answer = Preview & Partial<Refusal>;
  return dataOf(await service.ask<{ answer: Answer }>(query, { input: whole(settings) }, as)).answer;
}

export const rejudged = (service: Service, as?: ActorClaims): Promise<ShownSettings> =>
  until("all deals are judged by the settings", async () => {
    const shown = await quietSettings(service, as);
    return shown.rejudging ? null : shown;
  });

export interface JudgedDeal {
  id: string;
  crmId: string;
  stage: { id: string };
  pipeline: { id: string };
  quiet: { verdict: string; reasons: { code: string; thresholdDays: number | null; message: string }[] };
}

/** Every deal of the tenant, and of the quiet ones those of the board. */
async function boards(service: Service, as?: ActorClaims): Promise<{ deals: JudgedDeal[]; quiet: string[] }> {
  const query = `{ deals(first: 100) { nodes { id crmId stage { id } pipeline { id } quiet { verdict reasons { code thresholdDays message } } } }
    board: deals(first: 100, filter: { verdict: [QUIET, GHOSTED] }, orderBy: QUIET_DAYS_DESC) { nodes { crmId } } }`;
  interface Found {
    deals: { nodes: JudgedDeal[] };
    board: { nodes: { crmId: string }[] };
  }
  const { deals, board } = dataOf(await service.ask<Found>(query, {}, as));
  return { deals: deals.nodes, quiet: board.nodes.map(({ crmId }) => crmId).sort() };
}

const isQuiet = ({ quiet }: JudgedDeal) => ["QUIET", "GHOSTED"].includes(quiet.verdict);
const PASSED_DAYS = 40;

/** A CRM of whose deals nobody has heard for 40 days, and a service that serves the API until a test starts a worker. */
export class QuietWorld {
  #aheadMs = PASSED_DAYS * DAY_MS;
  #worker: Service | null = null;
  readonly clock = () => new Date(Date.now() + this.#aheadMs);

  constructor(
    readonly simulator: Simulator,
    readonly database: TestDatabase,
    readonly service: Service,
  ) {}

  async startWorker(): Promise<void> {
    this.#worker ??= await startService(this.simulator, this.database, { clock: this.clock });
  }

  async stopWorker(): Promise<void> {
    await this.#worker?.stop();
    this.#worker = null;
  }

  /** Connected, with four recorded meetings of 40 days ago. */
  async tenantWithDeals(tenant: string): Promise<{ tenant: string }> {
    const as = { tenant };
    await connect(this.service, this.simulator, as);
    await syncEnds(this.service, as);
    const startsAt = new Date(this.clock().getTime() - PASSED_DAYS * DAY_MS).toISOString();
    const { singleDeal, severalDeals, noParticipants, ghosted } = this.simulator.company.stories;
    for (const { email } of [singleDeal, severalDeals, noParticipants, ghosted])
      await recordMeeting(this.service, [email], { startsAt }, as);
    await noJobIsDue(this.database);
    return as;
  }

  async sync(as: { tenant: string }): Promise<void> {
    this.#aheadMs += 11 * MINUTE_MS;
    dataOf(await this.service.ask("mutation { requestSync { __typename } }", {}, as));
    expect((await syncEnds(this.service, as)).state).toBe("SUCCEEDED");
  }

  /** What the tenant is shown: lists and single deals say the same. */
  async seen(as: { tenant: string }): Promise<{ deals: JudgedDeal[]; quiet: string[] }> {
    const found = await boards(this.service, as);
    const quiet = found.deals.filter(isQuiet).map(({ crmId }) => crmId);
    expect(found.quiet).toEqual(quiet.sort());
    return found;
  }

  async stop(): Promise<void> {
    await this.stopWorker();
    await this.service.stop();
    await Promise.all([this.simulator.stop(), this.database.drop()]);
  }
}

export async function startQuietWorld(): Promise<QuietWorld> {
  let clock = () => new Date();
  const now = () => clock();
  const [simulator, database] = await Promise.all([startSimulator({ deals: 60, now }), createTestDatabase()]);
  for (const { id } of simulator.company.users.values()) simulator.control.change("user", id, { timezone_name: "UTC" });
  const service = await startService(simulator, database, { clock: now, roles: new Set(["api"]) });
  const world = new QuietWorld(simulator, database, service);
  clock = world.clock;
  return world;
}
