import type { Field, FieldType } from "../model/fields";
import type { CustomValue, Entity, User } from "../model/records";
import type { World } from "./operation";
import { type Body, isDate, isId, isObject } from "./request-body";
import { timeZoneOf } from "./time-zone";

/** What the CRM keeps of a value that was sent for a custom field, or why it refuses it. */
export type Outcome = { value: CustomValue } | { problem: string };

export interface Writing {
  readonly world: World;
  readonly user: User;
  readonly field: Field;
}

type Reader = (value: unknown, writing: Writing) => Outcome;

const MOST_LINE_CHARACTERS = 255;
const MOST_TEXT_CHARACTERS = 65_000;
const addressParts = [
  "country",
  "admin_area_level_1",
  "admin_area_level_2",
  "locality",
  "sublocality",
  "route",
  "street_number",
  "postal_code",
  "formatted_address",
] as const;

const readers: Readonly<Partial<Record<FieldType, Reader>>> = {
  varchar: textUpTo(MOST_LINE_CHARACTERS),
  varchar_auto: textUpTo(MOST_LINE_CHARACTERS),
  phone: textUpTo(MOST_LINE_CHARACTERS),
  text: textUpTo(MOST_TEXT_CHARACTERS),
  double: (value) => (typeof value === "number" ? { value } : { problem: "must be a number" }),
  int: (value) => (Number.isSafeInteger(value) ? { value: value as number } : { problem: "must be an integer" }),
  monetary,
  date: (value) => (isDate(value) ? { value } : { problem: "must be a date in YYYY-MM-DD format" }),
  daterange: (value) => range(value, isDate, "a date in YYYY-MM-DD format"),
  time,
  timerange: time,
  enum: (value, { field }) =>
    isOption(field, value) ? { value } : { problem: "must be the id of one of its options" },
  set: options,
  user: (value, { world }) =>
    isId(value) && world.company.users.has(value) ? { value } : { problem: "must be a user id" },
  org: (value, writing) => reference(value, "organization", writing),
  people: (value, writing) => reference(value, "person", writing),
  address,
};

/** The shapes of version 2, the same for reading and writing. Null clears a field of any type. */
export function customValue(value: unknown, writing: Writing): Outcome {
  const reader = readers[writing.field.field_type];
  if (!reader) return { problem: `fields of type ${writing.field.field_type} cannot be written` };
  return value === null ? { value } : reader(value, writing);
}

function textUpTo(most: number): Reader {
  return (value, { world }) => {
    if (typeof value !== "string") return { problem: "must be a string" };
    const characters = [...value];
    if (characters.length > most && world.rules.longTexts === "refuse") {
      return { problem: `must be at most ${most} characters long` };
    }
    // An unset custom field is null: an empty text leaves it unset.
    return { value: characters.slice(0, most).join("") || null };
  };
}

function monetary(value: unknown): Outcome {
  if (!isObject(value)) return { problem: "must be an object with value and currency" };
  const { value: amount, currency } = value;
  const stray = strayMember(value, ["value", "currency"]);
  if (stray) return { problem: stray };
  if (typeof amount !== "number") return { problem: "value must be a number" };
  if (typeof currency !== "string" || !currencies.has(currency)) return { problem: "currency must be a currency code" };
  return { value: { value: amount, currency } };
}

const currencies = new Set(Intl.supportedValuesOf("currency"));

function range(value: unknown, isRight: (member: unknown) => member is string, what: string): Outcome {
  if (!isObject(value)) return { problem: "must be an object with value and until" };
  const stray = strayMember(value, ["value", "until"]);
  if (stray) return { problem: stray };
  const { value: from, until } = value;
  if (!isRight(from) || !isRight(until)) return { problem: `value and until must each be ${what}` };
  return { value: { value: from, until } };
}

/** The zone is the user's unless it is named; a zone id that was sent is dropped. */
function time(value: unknown, { user, field }: Writing): Outcome {
  const members = field.field_type === "timerange" ? ["value", "until"] : ["value"];
  if (!isObject(value)) return { problem: `must be an object with ${members.join(" and ")}` };
  const stray = strayMember(value, [...members, "timezone_name", "timezone_id"]);
  if (stray) return { problem: stray };
  if (!members.every((name) => isClock(value[name]))) return { problem: `${members.join(" and ")} must be HH:MM:SS` };
  const zone = timeZoneOf(value.timezone_name ?? user.timezone_name);
  if (!zone) return { problem: "timezone_name must be a name of the IANA time zone database" };
  const until = members.includes("until") ? { until: String(value.until) } : {};
  return { value: { value: String(value.value), ...until, ...zone } };
}

function isClock(value: unknown): boolean {
  return typeof value === "string" && /^([01]\d|2[0-3]):[0-5]\d:[0-5]\d$/.test(value);
}

function isOption(field: Field, value: unknown): value is number {
  return typeof value === "number" && (field.options ?? []).some((option) => option.id === value);
}

function options(value: unknown, { field }: Writing): Outcome {
  if (!Array.isArray(value)) return { problem: "must be an array of option ids" };
  if (value.length === 0) return { problem: "must hold at least one option id; null clears it" };
  const ids = value.filter((id) => isOption(field, id));
  if (ids.length < value.length) return { problem: "must hold ids of its options only" };
  return { value: [...new Set(ids)] };
}

function reference(
  value: unknown,
  entity: Extract<Entity, "organization" | "person">,
  { world, user }: Writing,
): Outcome {
  const record = isId(value) ? world.views.find(user, entity, value) : undefined;
  return record && !record.is_deleted ? { value: record.id } : { problem: `must be the id of a ${entity}` };
}

/** The value alone is enough; a part that is not sent becomes null. */
function address(value: unknown): Outcome {
  if (!isObject(value) || typeof value.value !== "string") return { problem: "must be an object with value" };
  const stray = strayMember(value, ["value", ...addressParts]);
  if (stray) return { problem: stray };
  const [part] = addressParts.filter((name) => typeof (value[name] ?? "") !== "string");
  if (part) return { problem: `${part} must be a string` };
  const text = (name: (typeof addressParts)[number]) => (value[name] as string | null | undefined) ?? null;
  return {
    value: {
      value: value.value,
      country: text("country"),
      admin_area_level_1: text("admin_area_level_1"),
      admin_area_level_2: text("admin_area_level_2"),
      locality: text("locality"),
      sublocality: text("sublocality"),
      route: text("route"),
      street_number: text("street_number"),
      postal_code: text("postal_code"),
      formatted_address: text("formatted_address"),
    },
  };
}

function strayMember(value: Body, known: readonly string[]): string | undefined {
  const stray = Object.keys(value).find((name) => !known.includes(name));
  return stray === undefined ? undefined : `"${stray}" is not allowed`;
}
