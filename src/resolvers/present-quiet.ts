import type { QuietSignal as Signal } from "../briefing/quiet/facts";
import type { InteractionRow } from "../briefing/timeline";
import { Interaction, QuietReason, QuietSignal } from "../schema/quiet";
import { make } from "./present";

export function presentQuiet({ verdict, reasons, ...signal }: Signal): QuietSignal {
  return make(QuietSignal, {
    verdict,
    isQuiet: verdict === "QUIET" || verdict === "GHOSTED",
    reasons: reasons.map(({ code, since, thresholdDays, message, evidence }) =>
      make(QuietReason, { code, since, thresholdDays, message, shownBy: evidence }),
    ),
    ...signal,
  });
}

export const presentInteraction = ({ kind, at, personId, activityId }: InteractionRow): Interaction =>
  make(Interaction, { kind, at, links: { person: personId, activity: activityId } });
