import { ArrayMaxSize, ValidateNested } from "class-validator";
import { Field, ID, InputType, Int } from "type-graphql";
import { INWARD_TYPES, isThresholdCode, LEAST_DAYS, MOST_OWN_DAYS, mostDays } from "../briefing/quiet/facts";
import type { OwnThreshold, ThresholdCode } from "../entities/tenant";
import { isTimeZone } from "../platform/clock";
import { apiEnum, asMany, Node, ObjectType } from "./base";
import { Pipeline, Stage } from "./crm";
import { QuietReasonCodeEnum } from "./quiet";
import { Checked, resultOf, Text } from "./refusal";
import { Progress } from "./sync";

/** Pipelines with all their stages and reasons, of a large company. */
const MOST_THRESHOLDS = 500;

const ThresholdScopeEnum = apiEnum<OwnThreshold["scope"]>("ThresholdScope", "Of which deals a threshold speaks.", {
  ALL: "All deals.",
  PIPELINE: "The deals of one pipeline.",
  STAGE: "The deals in one stage.",
});

@ObjectType({ description: "After how many days a reason of silence holds, by the tenant's own word." })
export class QuietThreshold {
  @Field(() => ThresholdScopeEnum, {
    description: "A stage's stands before its pipeline's, and that before all deals'.",
  })
  scope!: OwnThreshold["scope"];

  @Field(() => Pipeline, { nullable: true, description: "Whose deals are meant; null unless the scope is PIPELINE." })
  pipeline!: Pipeline | null;

  @Field(() => Stage, { nullable: true, description: "Whose deals are meant; null unless the scope is STAGE." })
  stage!: Stage | null;

  @Field(() => QuietReasonCodeEnum, { description: "The reason." })
  code!: ThresholdCode;

  @Field(() => Int, {
    description: "Its days, business days where the tenant counts those; of CLOSE_DATE_PUSHED how many times.",
  })
  days!: number;
}

@ObjectType({
  implements: Node,
  description: "When a deal counts as quiet, as far as the tenant has set it. There is one of a tenant.",
})
export class QuietSettings extends Node {
  @Field(() => ID, {
    description: "Names what is stored, also what of it is left out here; the same settings have the same. For a save.",
  })
  version!: string;

  @Field(() => [QuietThreshold], {
    complexity: asMany(MOST_THRESHOLDS),
    description:
      "The tenant's own only; saving replaces all of them. They stand before a stage's daysToRotten and before the standard " +
      "days. Those of pipelines and stages that the CRM does not show are left out.",
  })
  thresholds!: QuietThreshold[];

  @Field(() => Boolean, { description: "Whether Saturdays and Sundays do not count." })
  businessDays!: boolean;

  @Field(() => [String], {
    name: "twoWayActivityTypes",
    simple: false,
    description: "Types of activities in which the buyer has a part, beside the CRM's own call, meeting and lunch.",
  })
  twoWayTypes!: string[];

  @Field(() => String, {
    description: "In whose days silence is counted: IANA name; the authorizing user's unless set.",
  })
  timeZone!: string;

  @Field(() => Boolean, {
    description: "Whether the tenant has set the time zone; one that is not set is that of whoever authorizes.",
  })
  timeZoneIsSet!: boolean;

  @Field(() => Progress, {
    nullable: true,
    description:
      "While deals are judged by new settings or days of a stage, and all answers count by those before; null when done. " +
      "connectionStatusChanged tells when it ends.",
  })
  rejudging!: Progress | null;
}

@ObjectType({ description: "A type of activities in the CRM, and how much it is used." })
export class ActivityTypeUse {
  @Field(() => String, { description: "What settings name it by; the CRM shows its key beside its name." })
  key!: string;

  @Field(() => Int, { description: "How many of the newest activities are of this type." })
  count!: number;
}

/** A CRM company has some tens of kinds. */
const MOST_TYPES = 50;
const LONGEST_TYPE = 100;
const LONGEST_ZONE = 100;

const daysFault = (days: unknown, within: object): string | null => {
  const code: unknown = Reflect.get(within, "code");
  const isKnown = typeof code === "string" && isThresholdCode(code);
  const [least, most] = isKnown ? [LEAST_DAYS[code], mostDays(code)] : [0, MOST_OWN_DAYS];
  return Number(days) >= least && Number(days) <= most ? null : `must be from ${least} to ${most}`;
};

