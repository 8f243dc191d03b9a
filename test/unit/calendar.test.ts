import {
  type Calendar,
  DAY_MS,
  daysBetween,
  isTimeZone,
  MINUTE_MS,
  plusDays,
  startOfDay,
} from "../../src/platform/clock";

const HOUR_MS = 60 * MINUTE_MS;
const ZONES = Intl.supportedValuesOf("timeZone");

/** Another way to the same: what the clocks of a zone show, as the text that `Intl` writes for people. */
function clockOf(zone: string): (at: number) => string {
  const format = new Intl.DateTimeFormat("sv-SE", { timeZone: zone, dateStyle: "short", timeStyle: "medium" });
  return (at) => format.format(at);
}
const written = (wall: number) => new Date(wall).toISOString().slice(0, 19).replace("T", " ");
const wallOf = (text: string) => Date.parse(`${text.replace(" ", "T")}Z`);

const QUARTER_MS = 15 * MINUTE_MS;

/** Minutes at which the clock of a zone is changed within the years: some zones did it at one past midnight. */
function changesOf(clock: (at: number) => string, from: number, to: number): number[] {
  const changes: number[] = [];
  const offset = (at: number) => wallOf(clock(at)) - at;
  for (let day = from; day < to; day += DAY_MS)
    if (offset(day) !== offset(day + DAY_MS))
      for (let quarter = day; quarter < day + DAY_MS; quarter += QUARTER_MS)
        if (offset(quarter) !== offset(quarter + QUARTER_MS))
          for (let at = quarter; at < quarter + QUARTER_MS; at += MINUTE_MS)
            if (offset(at) !== offset(at + MINUTE_MS)) changes.push(at + MINUTE_MS);
  return changes;
}

/** All instants at which the clock shows a time, looked for at every minute for a day around. */
function shownAt(clock: (at: number) => string, wall: number): number[] {
  const wanted = written(wall);
  const offsets = new Set(
    [-1, 0, 1].map((side) => wallOf(clock(wall + side * 1.5 * DAY_MS)) - (wall + side * 1.5 * DAY_MS)),
  );
  return [...offsets]
    .map((offset) => wall - offset)
    .filter((at) => clock(at) === wanted)
    .sort((a, b) => a - b);
}

const FROM = Date.UTC(process.env.DEEP ? 2000 : 2026, 0, 1);
const TO = Date.UTC(process.env.DEEP ? 2030 : 2027, 0, 1);

test("days of every IANA zone end at the same time of day, over all changes of its clock", () => {
  let changed = 0;
  for (const zone of ZONES) {
    const clock = clockOf(zone);
    const calendar: Calendar = { zone, businessDays: false };
    const edges = changesOf(clock, FROM, TO);
    changed += edges.length;
    for (const edge of [Date.UTC(2026, 5, 1, 12), ...edges])
      for (const slip of [-DAY_MS - HOUR_MS, -HOUR_MS - 1_000, -1_000, 0, HOUR_MS, DAY_MS]) {
        for (const days of [1, 3, 14]) {
          const at = edge + slip - days * DAY_MS;
          const wall = wallOf(clock(at)) + days * DAY_MS;
          const [first] = shownAt(clock, wall);
          const reached = plusDays(calendar, at, days);
          // A time that is skipped is as much later as the clock was put on.
          if (first === undefined)
            expect([wallOf(clock(reached)) > wall, edges.includes(reached) || reached > edge]).toEqual([true, true]);
          else
            expect([zone, new Date(at), days, new Date(reached)]).toEqual([zone, new Date(at), days, new Date(first)]);
          // A whole day that a zone leaves out, as Samoa did in 2011, passes with the one before.
          if ([days - 1, days + 1].some((other) => plusDays(calendar, at, other) === reached)) continue;
          expect(daysBetween(calendar, at, reached)).toBe(days);
          expect(daysBetween(calendar, at, reached - 1)).toBe(days - 1);
        }
      }
    for (const edge of edges) {
      const day = Math.floor(wallOf(clock(edge)) / DAY_MS) * DAY_MS;
      const begins = startOfDay(calendar, day);
      expect(clock(begins).slice(0, 10)).toBe(written(day).slice(0, 10));
      expect(wallOf(clock(begins - 1_000))).toBeLessThan(day);
    }
  }
  expect(ZONES.length).toBeGreaterThan(400);
  expect(changed).toBeGreaterThan(200);
});

