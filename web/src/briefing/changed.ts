import type { DealChangeKind, DealStatus, QuietVerdict } from "../api/operations.generated";
import { VERDICT } from "../ui/tones";
import { day, money } from "../ui/words";
import type { Briefing } from "./targets";
import { DEAL_STATUS } from "./wording";

type Change = Briefing["changes"][number];

const WHAT: Record<DealChangeKind, string> = {
  STAGE: "Stage",
  VALUE: "Value",
  CLOSE_DATE: "Expected to close",
  STATUS: "State",
  OWNER: "Owner",
  PERSON: "Contact person",
  ORGANIZATION: "Company",
  TITLE: "Name",
  PARTICIPANTS: "Participants",
  VERDICT: "Contact",
};

/** One thing that has changed, from what it was at first to what it is now. */
export interface Changed {
  kind: DealChangeKind;
  what: string;
  from: string;
  to: string;
  /** When the last of its changes was seen. */
  seenAt: string;
}

/** By kind, the one that changed last first; what went back to where it was has not changed. @param changes newest first */
export function netChanges(changes: readonly Change[]): Changed[] {
  const kinds = [...new Set(changes.map(({ kind }) => kind))];
  return kinds.flatMap((kind) => {
    const [latest, ...earlier] = changes.filter((change) => change.kind === kind);
    const first = earlier.at(-1) ?? latest;
    if (!latest || !first || latest.to === first.from) return [];
    const { seenAt } = latest;
    return [{ kind, what: WHAT[kind], from: inWords(kind, first.from), to: inWords(kind, latest.to), seenAt }];
  });
}

/** Where no earlier meeting was about the deal, the service looks back so long. */
const LATELY_MS = 30 * 24 * 3_600_000;

/**
 * When the CRM was connected, where that is later than what is asked for: whether anybody looked before is not known. Whoever
 * authorizes again moves it on; a change that was seen before shows that, and then it is no beginning.
 */
export function beginningOf(
  { changes, previousMeeting }: Pick<Briefing, "changes" | "previousMeeting">,
  connectedAt: string | null,
  now: number,
): string | null {
  if (connectedAt === null) return null;
  const connected = Date.parse(connectedAt);
  const asked = previousMeeting ? Date.parse(previousMeeting.startsAt) : now - LATELY_MS;
  // A verdict is told of from when on it held, which may be before anybody looked.
  const wasSeen = changes.some(({ kind, seenAt }) => kind !== "VERDICT" && Date.parse(seenAt) < connected);
  return connected > asked && !wasSeen ? connectedAt : null;
}

function inWords(kind: DealChangeKind, value: string | null): string {
  if (value === null) return "none";
  if (kind === "CLOSE_DATE") return day(value);
  if (kind === "VALUE") {
    const [amount = "", currency = ""] = value.split(" ");
    return money({ amount, currency });
  }
  if (kind === "STATUS") return DEAL_STATUS[value.toUpperCase() as DealStatus]?.text ?? value;
  if (kind === "VERDICT") return VERDICT[value as QuietVerdict]?.text ?? value;
  return value;
}
