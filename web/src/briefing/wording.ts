import type { DealStatus, InteractionKind, QuietVerdict, WriteState } from "../api/operations.generated";
import type { Tone } from "../ui/parts";

export const VERDICT: Record<QuietVerdict, { text: string; tone: Tone; meaning: string }> = {
  ACTIVE: { text: "Active", tone: "ok", meaning: "There is contact with the buyer, or a next step is planned." },
  COOLING: {
    text: "Cooling",
    tone: "warn",
    meaning: "Contact thins out, nothing is planned, or the deal stands still.",
  },
  QUIET: { text: "Quiet", tone: "bad", meaning: "There has been no contact for long, and nothing is planned." },
  GHOSTED: { text: "Ghosted", tone: "bad", meaning: "The buyer does not answer, and nothing is planned." },
  UNKNOWN: { text: "Not known", tone: "plain", meaning: "The data is too old to say anything." },
};

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
  NOTE: { text: "Note by a person", buyer: false },
};

export const WRITE_STATE: Record<WriteState, { text: string; tone: Tone }> = {
  WRITTEN: { text: "Written", tone: "ok" },
  FAILED: { text: "Not written", tone: "bad" },
  UNKNOWN: { text: "Not known yet", tone: "warn" },
};
