import type { QuietReasonCode, QuietSettingsInput, SilenceQuery } from "../api/operations.generated";

/** The settings as somebody is changing them: days are text until they are days. */
export interface Draft {
  lines: readonly Line[];
  businessDays: boolean;
  /** Keys of the CRM's kinds, with commas between them. */
  types: string;
  /** "": that of the user who authorized. */
  timeZone: string;
}

export interface Line {
  /** Of this form only. */
  key: string;
  /** "", "pipeline <id>" or "stage <id>". */
  scope: string;
  code: QuietReasonCode;
  days: string;
}

const MOST_DAYS = 3_650;

interface Reason {
  code: QuietReasonCode;
  text: string;
  least: 0 | 1;
}

/** Those whose days may be set, in the words of a seller. */
export const REASONS: readonly Reason[] = [
  { code: "NO_RECENT_ACTIVITY", text: "No contact for", least: 1 },
  { code: "GHOSTED", text: "The buyer has not answered for", least: 1 },
  { code: "NEVER_REPLIED", text: "The buyer has never answered for", least: 1 },
  { code: "NO_NEXT_STEP", text: "Nothing is planned for", least: 0 },
  { code: "NEXT_STEP_OVERDUE", text: "The next step is overdue for", least: 0 },
  { code: "STALLED_IN_STAGE", text: "In its stage for", least: 1 },
  { code: "CLOSE_DATE_PASSED", text: "The close date has passed for", least: 0 },
];

type Settings = SilenceQuery["quietSettings"];

export function draftOf(settings: Settings): Draft {
  const { businessDays, twoWayActivityTypes, timeZone, timeZoneIsSet } = settings;
  const lines = settings.thresholds.map(({ pipeline, stage, code, days }, index) => ({
    key: String(index),
    scope: stage ? `stage ${stage.id}` : pipeline ? `pipeline ${pipeline.id}` : "",
    code,
    days: String(days),
  }));
  return { lines, businessDays, types: twoWayActivityTypes.join(", "), timeZone: timeZoneIsSet ? timeZone : "" };
}

/** What is wrong with a line, and how to mend it; null: nothing. */
export function faultOf({ code, days, scope, key }: Line, lines: readonly Line[]): string | null {
  const least = REASONS.find((reason) => reason.code === code)?.least ?? 0;
  const count = /^\d+$/.test(days.trim()) ? Number(days) : Number.NaN;
  if (!(count >= least && count <= MOST_DAYS)) return `Days from ${least} to ${MOST_DAYS}.`;
  const first = lines.find((other) => other.code === code && other.scope === scope);
  return first && first.key !== key ? "The same is said above for the same deals." : null;
}

export const isSound = ({ lines }: Draft): boolean => lines.every((line) => faultOf(line, lines) === null);

/** What is sent: all of the settings, which take the place of those before. */
export function inputOf({ lines, businessDays, types, timeZone }: Draft): QuietSettingsInput {
  return {
    thresholds: lines.map(({ scope, code, days }) => {
      const [kind, id] = scope.split(" ");
      return {
        code,
        days: Number(days),
        ...(kind === "pipeline" && { pipelineId: id }),
        ...(kind === "stage" && { stageId: id }),
      };
    }),
    businessDays,
    twoWayActivityTypes: types.split(/[\s,]+/).filter(Boolean),
    timeZone: timeZone || null,
  };
}
