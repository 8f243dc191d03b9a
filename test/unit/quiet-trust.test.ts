import type { DealFacts } from "../../src/briefing/quiet/facts";
import { judge } from "../../src/briefing/quiet/judge";
import { DAY_MS, MINUTE_MS } from "../../src/platform/clock";
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
  rules,
} from "../support/quiet-lines";

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
  const deal = alone(inMail(days(9)), outMail(days(8)));
  const { reasons, ...signal } = judged({ deal, copy: business });
  expect(reasons[0]?.message).toContain("was 7 business days ago");
  expect(signal).toMatchObject({ quietDays: 7, businessDays: true });
  expect(judged({ deal })).toMatchObject({ quietDays: 9, businessDays: false });
});

test("quietSince is the last contact, and quietDays are whole days up to the judgement, as in each message", () => {
  const line = {
    deal: alone(outMail(days(17)), inMail(days(16)), note(days(15) + HOUR)),
    copy: { asOf: NOW - 2 * HOUR },
  };
  expect(judged(line)).toMatchObject({
    verdict: "QUIET",
    quietSince: new Date(days(15) + HOUR),
    quietDays: 14,
    asOf: new Date(NOW - 2 * HOUR),
    judgedAt: new Date(NOW),
    staleAt: new Date(NOW - HOUR + DAY_MS + 1),
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
      sinceDay: null,
      thresholdDays: 14,
      message:
        "The last known contact, an e-mail that was logged, was 15 days ago; from 14 days on a deal counts as quiet.",
      evidence: [{ type: "Activity", crmId: 8 }],
    },
    {
      code: "GHOSTED",
      since: new Date(days(16)),
      sinceDay: null,
      thresholdDays: 7,
      message:
        "The buyer's last known word, a mail from the buyer, was 16 days ago, and no answer is known to our last, an e-mail that was logged 15 days ago.",
      evidence: [
        { type: "Person", crmId: 7 },
        { type: "Activity", crmId: 8 },
      ],
    },
    {
      code: "NO_NEXT_STEP",
      since: new Date(days(15)),
      sinceDay: null,
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
  expect(judged({ copy: { readAt: days(2) } }).reasons).toMatchObject([{ since: new Date(days(2)), thresholdDays: 1 }]);
});

test("a close date that was moved later is told with the day of the first move, and since when syncs would have seen one", () => {
  const auckland = rules({ calendar: { zone: "Pacific/Auckland", businessDays: true } });
  const pushes = [days(2), days(9), days(40)];
  const [twice, reached, once] = [
    judged({ deal: { pushes }, copy: auckland }),
    judged({ deal: { pushes }, copy: { watchedSince: days(900) } }),
    judged({ deal: { pushes: [days(2)], ownDays: { CLOSE_DATE_PUSHED: 1 } } }),
  ].map(({ reasons }) => reasons[0]);
  expect(twice).toEqual({
    code: "CLOSE_DATE_PUSHED",
    since: new Date(days(40)),
    sinceDay: null,
    thresholdDays: null,
    message: "The expected close date was moved later 3 times since 2026-08-23, as seen by the syncs since 2026-03-16.",
    evidence: [{ type: "Deal", crmId: 1 }],
  });
  expect(reached?.message).toContain("3 times since 2026-08-22, as seen by the syncs since 2025-08-27.");
  expect(once?.message).toContain("was moved later 1 time since 2026-09-29,");
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
