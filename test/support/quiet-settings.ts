import type { ActorClaims } from "./actors";
import type { Service } from "./service";
import { dataOf, type Refusal, until } from "./stories";

export interface Threshold {
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
}
export interface ShownSettings {
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
  rejudging: { done: number; total: number } | null;
}
export interface Preview {
  becomeQuiet: number;
  stopBeingQuiet: number;
  deals: { crmId: string }[];
}

const SHOWN = `thresholds { scope pipeline { crmId } stage { crmId } code days } businessDays twoWayActivityTypes timeZone
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
export async function boards(service: Service, as?: ActorClaims): Promise<{ deals: JudgedDeal[]; quiet: string[] }> {
  const query = `{ deals(first: 100) { nodes { id crmId stage { id } pipeline { id } quiet { verdict reasons { code thresholdDays message } } } }
    board: deals(first: 100, filter: { verdict: [QUIET, GHOSTED] }, orderBy: QUIET_DAYS_DESC) { nodes { crmId } } }`;
  interface Found {
    deals: { nodes: JudgedDeal[] };
    board: { nodes: { crmId: string }[] };
  }
  const { deals, board } = dataOf(await service.ask<Found>(query, {}, as));
  return { deals: deals.nodes, quiet: board.nodes.map(({ crmId }) => crmId).sort() };
}
