import {
  type ConnectionFacts,
  type Contact,
  type DealFacts,
  type DealMeeting,
  type PlannedFact,
  standardRules,
} from "../../src/briefing/quiet/facts";
import { DAY_MS, MINUTE_MS } from "../../src/platform/clock";
import fc from "./properties";

/** The instant around which random facts lie. */
export const NOW = Date.parse("2026-10-01T12:00:00.000Z");

/** Days at which some rule turns, so that random facts meet their edges. */
const EDGES = [0, 1, 3, 3.6, 6, 7, 8.4, 10, 14, 30];

/** An instant near an edge or anywhere, in [NOW - most days, NOW + most days]. */
function around(leastDays: number, mostDays: number): fc.Arbitrary<number> {
  const edge = fc
    .tuple(fc.constantFrom(...EDGES), fc.integer({ min: -2, max: 2 }), fc.constantFrom(-1, 1))
    .map(([days, slip, side]) => NOW + side * days * DAY_MS + slip);
  const any = fc.integer({ min: NOW + leastDays * DAY_MS, max: NOW + mostDays * DAY_MS });
  return fc.oneof(edge, any).filter((at) => at >= NOW + leastDays * DAY_MS && at <= NOW + mostDays * DAY_MS);
}

export const past = around(-45, 0);
const past1 = fc.option(past);
const dayStart = (at: number) => Math.floor(at / DAY_MS) * DAY_MS;

const contact: fc.Arbitrary<Contact> = fc
  .record({
    kind: fc.constantFrom("INCOMING_MAIL", "OUTGOING_MAIL", "ACTIVITY", "NOTE"),
    at: past,
    crmId: fc.integer({ min: 1, max: 5 }),
    type: fc.constantFrom("call", "meeting", "lunch", "task", "deadline", "email", "demo"),
    named: fc.boolean(),
    // So many days ago as it was ticked off, it had a day and no time.
    daysAgo: fc.option(fc.nat(2)),
  })
  .map(({ type, named, daysAgo, ...found }) => {
    const isActivity = found.kind === "ACTIVITY";
    const day = isActivity && daysAgo !== null ? dayStart(found.at + DAY_MS / 2) - daysAgo * DAY_MS : null;
    return {
      day,
      ...found,
      activityType: isActivity ? type : null,
      withPerson: isActivity ? named : found.kind !== "NOTE",
    };
  });
const meeting: fc.Arbitrary<DealMeeting> = fc
  .record({
    meetingId: fc.uuid(),
    startsAt: around(-45, 45),
    length: fc.constantFrom(0, 30 * MINUTE_MS),
    withBuyer: fc.boolean(),
  })
  .map(({ length, ...found }) => ({ ...found, endsAt: found.startsAt + length }));
const planned: fc.Arbitrary<PlannedFact> = fc
  .record({ crmId: fc.integer({ min: 1, max: 50 }), dueAt: around(-45, 45), wholeDay: fc.boolean() })
  .map((found) => (found.wholeDay ? { ...found, dueAt: dayStart(found.dueAt) } : found));

export const dealFacts: fc.Arbitrary<DealFacts> = fc.record({
  dealId: fc.constant(1),
  isOpen: fc.nat(9).map((n) => n > 0),
  addedAt: past1,
  inStageSince: past1,
  stageId: fc.option(fc.constant(5)),
  daysToRotten: fc.option(fc.integer({ min: 1, max: 40 })),
  updatedAt: past1,
  closeDay: fc.option(around(-5, 5).map(dayStart)),
  pushes: fc.array(around(-430, 0), { maxLength: 5 }),
  hasMail: fc.nat(4).map((n) => n > 0),
  hasFirstMail: fc.constant(false),
  inactiveOwnerId: fc.option(fc.constant(3), { freq: 9 }),
  isIncomplete: fc.boolean(),
  incompleteSince: fc.constant(null),
  contacts: fc.array(contact, { maxLength: 6 }),
  meetings: fc.array(meeting, { maxLength: 3 }),
  planned: fc.array(planned, { maxLength: 3 }),
});

/** Zones that change their clocks at both ends of the earth, by half an hour, at midnight, and never. */
const ZONES = [
  "UTC",
  "Europe/Tallinn",
  "America/New_York",
  "Pacific/Auckland",
  "Australia/Lord_Howe",
  "America/Santiago",
  "Asia/Kolkata",
];

/** @param zones of the calendar */
export const copyFactsIn = (zones: readonly string[]): fc.Arbitrary<ConnectionFacts> =>
  fc
    .record({
      readAt: fc.oneof({ weight: 9, arbitrary: fc.integer({ min: NOW - DAY_MS, max: NOW }) }, past1),
      zone: fc.constantFrom(...zones),
      businessDays: fc.nat(3).map((n) => n === 0),
    })
    .map(({ readAt, zone, businessDays }) => {
      const rules = standardRules(zone);
      return {
        readAt,
        asOf: readAt,
        watchedSince: NOW - 500 * DAY_MS,
        rules: { ...rules, calendar: { zone, businessDays } },
      };
    });
export const copyFacts = copyFactsIn(ZONES);
