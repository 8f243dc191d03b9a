import {
  type ConnectionFacts,
  type ContactKind,
  type DealFacts,
  type DealMeeting,
  type PlannedFact,
  type QuietRules,
  standardRules,
} from "../../src/briefing/quiet/facts";
import { judge } from "../../src/briefing/quiet/judge";
import { DAY_MS, MINUTE_MS } from "../../src/platform/clock";

export const NOW = Date.parse("2026-10-01T12:00:00.000Z");
export const days = (count: number) => NOW - count * DAY_MS;
export const MIDNIGHT = days(0.5);
export const HOUR = 60 * MINUTE_MS;

export const COPY: ConnectionFacts = {
  readAt: NOW - HOUR,
  asOf: NOW - HOUR,
  watchedSince: days(200),
  rules: standardRules("UTC"),
};
/** Nothing speaks against this deal: spoken to yesterday, something planned. */
export const HEALTHY: DealFacts = {
  dealId: 1,
  isOpen: true,
  addedAt: days(90),
  inStageSince: days(20),
  stageId: 5,
  daysToRotten: null,
  updatedAt: days(1),
  closeDay: null,
  pushes: [],
  inactiveOwnerId: null,
  isIncomplete: false,
  incompleteSince: null,
  hasMail: true,
  hasFirstMail: false,
  contacts: [{ kind: "INCOMING_MAIL", at: days(1), crmId: 7, activityType: null, withPerson: true }],
  meetings: [],
  planned: [{ crmId: 9, dueAt: days(-2), wholeDay: false }],
};

const contact = (kind: ContactKind, at: number) => ({
  kind,
  at,
  crmId: 7,
  activityType: null,
  withPerson: kind !== "NOTE",
});
export const inMail = (at: number) => contact("INCOMING_MAIL", at);
export const outMail = (at: number) => contact("OUTGOING_MAIL", at);
export const done = (at: number, activityType = "email", withPerson = true) => ({
  ...contact("ACTIVITY", at),
  crmId: 8,
  activityType,
  withPerson,
});
export const note = (at: number) => contact("NOTE", at);
export const planned = (dueAt: number, wholeDay = false): PlannedFact => ({ crmId: 9, dueAt, wholeDay });
export const meeting = (startsAt: number, endsAt: number, withBuyer = true): DealMeeting => ({
  meetingId: "m",
  startsAt,
  endsAt,
  withBuyer,
});

export interface Line {
  deal?: Partial<DealFacts>;
  copy?: Partial<ConnectionFacts>;
}
export const rules = (changed: Partial<QuietRules>) => ({ rules: { ...standardRules("UTC"), ...changed } });
export const judged = ({ deal, copy }: Line) => judge({ ...HEALTHY, ...deal }, { ...COPY, ...copy }, new Date(NOW));
export const codesOf = (line: Line) => judged(line).reasons.map(({ code }) => code);

/** Without a next step, so that the mail reasons show in the verdict. */
export const alone = (...contacts: DealFacts["contacts"]) => ({ contacts, planned: [] });