@InputType({ description: "Of all deals, unless a pipeline or a stage is named." })
export class QuietThresholdInput {
  @Field(() => ID, { nullable: true, description: "Only of the deals of this pipeline." })
  pipelineId?: string | null;

  @Checked("oneScope", (_, within) =>
    Reflect.get(within, "pipelineId") == null ? null : "must not stand beside a pipelineId: a stage has one",
  )
  @Field(() => ID, { nullable: true, description: "Only of the deals in this stage; not beside a pipelineId." })
  stageId?: string | null;

  @Checked("hasDays", (code) => (isThresholdCode(String(code)) ? null : "is a reason without days of the tenant's own"))
  @Field(() => QuietReasonCodeEnum, {
    description: "Not CRM_ROTTEN, whose days the CRM has, nor OWNER_INACTIVE, DATA_STALE or DATA_INCOMPLETE.",
  })
  code!: ThresholdCode;

  @Checked("days", daysFault)
  @Field(() => Int, {
    description:
      "From 1, or 0 for NO_NEXT_STEP, NEXT_STEP_OVERDUE and CLOSE_DATE_PASSED, to 3650; of CLOSE_DATE_PUSHED times, from 1 to 100.",
  })
  days!: number;
}

/** The first that says again what another has said. */
function repeated(given: unknown): string | null {
  const seen = new Set<string>();
  for (const { pipelineId, stageId, code } of given as QuietThresholdInput[]) {
    const what = JSON.stringify([pipelineId ?? null, stageId ?? null, code]);
    if (seen.has(what)) return `must have ${code} once for the same deals`;
    seen.add(what);
  }
  return null;
}

function typesFault(given: unknown): string | null {
  for (const type of given as string[]) {
    const kind = type.trim();
    if (kind === "" || kind.length > LONGEST_TYPE || kind.includes("\0"))
      return `must be names of 1 to ${LONGEST_TYPE} characters`;
    if (INWARD_TYPES.includes(kind)) return `must not have ${kind}, which speaks to nobody outside`;
  }
  return null;
}

@InputType({ description: "All settings of silence; what is not said here is as if it had never been set." })
export class QuietSettingsInput {
  @ArrayMaxSize(MOST_THRESHOLDS, { message: `must have at most ${MOST_THRESHOLDS} entries` })
  @Checked("repeated", repeated)
  @ValidateNested({ each: true })
  @Field(() => [QuietThresholdInput], { description: "Each reason once for the same deals, 500 at most." })
  thresholds!: QuietThresholdInput[];

  @Field(() => Boolean, { description: "Whether Saturdays and Sundays are not to count." })
  businessDays!: boolean;

  @ArrayMaxSize(MOST_TYPES, { message: `must have at most ${MOST_TYPES} entries` })
  @Checked("types", typesFault)
  @Field(() => [String], {
    description:
      "Types of activities, by the CRM's key of the type, in which the buyer has a part: at most 50 of 100 characters. The CRM's call, meeting and lunch need not be named; its task and deadline cannot be.",
  })
  twoWayActivityTypes!: string[];

  @Text(0, LONGEST_ZONE)
  @Checked("zone", (zone) =>
    isTimeZone(String(zone).trim()) ? null : "is not the IANA name of a time zone, such as Europe/Berlin",
  )
  @Field(() => String, {
    nullable: true,
    description: "IANA name of at most 100 characters; null: that of the user who authorized.",
  })
  timeZone?: string | null;

  @Field(() => ID, {
    nullable: true,
    description:
      "Of the settings that the change is based on: where others are stored by now, the save is refused (CHANGED_MEANWHILE), " +
      "unless they are already as wished, as after a save that is sent again. null: saved whatever is stored. A preview ignores it.",
  })
  version?: string | null;
}

@ObjectType({ description: "What the quiet board would show with other settings. Nothing was stored." })
export class QuietPreview {
  @Field(() => Int, { description: "How many deals would be quiet that are not." })
  becomeQuiet!: number;

  @Field(() => Int, { description: "How many deals would not be quiet that are." })
  stopBeingQuiet!: number;

  dealIds!: readonly number[];
}
export const QuietPreviewResult = resultOf("QuietPreviewResult", () => QuietPreview);

@ObjectType({ description: "They are saved." })
export class QuietSettingsSuccess {
  @Field(() => QuietSettings, { description: "As they now are, with the progress of judging by them." })
  settings!: QuietSettings;
}
export const QuietSettingsResult = resultOf("QuietSettingsResult", () => QuietSettingsSuccess);
