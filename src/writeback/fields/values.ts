import { type CrmFieldOption, isWritableType, type WritableType } from "../../crm/parsing/fields";
import { choice, choices } from "./choice-values";
import { decimal, monetary, reference, whole } from "./number-values";
import { address, line, longText, phone } from "./text-values";
import { date, dateRange, time, timeRange } from "./time-values";
import type { Reading, ValueKind } from "./value-kind";

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
}

/** The value as it is to be sent, or what the field expects instead, as a sentence for people. null and "" clear any field. */
export function readValue({ name, type, options }: FieldDefinition, value: unknown): Reading {
  if (!isWritableType(type)) {
    return { fault: `the field "${name}" has the type ${type} in the CRM, which cannot be written. Nominate another.` };
  }
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
