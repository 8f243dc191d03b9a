import type { QuietReasonCode, QuietSettingsInput, SilenceQuery } from "../api/operations.generated";
import { inDigits } from "../ui/words";

/** The settings as somebody is changing them: days are text until they are days. */
export interface Draft {
  /** Of the settings that it was begun from; "": others are known to have been saved since. */
  version: string;
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

interface Reason {
  code: QuietReasonCode;
  text: string;
  /** What its number counts. */
  unit: "Days" | "Times";
  least: 0 | 1;
  most: number;
}

const ofDays = (code: QuietReasonCode, text: string, least: 0 | 1): Reason => ({
  code,
  text,
  unit: "Days",
  least,
  most: 3_650,
});

/** Those whose days or times may be set, in the words of a seller. */
export const REASONS: readonly Reason[] = [
  ofDays("NO_RECENT_ACTIVITY", "No contact for", 1),
  ofDays("GHOSTED", "The buyer has not answered for", 1),
  ofDays("NEVER_REPLIED", "The buyer has never answered for", 1),
  ofDays("NO_NEXT_STEP", "Nothing is planned for", 0),
  ofDays("NEXT_STEP_OVERDUE", "The next step is overdue for", 0),
  ofDays("STALLED_IN_STAGE", "In its stage for", 1),
  ofDays("CLOSE_DATE_PASSED", "The close date has passed for", 0),
  { code: "CLOSE_DATE_PUSHED", text: "The close date was moved later", unit: "Times", least: 1, most: 100 },
];

/** One that a newer service knows shows its code, and goes back as it came. */
export const reasonOf = (code: QuietReasonCode): Reason =>
  REASONS.find((reason) => reason.code === code) ?? ofDays(code, code, 0);

type Settings = SilenceQuery["quietSettings"];

export function draftOf(settings: Settings): Draft {
  const { version, businessDays, twoWayActivityTypes, timeZone, timeZoneIsSet } = settings;
  const lines = settings.thresholds.map(({ pipeline, stage, code, days }, index) => ({
    key: String(index),
    scope: stage ? `stage ${stage.id}` : pipeline ? `pipeline ${pipeline.id}` : "",
    code,
    days: String(days),
  }));
  const types = twoWayActivityTypes.join(", ");
  return { version, lines, businessDays, types, timeZone: timeZoneIsSet ? timeZone : "" };
}

const daysOf = (typed: string): number => (/^\d+$/.test(inDigits(typed).trim()) ? Number(inDigits(typed)) : Number.NaN);

/** What is wrong with a line, and how to mend it; null: nothing. */
export function faultOf({ code, days, scope, key }: Line, lines: readonly Line[]): string | null {
  const { unit, least, most } = reasonOf(code);
  const count = daysOf(days);
  if (!(count >= least && count <= most)) return `${unit} from ${least} to ${most}.`;
  const first = lines.find((other) => other.code === code && other.scope === scope);
  return first && first.key !== key ? "The same is said above for the same deals." : null;
}

/** Keys have no spaces, names have: of what the service would take and never find in the CRM. */
export function faultOfTypes(types: string): string | null {
  const name = typesIn(types).find((type) => /\s/.test(type));
  return name ? `“${name}” is a name: the CRM shows a type's key, such as site_visit, beside it.` : null;
}

/** The CRM's own kinds of which it is settled whether the buyer has a part in them. */
const SETTLED = ["call", "meeting", "lunch", "task", "deadline"];

/** The others, among which somebody chooses. */
export const choosable = <Kind extends { key: string }>(seen: readonly Kind[]): Kind[] =>
  seen.filter(({ key }) => !SETTLED.includes(key));

/** The typed keys that none of the CRM's newest activities has: rare ones, or slips. */
export const unseenTypes = (types: string, seen: readonly { key: string }[]): string[] =>
  typesIn(types).filter((type) => !SETTLED.includes(type) && !seen.some(({ key }) => key === type));

export const hasType = (types: string, type: string): boolean => typesIn(types).includes(type);

export const withType = (types: string, type: string, wanted: boolean): string =>
  [...typesIn(types).filter((other) => other !== type), ...(wanted ? [type] : [])].join(", ");

const typesIn = (types: string): string[] =>
  types
    .split(",")
    .map((type) => type.trim())
    .filter(Boolean);

export const isSound = ({ lines, types }: Draft): boolean =>
  lines.every((line) => faultOf(line, lines) === null) && faultOfTypes(types) === null;

/** What is wished: all of the settings, which take the place of those before. */
export function inputOf({ lines, businessDays, types, timeZone }: Draft): QuietSettingsInput {
  return {
    thresholds: lines.map(({ scope, code, days }) => {
      const [kind, id] = scope.split(" ");
      return {
        code,
        days: daysOf(days),
        ...(kind === "pipeline" && { pipelineId: id }),
        ...(kind === "stage" && { stageId: id }),
      };
    }),
    businessDays,
    twoWayActivityTypes: typesIn(types),
    timeZone: timeZone || null,
  };
}
