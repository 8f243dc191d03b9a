import { isObject, type Reading, strayOf, type ValueKind } from "./value-kind";

const DAY = /^[1-9]\d{3}-\d{2}-\d{2}$/;
const CLOCK = /^(\d{1,2}):(\d{2})(?::(\d{2}))?$/;

/** A February 30th parses in JavaScript. */
function isDay(value: unknown): value is string {
  if (typeof value !== "string" || !DAY.test(value)) return false;
  const date = new Date(`${value}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(value);
}

/** As HH:MM:SS; null for anything that is no time of day. */
function clockOf(value: unknown): string | null {
  const match = typeof value === "string" ? CLOCK.exec(value.trim()) : null;
  const [hours, minutes, seconds] = [Number(match?.[1]), Number(match?.[2]), Number(match?.[3] ?? 0)];
  if (!match || hours > 23 || minutes > 59 || seconds > 59) return null;
  return [hours, minutes, seconds].map((part) => String(part).padStart(2, "0")).join(":");
}

/** One name for a zone that has several; null for what is none. Offsets such as +02:00 are no zone of the CRM. */
function zoneOf(name: unknown): string | null {
  if (typeof name !== "string" || !/^[A-Z]/i.test(name)) return null;
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone;
  } catch {
    return null;
  }
}

export const date: ValueKind = {
  shape: 'a calendar day as YYYY-MM-DD, for example "2026-11-20"',
  read: (value) => (isDay(value) ? { wire: value } : { fault: "is not a calendar day" }),
  isSame: (sent, echoed) => sent === echoed,
};

export const dateRange: ValueKind = {
  shape: 'two calendar days, for example { "value": "2026-11-20", "until": "2026-12-20" }',
  read: (value) => {
    if (!isObject(value)) return { fault: "is not an object with value and until" };
    const stray = strayOf(value, ["value", "until"]);
    if (stray !== undefined) return { fault: `has an unknown member "${stray}"` };
    const { value: from, until } = value;
    if (!isDay(from) || !isDay(until)) return { fault: "has no calendar day in value or until" };
    return until < from ? { fault: "ends before it begins" } : { wire: { value: from, until } };
  },
  isSame: (sent, echoed) =>
    isObject(sent) && isObject(echoed) && sent.value === echoed.value && sent.until === echoed.until,
};

/** The CRM adds the user's zone and its own number for a zone, and may drop a number that is sent. */
function ofDay(members: readonly ("value" | "until")[], shape: string): ValueKind {
  return {
    shape,
    read: (value) => readClocks(members.length === 1 && typeof value === "string" ? { value } : value, members),
    isSame: (sent, echoed) =>
      isObject(sent) &&
      isObject(echoed) &&
      members.every((name) => clockOf(echoed[name]) === sent[name]) &&
      (sent.timezone_name === undefined || zoneOf(echoed.timezone_name) === zoneOf(sent.timezone_name)),
  };
}

function readClocks(value: unknown, members: readonly ("value" | "until")[]): Reading {
  if (!isObject(value)) return { fault: `is not an object with ${members.join(" and ")}` };
  const stray = strayOf(value, [...members, "timezone_name", "timezone_id"]);
  if (stray !== undefined) return { fault: `has an unknown member "${stray}"` };
  const clocks = members.map((name) => [name, clockOf(value[name])] as const);
  const wrong = clocks.find(([, clock]) => clock === null);
  if (wrong) return { fault: `has no time of day in ${wrong[0]}` };
  const { timezone_name: zone = null, timezone_id: id = null } = value;
  if (zone === null)
    return id === null ? { wire: Object.fromEntries(clocks) } : { fault: "has a timezone_id and no timezone_name" };
  if (zoneOf(zone) === null) return { fault: "has a timezone_name that is no zone of the IANA database" };
  return { wire: { ...Object.fromEntries(clocks), timezone_name: zone } };
}

export const time = ofDay(
  ["value"],
  'a time of day, for example "14:30" or { "value": "14:30:00", "timezone_name": "Europe/Berlin" }',
);
export const timeRange = ofDay(
  ["value", "until"],
  'two times of day, for example { "value": "09:00", "until": "17:00", "timezone_name": "Europe/Berlin" }',
);