const TALLINN: Calendar = { zone: "Europe/Tallinn", businessDays: false };
const at = (text: string) => Date.parse(`${text}Z`);

test("a part of a day is that part of the next one", () => {
  expect(plusDays(TALLINN, at("2026-10-01T12:00"), 8.4)).toBe(at("2026-10-09T21:36"));
  // The night of 25 October has an hour more.
  expect(plusDays(TALLINN, at("2026-10-23T12:00"), 1.5)).toBe(at("2026-10-25T00:30"));
});

test.each<[string, number, string]>([
  ["2026-10-01T12:00", 1, "2026-10-02T12:00"],
  ["2026-10-02T12:00", 1, "2026-10-05T12:00"],
  ["2026-10-02T12:00", 6, "2026-10-12T12:00"],
  ["2026-10-03T12:00", 1, "2026-10-06T00:00"],
  ["2026-10-04T23:59", 5, "2026-10-12T00:00"],
  ["2026-10-04T23:59", 0, "2026-10-04T23:59"],
  ["2026-10-05T00:00", 5, "2026-10-12T00:00"],
])("%s and %i business days is %s", (from, days, to) => {
  const calendar: Calendar = { zone: "UTC", businessDays: true };
  expect(new Date(plusDays(calendar, at(from), days))).toEqual(new Date(at(to)));
  if (days === 0) return;
  expect(daysBetween(calendar, at(from), at(to))).toBe(days);
  expect(daysBetween(calendar, at(from), at(to) - 1)).toBe(days - 1);
});

// Seen red: the part was of the time by the clock, which ended on a Sunday.
test.each<[string, number, string]>([
  ["2026-10-01T12:00", 0.5, "2026-10-02T00:00"],
  ["2026-10-02T12:00", 0.25, "2026-10-02T18:00"],
  ["2026-10-02T12:00", 0.6, "2026-10-05T02:24"],
  ["2026-10-02T12:00", 5.75, "2026-10-12T06:00"],
  ["2026-10-03T12:00", 0.5, "2026-10-05T12:00"],
  ["2026-10-04T12:00", 1.25, "2026-10-06T06:00"],
])("%s and %f business days is %s: no part of one passes on a weekend", (from, days, to) => {
  expect(new Date(plusDays({ zone: "UTC", businessDays: true }, at(from), days))).toEqual(new Date(at(to)));
});

test("business days are counted as a walk from day to day counts them", () => {
  const calendar: Calendar = { zone: "America/New_York", businessDays: true };
  const day = new Intl.DateTimeFormat("en-US", { timeZone: calendar.zone, weekday: "short" });
  for (let from = at("2026-09-28T15:00"); from < at("2026-10-06T15:00"); from += DAY_MS) {
    if (/^S/.test(day.format(from))) continue;
    let passed = 0;
    for (let to = from + DAY_MS; to < from + 25 * DAY_MS; to += DAY_MS) {
      if (!/^S/.test(day.format(to))) passed += 1;
      if (!/^S/.test(day.format(to))) expect(daysBetween(calendar, from, to)).toBe(passed);
    }
  }
});

test("what is no name of a zone is none", () => {
  expect(["Europe/Tallinn", "UTC", "+02:00", "Mars/Olympus", ""].map(isTimeZone)).toEqual([
    true,
    true,
    false,
    false,
    false,
  ]);
});
