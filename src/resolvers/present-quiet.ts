import type { InteractionRow } from "../briefing/context-records";
import type { QuietSignal as Signal } from "../briefing/quiet/facts";
import { Interaction, InteractionKind, QuietReason, QuietReasonCode, QuietSignal, QuietVerdict } from "../schema/quiet";
import { make } from "./present";

export function presentQuiet({ verdict, reasons, ...signal }: Signal): QuietSignal {
  return make(QuietSignal, {
    verdict: QuietVerdict[verdict],
    isQuiet: verdict === "QUIET" || verdict === "GHOSTED",
    reasons: reasons.map(({ code, since, thresholdDays, message, evidence }) =>
      make(QuietReason, { code: QuietReasonCode[code], since, thresholdDays, message, shownBy: evidence }),
    ),
    ...signal,
  });
}

export const presentInteraction = ({ kind, at, personId, activityId }: InteractionRow): Interaction =>
  make(Interaction, { kind: InteractionKind[kind], at, links: { person: personId, activity: activityId } });
