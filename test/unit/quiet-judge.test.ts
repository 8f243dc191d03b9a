import type {
  ContactKind,
  CopyFacts,
  DealFacts,
  MeetingFact,
  PlannedFact,
  QuietRules,
} from "../../src/briefing/quiet/facts";
import { judge } from "../../src/briefing/quiet/judge";
import { standardRules } from "../../src/briefing/quiet/thresholds";
import { DAY_MS, MINUTE_MS } from "../../src/platform/clock";

const NOW = Date.parse("2026-10-01T12:00:00.000Z");
const days = (count: number) => NOW - count * DAY_MS;
const MIDNIGHT = days(0.5);
const HOUR = 60 * MINUTE_MS;

const COPY: CopyFacts = { readAt: NOW - HOUR, asOf: NOW - HOUR, rules: standardRules("UTC") };
/** Nothing speaks against this deal: spoken to yesterday, something planned. */
const HEALTHY: DealFacts = {
  dealId: 1,
  isOpen: true,
  addedAt: days(90),
  inStageSince: days(20),
  stageId: 5,
  daysToRotten: null,
  updatedAt: days(1),
  closeDay: null,
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
const inMail = (at: number) => contact("INCOMING_MAIL", at);
const outMail = (at: number) => contact("OUTGOING_MAIL", at);
const done = (at: number, activityType = "email", withPerson = true) => ({
  ...contact("ACTIVITY", at),
  ...{ crmId: 8, activityType, withPerson },
});
const note = (at: number) => contact("NOTE", at);
const planned = (dueAt: number, wholeDay = false): PlannedFact => ({ crmId: 9, dueAt, wholeDay });
const meeting = (startsAt: number, endsAt: number, withBuyer = true): MeetingFact => ({
  meetingId: "m",
  ...{ startsAt, endsAt, withBuyer },
});

interface Line {
  deal?: Partial<DealFacts>;
  copy?: Partial<CopyFacts>;
}
const rules = (changed: Partial<QuietRules>) => ({ rules: { ...standardRules("UTC"), ...changed } });
const judged = ({ deal, copy }: Line) => judge({ ...HEALTHY, ...deal }, { ...COPY, ...copy }, new Date(NOW));
const codesOf = (line: Line) => judged(line).reasons.map(({ code }) => code);

/** Without a next step, so that the mail reasons show in the verdict. */
const alone = (...contacts: DealFacts["contacts"]) => ({ contacts, planned: [] });

test.each<[string, Line, string, string[]]>([
  ["a deal that was spoken to yesterday, with a step ahead", {}, "ACTIVE", []],
  // NO_RECENT_ACTIVITY and its share
  ["0.6 of 14 days less 1 ms", { deal: { contacts: [inMail(days(8.4) + 1)] } }, "ACTIVE", []],
  ["0.6 of 14 days", { deal: { contacts: [inMail(days(8.4))] } }, "COOLING", []],
  ["14 days less 1 ms", { deal: { contacts: [inMail(days(14) + 1)] } }, "COOLING", []],
  ["14 days, with a step ahead", { deal: { contacts: [inMail(days(14))] } }, "COOLING", ["NO_RECENT_ACTIVITY"]],
  [
    "14 days, with a step in 30 days",
    { deal: { contacts: [inMail(days(14))], planned: [planned(days(-30))] } },
    "COOLING",
    ["NO_RECENT_ACTIVITY"],
  ],
  [
    "14 days, with a step in 30 days and 1 ms",
    { deal: { contacts: [inMail(days(14))], planned: [planned(days(-30) + 1)] } },
    "QUIET",
    ["NO_RECENT_ACTIVITY"],
  ],
  ["14 days, nothing planned", { deal: alone(inMail(days(14))) }, "QUIET", ["NO_RECENT_ACTIVITY", "NO_NEXT_STEP"]],
  [
    "no contact at all counts from the day it was added",
    { deal: { contacts: [], addedAt: days(20) } },
    "COOLING",
    ["NO_RECENT_ACTIVITY"],
  ],
  ["no contact and no day of adding says nothing", { deal: { contacts: [], addedAt: null } }, "ACTIVE", []],
  ["the day of adding counts as a contact", { deal: { addedAt: days(1), contacts: [inMail(days(14))] } }, "ACTIVE", []],
  ["a done activity is a contact", { deal: { contacts: [inMail(days(40)), done(days(1))] } }, "ACTIVE", []],
  ["a note by a person is a contact", { deal: { contacts: [inMail(days(40)), note(days(1))] } }, "ACTIVE", []],
  ["outgoing mail is a contact", { deal: { contacts: [inMail(days(40)), outMail(days(1))] } }, "ACTIVE", []],
  // the stage's own days
  [
    "5 days in a stage that rots after 5",
    { deal: { daysToRotten: 5, contacts: [inMail(days(5))] } },
    "COOLING",
    ["NO_RECENT_ACTIVITY"],
  ],
  ["5 days less 1 ms in that stage", { deal: { daysToRotten: 5, contacts: [inMail(days(5) + 1)] } }, "COOLING", []],
  ["3 days in that stage", { deal: { daysToRotten: 5, contacts: [inMail(days(3))] } }, "COOLING", []],
  ["3 days less 1 ms in that stage", { deal: { daysToRotten: 5, contacts: [inMail(days(3) + 1)] } }, "ACTIVE", []],
  ["20 days in a stage that rots after 60", { deal: { daysToRotten: 60, contacts: [inMail(days(20))] } }, "ACTIVE", []],
  [
    "the stage's days do not replace those of GHOSTED",
    { deal: { daysToRotten: 60, ...alone(inMail(days(8)), outMail(days(3))) } },
    "GHOSTED",
    ["GHOSTED"],
  ],
  // GHOSTED
  ["7 days unanswered, 3 since our word", { deal: alone(inMail(days(7)), outMail(days(3))) }, "GHOSTED", ["GHOSTED"]],
  ["7 days less 1 ms", { deal: alone(inMail(days(7) + 1), outMail(days(3))) }, "ACTIVE", []],
  ["3 days since our word less 1 ms", { deal: alone(inMail(days(7)), outMail(days(3) + 1)) }, "ACTIVE", []],
  ["the buyer's word is the last", { deal: { contacts: [inMail(days(7)), outMail(days(8))] } }, "ACTIVE", []],
  ["both at one instant", { deal: { contacts: [inMail(days(7)), outMail(days(7))] } }, "ACTIVE", []],
  ["unanswered, with a step ahead", { deal: { contacts: [inMail(days(7)), outMail(days(3))] } }, "ACTIVE", ["GHOSTED"]],
  [
    "unanswered, a far step ahead, silent for long",
    { deal: { contacts: [inMail(days(30)), outMail(days(14))], planned: [planned(days(-40))] } },
    "QUIET",
    ["NO_RECENT_ACTIVITY", "GHOSTED"],
  ],
  ["a logged e-mail counts as our word", { deal: alone(inMail(days(9)), done(days(3))) }, "GHOSTED", ["GHOSTED"]],
  [
    "no person of the deal has mail",
    { deal: { ...alone(inMail(days(7)), outMail(days(3))), hasMail: false } },
    "ACTIVE",
    [],
  ],
  // NEVER_REPLIED
  ["10 days since our first word", { deal: alone(outMail(days(3)), outMail(days(10))) }, "GHOSTED", ["NEVER_REPLIED"]],
  ["10 days less 1 ms", { deal: alone(outMail(days(3)), outMail(days(10) + 1)) }, "ACTIVE", []],
  [
    "10 days, with a step ahead",
    { deal: { contacts: [outMail(days(3)), outMail(days(10))] } },
    "ACTIVE",
    ["NEVER_REPLIED"],
  ],
  [
    "10 days, no person of the deal has mail",
    { deal: { ...alone(done(days(3)), done(days(10))), hasMail: false } },
    "ACTIVE",
    [],
  ],
  [
    "a held meeting is a reply",
    { deal: { ...alone(outMail(days(3)), outMail(days(10))), meetings: [meeting(days(2), days(2))] } },
    "ACTIVE",
    [],
  ],
  // NO_NEXT_STEP
  ["3 days, nothing planned", { deal: alone(inMail(days(3))) }, "ACTIVE", []],
  ["3 days and 1 ms, nothing planned", { deal: alone(inMail(days(3) - 1)) }, "COOLING", ["NO_NEXT_STEP"]],
  [
    "due at this very instant is a step",
    { deal: { contacts: [inMail(days(4))], planned: [planned(NOW)] } },
    "ACTIVE",
    [],
  ],
  [
    "due 1 ms ago is none",
    { deal: { contacts: [inMail(days(4))], planned: [planned(NOW - 1)] } },
    "COOLING",
    ["NO_NEXT_STEP"],
  ],
  [
    "due today without a time is a step",
    { deal: { contacts: [inMail(days(4))], planned: [planned(MIDNIGHT, true)] } },
    "ACTIVE",
    [],
  ],
  [
    "due yesterday without a time is none",
    { deal: { contacts: [inMail(days(4))], planned: [planned(MIDNIGHT - DAY_MS, true)] } },
    "COOLING",
    ["NO_NEXT_STEP"],
  ],
  [
    "a recorded meeting ahead is a step",
    { deal: { ...alone(inMail(days(4))), meetings: [meeting(days(-1), days(-1) + HOUR)] } },
    "ACTIVE",
    [],
  ],
  [
    "a meeting that goes on is still a step",
    { deal: { ...alone(inMail(days(20))), meetings: [meeting(NOW - HOUR, NOW + 1)] } },
    "COOLING",
    ["NO_RECENT_ACTIVITY"],
  ],
  [
    "a meeting with the buyer that just ended is a contact",
    { deal: { ...alone(inMail(days(20))), meetings: [meeting(NOW - HOUR, NOW)] } },
    "ACTIVE",
    [],
  ],
  [
    "a meeting without the buyer is none",
    { deal: { ...alone(inMail(days(20))), meetings: [meeting(NOW - HOUR, NOW, false)] } },
    "QUIET",
    ["NO_RECENT_ACTIVITY", "NO_NEXT_STEP"],
  ],
  // NEXT_STEP_OVERDUE
  ["3 days overdue", { deal: { planned: [planned(days(3))] } }, "ACTIVE", ["NEXT_STEP_OVERDUE"]],
  ["3 days less 1 ms overdue", { deal: { planned: [planned(days(3) + 1)] } }, "ACTIVE", []],
  [
    "overdue, and something else is planned",
    { deal: { planned: [planned(days(9)), planned(days(-1))] } },
    "ACTIVE",
    [],
  ],
  [
    "a day without a time is overdue from its end",
    { deal: { planned: [planned(MIDNIGHT - 4 * DAY_MS, true)] } },
    "ACTIVE",
    ["NEXT_STEP_OVERDUE"],
  ],
  ["a day without a time, a day later", { deal: { planned: [planned(MIDNIGHT - 3 * DAY_MS, true)] } }, "ACTIVE", []],
  // STALLED_IN_STAGE
  ["30 days in one stage", { deal: { inStageSince: days(30) } }, "COOLING", ["STALLED_IN_STAGE"]],
  ["30 days less 1 ms", { deal: { inStageSince: days(30) + 1 } }, "ACTIVE", []],
  // CRM_ROTTEN
  ["unchanged for the stage's days", { deal: { daysToRotten: 5, updatedAt: days(5) } }, "ACTIVE", ["CRM_ROTTEN"]],
  ["1 ms less", { deal: { daysToRotten: 5, updatedAt: days(5) + 1 } }, "ACTIVE", []],
  ["unchanged in a stage that does not rot", { deal: { updatedAt: days(500) } }, "ACTIVE", []],
  // CLOSE_DATE_PASSED, OWNER_INACTIVE, the data
  ["the expected day is over", { deal: { closeDay: MIDNIGHT - DAY_MS } }, "ACTIVE", ["CLOSE_DATE_PASSED"]],
  ["the expected day is today", { deal: { closeDay: MIDNIGHT } }, "ACTIVE", []],
  ["the owner was deactivated", { deal: { inactiveOwnerId: 3 } }, "ACTIVE", ["OWNER_INACTIVE"]],
  ["read 24 hours ago", { copy: { readAt: days(1) } }, "ACTIVE", []],
  ["read 24 hours and 1 ms ago", { copy: { readAt: days(1) - 1 } }, "UNKNOWN", ["DATA_STALE"]],
  ["never read", { copy: { readAt: null, asOf: null } }, "UNKNOWN", ["DATA_STALE"]],
  [
    "stale data says nothing else",
    { deal: { ...alone(inMail(days(90))), inactiveOwnerId: 3 }, copy: { readAt: days(2) } },
    "UNKNOWN",
    ["DATA_STALE"],
  ],
  ["participants are missing", { deal: { isIncomplete: true } }, "ACTIVE", ["DATA_INCOMPLETE"]],
  ["won or lost", { deal: { isOpen: false, ...alone(inMail(days(90))) } }, "ACTIVE", []],
  ["won or lost, on stale data", { deal: { isOpen: false }, copy: { readAt: days(9) } }, "ACTIVE", []],
])("%s", (_case, line, verdict, codes) => {
  expect([judged(line).verdict, codesOf(line)]).toEqual([verdict, codes]);
});

/** What sellers complained of, as it is judged now. */
test.each<[string, Line, string, string[]]>([
  [
    "a demo 4 days ago after a mail of the buyer 8 days ago: the buyer was there",
    { deal: alone(inMail(days(8)), done(days(4), "meeting")) },
    "COOLING",
    ["NO_NEXT_STEP"],
  ],
  ["a call is two-way", { deal: alone(inMail(days(9)), done(days(3), "call")) }, "ACTIVE", []],
  ["a lunch is two-way", { deal: alone(inMail(days(9)), done(days(3), "lunch")) }, "ACTIVE", []],
  ["an internal note is no word to the buyer", { deal: alone(inMail(days(8)), note(days(3))) }, "ACTIVE", []],
  ["a task is none", { deal: alone(inMail(days(8)), done(days(3), "task")) }, "ACTIVE", []],
  ["a deadline is none", { deal: alone(inMail(days(8)), done(days(3), "deadline")) }, "ACTIVE", []],
  [
    "an activity without a person of the deal is none",
    { deal: alone(inMail(days(8)), done(days(3), "email", false)) },
    "ACTIVE",
    [],
  ],
  [
    "nor is a call in which nobody of the deal took part an answer",
    { deal: alone(inMail(days(8)), outMail(days(4)), done(days(3), "call", false)) },
    "GHOSTED",
    ["GHOSTED"],
  ],
  [
    "a deal added 10 minutes ago, for people who were silent for 40 days",
    { deal: { ...alone(inMail(days(40)), outMail(days(35))), addedAt: NOW - 10 * MINUTE_MS } },
    "ACTIVE",
    [],
  ],
  [
    "a deal added 11 days ago: what we wrote before is no first word of it",
    { deal: { ...alone(outMail(days(12)), outMail(days(9))), addedAt: days(11) } },
    "COOLING",
    ["NO_NEXT_STEP"],
  ],
  [
    "nor is what the buyer wrote before an answer in it",
    { deal: { ...alone(inMail(days(12)), outMail(days(10))), addedAt: days(11) } },
    "GHOSTED",
    ["NEVER_REPLIED", "NO_NEXT_STEP"],
  ],
  [
    "nor is a meeting before it",
    { deal: { ...alone(outMail(days(10))), meetings: [meeting(days(12), days(12))], addedAt: days(11) } },
    "GHOSTED",
    ["NEVER_REPLIED", "NO_NEXT_STEP"],
  ],
  [
    "mail of people of other deals says nothing of this one",
    { deal: { ...alone(done(days(11))), hasMail: false } },
    "COOLING",
    ["NO_NEXT_STEP"],
  ],
])("%s", (_case, line, verdict, codes) => {
  expect([judged(line).verdict, codesOf(line)]).toEqual([verdict, codes]);
});

const business = rules({ calendar: { zone: "UTC", businessDays: true } });
test.each<[string, Line, string, string[]]>([
  [
    "a kind that the tenant names is two-way",
    { deal: alone(inMail(days(9)), done(days(3), "demo")), copy: rules({ twoWayTypes: ["demo"] }) },
    "ACTIVE",
    [],
  ],
  [
    "one that it does not name is our word",
    { deal: alone(inMail(days(9)), done(days(3), "demo")) },
    "GHOSTED",
    ["GHOSTED"],
  ],
  [
    "a task is never",
    { deal: alone(inMail(days(9)), done(days(3), "task")), copy: rules({ twoWayTypes: ["task"] }) },
    "ACTIVE",
    [],
  ],
  [
    "own days before the standard ones",
    { deal: { ...alone(inMail(days(9)), outMail(days(3))), ownDays: { GHOSTED: 10 } } },
    "ACTIVE",
    [],
  ],
  [
    "own days before the stage's",
    { deal: { contacts: [inMail(days(6))], daysToRotten: 5, ownDays: { NO_RECENT_ACTIVITY: 10 } } },
    "COOLING",
    [],
  ],
  [
    "from Thursday noon 7 business days ago",
    { deal: alone(inMail(days(9)), outMail(days(8))), copy: business },
    "GHOSTED",
    ["GHOSTED", "NO_NEXT_STEP"],
  ],
  [
    "from 1 ms later",
    { deal: alone(inMail(days(9) + 1), outMail(days(8))), copy: business },
    "COOLING",
    ["NO_NEXT_STEP"],
  ],
])("%s", (_case, line, verdict, codes) => {
  expect([judged(line).verdict, codesOf(line)]).toEqual([verdict, codes]);
});

test("business days are called so", () => {
  const [ghosted] = judged({ deal: alone(inMail(days(9)), outMail(days(8))), copy: business }).reasons;
  expect(ghosted?.message).toContain("was 7 business days ago");
});

test("quietSince is the last contact, and quietDays are whole days up to the judgement, as in each message", () => {
  const line = {
    deal: alone(outMail(days(17)), inMail(days(16)), note(days(15) + HOUR)),
    copy: { asOf: NOW - 2 * HOUR },
  };
  expect(judged(line)).toMatchObject({
    ...{ verdict: "QUIET", quietSince: new Date(days(15) + HOUR), quietDays: 14 },
    ...{ asOf: new Date(NOW - 2 * HOUR), judgedAt: new Date(NOW), staleAt: new Date(NOW - HOUR + DAY_MS + 1) },
  });
  expect(judged(line).reasons[0]?.message).toContain("was 14 days ago");
  expect(judged({})).toMatchObject({ verdict: "ACTIVE", quietSince: null, quietDays: null });
});

test("a ghosted deal counts the buyer's silence and not ours; one that was never answered counts from our first word", () => {
  const silent = judged({ deal: alone(inMail(days(16)), outMail(days(4))) });
  expect(silent).toMatchObject({ verdict: "GHOSTED", quietSince: new Date(days(16)), quietDays: 16 });
  const never = judged({ deal: alone(outMail(days(4)), outMail(days(12))) });
  expect(never).toMatchObject({ verdict: "GHOSTED", quietSince: new Date(days(12)), quietDays: 12 });
});

test("a reason says since when, by which threshold, in words that name the contact that counted, and shows its records", () => {
  const line = { deal: alone(inMail(days(16)), done(days(15))) };
  expect(judged(line).reasons).toEqual([
    {
      code: "NO_RECENT_ACTIVITY",
      since: new Date(days(15)),
      thresholdDays: 14,
      message:
        "The last known contact, an e-mail that was logged, was 15 days ago; from 14 days on a deal counts as quiet.",
      evidence: [{ type: "Activity", crmId: 8 }],
    },
    {
      code: "GHOSTED",
      since: new Date(days(16)),
      thresholdDays: 7,
      message:
        "The buyer's last known word, a mail from the buyer, was 16 days ago, and our last, an e-mail that was logged 15 days ago, is unanswered.",
      evidence: [
        { type: "Person", crmId: 7 },
        { type: "Activity", crmId: 8 },
      ],
    },
    {
      code: "NO_NEXT_STEP",
      since: new Date(days(15)),
      thresholdDays: 3,
      message: "No next step is planned, and the last known contact, an e-mail that was logged, was 15 days ago.",
      evidence: [{ type: "Activity", crmId: 8 }],
    },
  ]);
});

test("the words name no contact where there was none, and no age of data that was never read", () => {
  const message = (line: Line) => judged(line).reasons.map((reason) => reason.message)[0];
  expect(message({ deal: { ...alone(), addedAt: days(5) } })).toBe(
    "No next step is planned, and no contact is known since the deal was added 5 days ago.",
  );
  expect(message({ copy: { readAt: null, asOf: null } })).toBe(
    "The data from the CRM has not been read completely yet, so nothing can be said about this deal.",
  );
  expect(message({ copy: { readAt: days(2) } })).toBe(
    "The data from the CRM is more than a day old, so nothing can be said about this deal.",
  );
});

test("days are those of the zone: of a whole day's step, of the close date, and over a change of the clock", () => {
  const tallinn = rules({ calendar: { zone: "Europe/Tallinn", businessDays: false } });
  const at = (instant: string, deal: Partial<DealFacts>) =>
    judge({ ...HEALTHY, ...deal }, { ...COPY, ...tallinn, readAt: Date.parse(instant) }, new Date(instant));
  const step = { contacts: [inMail(Date.parse("2026-09-01T00:00:00Z"))], planned: [planned(MIDNIGHT, true)] };
  const has = (instant: string) => !at(instant, step).reasons.some(({ code }) => code === "NO_NEXT_STEP");
  // Tallinn's 1 October ends at 21:00 UTC.
  expect([has("2026-10-01T20:59:59.999Z"), has("2026-10-01T21:00:00Z")]).toEqual([true, false]);
  const passed = (instant: string) =>
    at(instant, { closeDay: MIDNIGHT }).reasons.some(({ code }) => code === "CLOSE_DATE_PASSED");
  expect([passed("2026-10-01T20:59:59.999Z"), passed("2026-10-01T21:00:00Z")]).toEqual([false, true]);
  // A night of 25 hours lies between: 14 days are an hour more.
  const silent = { contacts: [inMail(Date.parse("2026-10-20T12:00:00Z"))], planned: [] };
  expect(at("2026-11-03T12:59:59.999Z", silent).verdict).toBe("COOLING");
  expect(at("2026-11-03T13:00:00Z", silent)).toMatchObject({ verdict: "QUIET", quietDays: 14 });
});

test.each<[string, Line, number | null]>([
  ["the copy grows stale: that is no change of the deal", {}, days(-2) + 1],
  ["0.6 of the threshold", { deal: { contacts: [inMail(days(8))] } }, NOW + 0.4 * DAY_MS],
  [
    "the next step passes unkept",
    { deal: { contacts: [inMail(days(4))], planned: [planned(NOW + HOUR)] } },
    NOW + HOUR + 1,
  ],
  [
    "a meeting ahead is held",
    { deal: { ...alone(inMail(days(20))), meetings: [meeting(NOW + HOUR, NOW + 2 * HOUR)] } },
    NOW + 2 * HOUR,
  ],
  [
    "a far step comes near",
    { deal: { contacts: [inMail(days(14))], planned: [planned(days(-30) + HOUR)] } },
    NOW + HOUR,
  ],
  [
    "a far meeting comes near",
    {
      deal: {
        ...alone(inMail(days(14))),
        meetings: [meeting(days(-30) + 2 * HOUR, days(-30) + 3 * HOUR)],
      },
    },
    NOW + 2 * HOUR,
  ],
  ["an answer is overdue", { deal: alone(inMail(days(9)), outMail(days(3) + HOUR)) }, NOW + HOUR],
  ["stale already: nothing", { copy: { readAt: days(3) } }, null],
  ["won or lost: nothing", { deal: { isOpen: false } }, null],
])("the verdict changes next when: %s", (_case, line, at) => {
  expect(judged(line).nextChangeAt).toEqual(at === null ? null : new Date(at));
});
