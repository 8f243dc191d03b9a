import { type CrmFieldOption, isWritableType, type WritableType } from "../crm/parsing/fields";
import { timeOfDay } from "../crm/parsing/values";
import {
  address,
  decimal,
  isObject,
  line,
  longText,
  monetary,
  phone,
  type Reading,
  reference,
  strayOf,
  type ValueKind,
  whole,
} from "./value-kinds";

/** So many are named in a message. */
const NAMED = 10;

type Found = { option: CrmFieldOption } | { fault: string };

/** Finds options by id, or by an exact label that means one option only. A list of them has thousands, and so may a value. */
function finderOf(options: readonly CrmFieldOption[]): (value: unknown) => Found {
  const named = new Map<string, CrmFieldOption[]>();
  for (const option of options) {
    for (const name of [`id ${option.id}`, `label ${option.label}`])
      if (!named.get(name)?.push(option)) named.set(name, [option]);
  }
  return (value) => {
    if (typeof value !== "number" && typeof value !== "string")
      return { fault: "is neither an option's id nor its label" };
    const names = [`id ${value}`, ...(typeof value === "string" ? [`label ${value}`] : [])];
    const found = [...new Set(names.flatMap((name) => named.get(name) ?? []))];
    const [option] = found;
    if (!option) return { fault: `is none of the options ${namesOf(options)}` };
    return found.length > 1 ? { fault: `means several options: ${namesOf(found)}. Use the id` } : { option };
  };
}

function namesOf(options: readonly CrmFieldOption[]): string {
  const names = options.slice(0, NAMED).map(({ id, label }) => `"${label}" (${id})`);
  return `${names.join(", ")}${options.length > NAMED ? ", ..." : ""}` || "(there are none)";
}

const choice: ValueKind = {
  shape: 'one option, by id or by its exact label, for example 101 or "Enterprise"',
  read: (value, options) => {
    const found = finderOf(options)(value);
    return "option" in found ? { wire: found.option.id } : found;
  },
  isSame: (sent, echoed) => idOf(echoed) !== null && idOf(sent) === idOf(echoed),
};

/** Of an echo that is no id, such as an object without a way to become text, nothing is made. */
const idOf = (value: unknown) => (typeof value === "number" || typeof value === "string" ? String(value) : null);
const idsOf = (value: unknown) => (Array.isArray(value) ? [...new Set(value.map(idOf))].sort().join() : null);

const choices: ValueKind = {
  shape: 'a list of options, by id or by exact label, for example [101, "Automation"]',
  read: (value, options) => {
    if (!Array.isArray(value)) return { fault: "is not a list" };
    if (value.length > options.length * 2) return { fault: "is longer than the list of options" };
    const ids = new Set<number | string>();
    const find = finderOf(options);
    for (const one of value) {
      const found = find(one);
      if ("fault" in found) return { fault: `has a member that ${found.fault}` };
      ids.add(found.option.id);
    }
    // The CRM refuses an empty list and takes null for it.
    return { wire: ids.size > 0 ? [...ids] : null };
  },
  isSame: (sent, echoed) => idsOf(echoed) !== null && idsOf(sent) === idsOf(echoed),
};

const DAY = /^[1-9]\d{3}-\d{2}-\d{2}$/;

/** A February 30th parses in JavaScript. */
function isDay(value: unknown): value is string {
  if (typeof value !== "string" || !DAY.test(value)) return false;
  const date = new Date(`${value}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(value);
}

/** null for anything that is no time of day. */
const clockOf = (value: unknown) => (typeof value === "string" ? timeOfDay(value.trim()) : null);

/** One name for a zone that has several; null for what is none. Offsets such as +02:00 are no zone of the CRM. */
function zoneOf(name: unknown): string | null {
  if (typeof name !== "string" || !/^[A-Z]/i.test(name)) return null;
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone;
  } catch {
    return null;
  }
}

const date: ValueKind = {
  shape: 'a calendar day as YYYY-MM-DD, for example "2026-11-20"',
  read: (value) => (isDay(value) ? { wire: value } : { fault: "is not a calendar day" }),
  isSame: (sent, echoed) => sent === echoed,
};

const dateRange: ValueKind = {
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

const time = ofDay(
  ["value"],
  'a time of day, for example "14:30" or { "value": "14:30:00", "timezone_name": "Europe/Berlin" }',
);
const timeRange = ofDay(
  ["value", "until"],
  'two times of day, for example { "value": "09:00", "until": "17:00", "timezone_name": "Europe/Berlin" }',
);

/** Every type that can be written, as one table (wire facts 7.2). */
const KINDS: Record<WritableType, ValueKind> = {
  varchar: line,
  varchar_auto: line,
  text: longText,
  phone,
  double: decimal,
  int: whole,
  monetary,
  date,
  daterange: dateRange,
  time,
  timerange: timeRange,
  enum: choice,
  set: choices,
  user: reference("user"),
  org: reference("organization"),
  people: reference("person"),
  address,
};

/** A field as the CRM's list has it. */
export interface FieldDefinition {
  name: string;
  type: string;
  options: readonly CrmFieldOption[];
  writable: boolean;
}

export const notWritable = ({ name, type }: Pick<FieldDefinition, "name" | "type">): string =>
  `the field "${name}" (${type}) cannot be written in the CRM. Nominate another.`;

/** The value as it is to be sent, or what the field expects instead, as a sentence for people. null and "" clear any field. */
export function readValue({ name, type, options, writable }: FieldDefinition, value: unknown): Reading {
  if (!writable || !isWritableType(type)) return { fault: notWritable({ name, type }) };
  if (value === null || value === "") return { wire: null };
  if (hasUnwritableText(value)) return { fault: "it has a NUL character or half a surrogate pair. Remove that." };
  const { read, shape } = KINDS[type];
  const reading = read(value, options);
  return "wire" in reading
    ? reading
    : { fault: `it ${reading.fault}. The field "${name}" (${type}) expects ${shape}; "" clears it.` };
}

/** Whether the record holds what was sent. */
export function isApplied(type: string, sent: unknown, held: unknown): boolean {
  if (sent === null)
    return held === null || held === undefined || held === "" || (Array.isArray(held) && held.length === 0);
  return isWritableType(type) && KINDS[type].isSame(sent, held);
}

function hasUnwritableText(value: unknown): boolean {
  if (typeof value === "string") return /\0|\p{Surrogate}/u.test(value);
  if (typeof value !== "object" || value === null) return false;
  // Deeper than any field's value is no text to look at: the field's own check refuses it.
  return Object.entries(value)
    .flat()
    .some((member) => typeof member === "string" && hasUnwritableText(member));
}
