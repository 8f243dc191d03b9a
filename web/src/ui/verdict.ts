import type { QuietVerdict } from "../api/operations.generated";
import type { Tone } from "./parts";

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
