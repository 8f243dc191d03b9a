import type { Standards } from "../../entities/silence";
import type { OwnThreshold, QuietSettingsRow } from "../../entities/tenant";
import { type DealFacts, type QuietRules, standardRules, type ThresholdCode } from "./facts";

/** Raised with each change of the rules: what was judged by earlier ones is judged anew from the next run on. */
const RULES = 1;

/** What a tenant may say of silence; each that is not said is as everywhere. */
export type Wishes = Pick<QuietSettingsRow, "timeZone" | "businessDays" | "twoWayTypes" | "thresholds">;

export const NO_WISHES: Wishes = { timeZone: null, businessDays: false, twoWayTypes: [], thresholds: [] };

/** @param timeZone of the user who authorized */
export const standardsOf = (wishes: Wishes, timeZone: string): Standards => ({
  version: RULES,
  timeZone: wishes.timeZone ?? timeZone,
  businessDays: wishes.businessDays,
  twoWayTypes: wishes.twoWayTypes,
  thresholds: wishes.thresholds,
});

/** Of a copy of which nothing was judged yet. */
export const STANDARD = standardsOf(NO_WISHES, "UTC");

export function rulesOf({ timeZone, businessDays, twoWayTypes }: Standards): QuietRules {
  const standard = standardRules(timeZone);
  return {
    calendar: { zone: timeZone, businessDays },
    twoWayTypes: [...standard.twoWayTypes, ...twoWayTypes],
  };
}

type OfDeal = Pick<DealFacts, "stageId"> & { pipelineId: number | null };
type OwnDays = Partial<Record<ThresholdCode, number>>;
const key = ({ scope, crmId }: Pick<OwnThreshold, "scope" | "crmId">) => `${scope} ${crmId}`;

/** The deals with the tenant's own days: of several for a reason those of the stage, then those of the pipeline. */
export function byStandards<Deal extends OfDeal>(deals: readonly Deal[], { thresholds }: Standards): Deal[] {
  const own = new Map<string, OwnDays>();
  for (const threshold of thresholds)
    own.set(key(threshold), { ...own.get(key(threshold)), [threshold.code]: threshold.days });
  const daysFor = ({ pipelineId, stageId }: OfDeal): OwnDays => ({
    ...own.get(key({ scope: "ALL", crmId: 0 })),
    ...own.get(key({ scope: "PIPELINE", crmId: pipelineId ?? 0 })),
    ...own.get(key({ scope: "STAGE", crmId: stageId ?? 0 })),
  });
  return deals.map((deal) => ({ ...deal, ownDays: daysFor(deal) }));
}
