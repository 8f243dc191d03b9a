import { standardRules } from "../../src/briefing/quiet/facts";
import { lastInteraction } from "../../src/briefing/quiet/judge";
import { type OurWrite, updatedByOthers } from "../../src/briefing/quiet/situation";
import { snoozeEnd } from "../../src/briefing/quiet/verdict";
import { DAY_MS } from "../../src/platform/clock";
import {
  alone,
  COPY,
  codesOf,
  days,
  done,
  HEALTHY,
  HOUR,
  inMail,
  judged,
  type Line,
  MIDNIGHT,
  meeting,
  NOW,
  note,
  outMail,
  planned,
} from "../support/quiet-lines";

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
  // CLOSE_DATE_PUSHED
  ["the day was moved later twice", { deal: { pushes: [days(9), days(2)] } }, "ACTIVE", ["CLOSE_DATE_PUSHED"]],
  ["the day was moved later once", { deal: { pushes: [days(9)] } }, "ACTIVE", []],
  [
    "the first of two moves was seen 400 days ago",
    { deal: { pushes: [days(400), days(2)] } },
    "ACTIVE",
    ["CLOSE_DATE_PUSHED"],
  ],
  ["that and 1 ms", { deal: { pushes: [days(400) - 1, days(2)] } }, "ACTIVE", []],
  [
    "once is enough",
    { deal: { pushes: [days(2)], ownDays: { CLOSE_DATE_PUSHED: 1 } } },
    "ACTIVE",
    ["CLOSE_DATE_PUSHED"],
  ],
  [
    "twice where three times are wanted",
    { deal: { pushes: [days(9), days(2)], ownDays: { CLOSE_DATE_PUSHED: 3 } } },
    "ACTIVE",
    [],
  ],
  [
    "moved later twice, on stale data",
    { deal: { pushes: [days(9), days(2)] }, copy: { readAt: days(2) } },
    "UNKNOWN",
    ["DATA_STALE"],
  ],
  ["moved later twice, and won", { deal: { isOpen: false, pushes: [days(9), days(2)] } }, "ACTIVE", []],
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

// Seen red with: kinds looked up in a plain object, where the words were those of a function.
test.each(["constructor", "toString", "__proto__", "demo"])(
  "an activity of the kind %s is called an activity",
  (kind) => {
    const [reason] = judged({ deal: alone(done(days(20), kind)) }).reasons;
    expect(reason?.message).toContain("The last known contact, an activity, was 20 days ago");
  },
);

test("a verdict that would only change after the year 9999 changes no more", () => {
  const last = Date.UTC(9_999, 11, 31, 23, 59, 59);
  const deal = { addedAt: last, inStageSince: last, contacts: [], planned: [planned(last)] };
  expect(judged({ deal }).nextChangeAt).toBeNull();
});

// A snooze of today at noon in UTC, and a call that was ticked off so many hours later.
test.each<[string, number, number, boolean, string?]>([
  ["UTC", 0, 2, true],
  ["UTC", 0, -2, false],
  ["UTC", -1, 20, false],
  ["UTC", 1, 2, true],
  ["UTC", 0, 2, false, "email"],
  ["Pacific/Auckland", 0, 2, false],
  ["Pacific/Auckland", 1, 2, true],
  ["America/Los_Angeles", 0, 14, true],
  ["America/Los_Angeles", -1, 2, false],
])(
  "in %s a call %i days from today, without a time, ticked off %i h after a snooze, ends it: %s",
  (zone, day, hours, ends, type = "call") => {
    const until = NOW + 9 * 24 * HOUR;
    const call = { ...done(NOW + hours * HOUR, type), day: MIDNIGHT + day * 24 * HOUR };
    const facts = { ...HEALTHY, contacts: [call], snooze: { at: NOW, until } };
    const now = NOW + 24 * HOUR;
    expect(snoozeEnd(facts, standardRules(zone), now)).toBe(ends ? now : until);
  },
);

// Seen red: a meeting among ourselves was the latest contact.
test("the latest contact is one with the buyer: of meetings, one that was held and that a buyer attended", () => {
  const meetings = [meeting(days(3), days(3)), meeting(days(2), days(2), false), meeting(NOW + HOUR, NOW + 2 * HOUR)];
  const facts = { ...HEALTHY, contacts: [inMail(days(9))], meetings };
  expect(lastInteraction({ facts, copy: COPY, now: new Date(NOW) })).toMatchObject({ kind: "MEETING", at: days(3) });
});

// When the CRM says that a deal was changed, our writes (what it said before, when they began and ended), and when others changed
// it. Seen red: what a person had changed in the minutes before our write was taken for ours, and so was not its last instant.
test.each<[string, number | null, OurWrite[], number | null]>([
  ["nobody but a person", 100, [], 100],
  ["our write alone", 100, [[50, 90, 110]], 50],
  ["our write at its very end", 110, [[50, 90, 110]], 50],
  ["a person just before our write", 105, [[95, 90, 110]], 95],
  ["a person just after it", 111, [[50, 90, 110]], 111],
  [
    "two writes of ours, one after the other",
    130,
    [
      [50, 90, 110],
      [100, 120, 140],
    ],
    50,
  ],
  ["our write to a deal that nobody had changed", 100, [[null, 90, 110]], null],
])("a deal was changed by %s", (_who, updatedAt, writes, others) => {
  expect(updatedByOthers(updatedAt, writes)).toBe(others);
});
