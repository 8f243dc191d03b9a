import type { ContactFragment, CrmEntity, DealStatus, InteractionKind, WriteState } from "../api/operations.generated";
import type { Tone } from "../ui/tones";
import { apart } from "../ui/words";

export const DEAL_STATUS: Record<DealStatus, { text: string; tone: Tone }> = {
  OPEN: { text: "Open", tone: "info" },
  WON: { text: "Won", tone: "ok" },
  LOST: { text: "Lost", tone: "plain" },
};

/** `buyer`: whether it shows that the other side is there. */
export const CONTACT: Record<InteractionKind, { text: string; buyer: boolean }> = {
  MEETING: { text: "Recorded meeting", buyer: true },
  INCOMING_MAIL: { text: "Mail from", buyer: true },
  OUTGOING_MAIL: { text: "Mail to", buyer: false },
  ACTIVITY: { text: "Activity", buyer: false },
  NOTE: { text: "Note in the CRM", buyer: false },
};

const WRITE_STATE: Record<WriteState, { text: string; tone: Tone }> = {
  WRITTEN: { text: "Written", tone: "ok" },
  FAILED: { text: "Not written", tone: "bad" },
  UNKNOWN: { text: "Not known yet", tone: "warn" },
};

interface Write {
  /** What only a note has. */
  reference?: string;
  state: WriteState;
  error: { code: string } | null;
}

/** Where the CRM holds another value, what was sent may stand there in part, also of one whose answer was lost. */
const HOLDS_ANOTHER: ReadonlySet<string | undefined> = new Set(["NOT_APPLIED", "ANSWER_LOST"]);

/** What became of a write. */
export const fateOf = ({ reference, state, error }: Write) =>
  reference === undefined && state === "FAILED" && HOLDS_ANOTHER.has(error?.code)
    ? { ...WRITE_STATE.FAILED, text: "Not as sent" }
    : WRITE_STATE[state];

export const RECORD: Record<CrmEntity, string> = { DEAL: "deal", PERSON: "person", ORGANIZATION: "organization" };

/** "Mail from Marta Lindqvist", "Call about the offer (call)". */
export function inWords({ kind, person, activity }: ContactFragment): string {
  if (activity) return `${apart(activity.subject)} (${activity.type})`;
  const { text } = CONTACT[kind];
  const mail = kind === "INCOMING_MAIL" || kind === "OUTGOING_MAIL";
  return mail ? `${text} ${apart(person?.name ?? "somebody")}` : text;
}
