import type { QuietVerdict } from "../api/operations.generated";

/**
 * The one meaning of each colour, in badges, notices and pictures alike (theme.css has their values):
 * ok: in order. warn: look at it. bad: wrong, or needs somebody now. gone: the other side does not answer.
 * info: a plain fact, or under way. plain: nothing to say. The accent is for what can be pressed, and for nothing else.
 */
export type Tone = "ok" | "warn" | "bad" | "gone" | "info" | "plain";

export const VERDICT: Record<QuietVerdict, { text: string; tone: Tone; meaning: string }> = {
  ACTIVE: { text: "Active", tone: "ok", meaning: "Nothing speaks of silence." },
  COOLING: {
    text: "Cooling",
    tone: "warn",
    meaning: "Contact thins out, nothing is planned, or the deal stands still.",
  },
  QUIET: { text: "Quiet", tone: "bad", meaning: "There has been no contact for long, and nothing is planned soon." },
  GHOSTED: { text: "Ghosted", tone: "gone", meaning: "The buyer does not answer, and nothing is planned soon." },
  UNKNOWN: { text: "Not known", tone: "plain", meaning: "No data is fresh enough to say anything." },
};
