import { DAY_MS } from "../../platform/clock";
import type { QuietReasonCode } from "./facts";
import type { Firing } from "./rules";

const days = (count: number) => (count === 1 ? "1 day" : `${count} days`);

/** @param passed whole days since the reason's `since` */
const MESSAGES: Record<QuietReasonCode, (passed: string, threshold: string) => string> = {
  NO_RECENT_ACTIVITY: (passed, threshold) => `No contact for ${passed}; from ${threshold} on a deal counts as quiet.`,
  GHOSTED: (passed) => `The buyer has been silent for ${passed}, and our last word is unanswered.`,
  NEVER_REPLIED: (passed) => `The buyer has never answered since we first wrote or called ${passed} ago.`,
  NO_NEXT_STEP: (passed) => `No next step is planned, and there was no contact for ${passed}.`,
  NEXT_STEP_OVERDUE: (passed) => `The planned next step is ${passed} overdue, and nothing else is planned.`,
  STALLED_IN_STAGE: (passed) => `The deal has been in its stage for ${passed}.`,
  CRM_ROTTEN: (passed, threshold) =>
    `Nobody has changed the deal in the CRM for ${passed}; in this stage it rots after ${threshold}.`,
  CLOSE_DATE_PASSED: () => "The expected close date has passed, and the deal is still open.",
  OWNER_INACTIVE: () => "The owner of the deal is no longer active in the CRM.",
  DATA_STALE: () => "The data from the CRM is more than a day old, so nothing can be said about this deal.",
  DATA_INCOMPLETE: () => "Participants or activities of this deal could not be read, so contacts may be missing.",
};

/** Before a run has succeeded there is no data that could be old. */
const NEVER_READ = "The data from the CRM has not been read completely yet, so nothing can be said about this deal.";

export function messageOf({ code, since, thresholdDays }: Firing, now: number): string {
  if (code === "DATA_STALE" && since === null) return NEVER_READ;
  const passed = since === null ? 0 : Math.max(0, Math.floor((now - since) / DAY_MS));
  return MESSAGES[code](days(passed), days(thresholdDays ?? 0));
}
