import { createHash } from "node:crypto";
import type { Field, FieldEntity, FieldType } from "../model/fields";
import type { CustomFields, CustomValue } from "../model/records";
import { DAY, dateOnly } from "../model/times";
import { firstId, type SeedContext } from "./context";
import type { Random } from "./random";
import { storyCounts } from "./story-counts";
import { cities, noteSentences } from "./words";

/** Every type of custom field the CRM offers whose values this simulator knows the shape of. */
const customTypes: readonly (readonly [FieldType, string])[] = [
  ["varchar", "Reference"],
  ["varchar_auto", "Source system"],
  ["text", "Meeting summary"],
  ["phone", "Direct line"],
  ["double", "Score"],
  ["int", "Seats"],
  ["monetary", "Yearly budget"],
  ["date", "Contract end"],
  ["daterange", "Trial period"],
  ["time", "Best time to call"],
  ["timerange", "Service window"],
  ["enum", "Segment"],
  ["set", "Interests"],
  ["user", "Solution engineer"],
  ["org", "Reseller"],
  ["people", "Champion"],
  ["address", "Delivery address"],
];

const optionLabels: Readonly<Partial<Record<FieldType, readonly string[]>>> = {
  enum: ["Consumer", "Small business", "Enterprise"],
  set: ["Analytics", "Automation", "Compliance", "Forecasting"],
};

const addressParts = ["admin_area_level_1", "locality", "route", "street_number", "postal_code", "formatted_address"];

export function customFieldsOf(entity: FieldEntity, seed: string): Field[] {
  return customTypes.map(([type, name], position) => {
    const code = createHash("sha1").update(`${seed}/${entity}/${type}`).digest("hex");
    return {
      field_name: name,
      field_code: code,
      field_type: type,
      options: optionsOf(type, position),
      subfields: subfieldsOf(type, code, name),
      is_custom_field: true,
      is_optional_response_field: false,
    };
  });
}

export function optionsOf(type: FieldType, position: number, labels = optionLabels[type]): Field["options"] {
  if (type !== "enum" && type !== "set") return null;
  return (labels ?? []).map((label, index) => ({ id: 100 + position * 10 + index, label, color: null }));
}

export function subfieldsOf(type: FieldType, code: string, name: string): Field["subfields"] {
  const sub = (part: string, fieldType: string) => ({
    field_code: `${code}_${part}`,
    field_name: `${name}: ${part.replaceAll("_", " ")}`,
    field_type: fieldType,
  });
  if (type === "monetary") return [sub("currency", "varchar")];
  if (type === "daterange") return [sub("until", "date")];
  if (type === "time") return [sub("timezone_id", "int")];
  if (type === "timerange") return [sub("until", "time"), sub("timezone_id", "int")];
  if (type === "address") return addressParts.map((part) => sub(part, "varchar"));
  return null;
}

export function emptyFields(fields: readonly Field[]): CustomFields {
  return Object.freeze(
    Object.fromEntries(fields.filter((field) => field.is_custom_field).map((field) => [field.field_code, null])),
  );
}

const FILLED_SHARE = 0.3;

/** Most records fill nothing and share one object; the others fill one to four fields. */
export function fillFields(
  context: Omit<SeedContext, "customFields">,
  entity: FieldEntity,
  random: Random,
): CustomFields {
  const empty = context.company.emptyCustomFields[entity];
  if (!random.chance(FILLED_SHARE)) return empty;
  const filled: Record<string, CustomValue> = { ...empty };
  const custom = context.company.fields[entity].filter((field) => field.is_custom_field);
  for (let left = random.int(1, 4); left > 0; left--) {
    const field = random.pick(custom);
    filled[field.field_code] = valueFor(field, context, random);
  }
  return filled;
}

type Maker = (random: Random, context: Omit<SeedContext, "customFields">, field: Field) => CustomValue;

const clock = (random: Random, hour: number) =>
  `${String(hour).padStart(2, "0")}:${random.pick(["00", "15", "30"])}:00`;
const zone = { timezone_id: 203, timezone_name: "Europe/Tallinn" };
const orNull = (ids: readonly number[], random: Random) => (ids.length > 0 ? random.pick(ids) : null);

const makers: Readonly<Partial<Record<FieldType, Maker>>> = {
  varchar: (random) => `REF-${random.int(1_000, 999_999)}`,
  varchar_auto: (random) => random.pick(["Website", "Import 2024", "Messe Köln"]),
  text: (random) => `${random.pick(noteSentences)}\n${random.pick(noteSentences)}`,
  phone: (random) => `+372 5${random.int(100_000, 999_999)}`,
  double: (random) => random.int(0, 10_000) / 100,
  int: (random) => random.int(1, 500),
  monetary: (random) => ({ value: random.int(100, 9_999_999) / 100, currency: random.pick(["EUR", "USD"]) }),
  date: (random, { now }) => dateOnly(now + random.int(-200, 400) * DAY),
  daterange: (random, { now }) => {
    const start = now + random.int(-200, 200) * DAY;
    return { value: dateOnly(start), until: dateOnly(start + random.int(1, 60) * DAY) };
  },
  time: (random) => ({ value: clock(random, random.int(7, 17)), ...zone }),
  timerange: (random) => ({
    value: clock(random, random.int(7, 11)),
    until: clock(random, random.int(12, 19)),
    ...zone,
  }),
  enum: (random, _context, field) => random.pick(field.options ?? []).id,
  set: (random, _context, field) => {
    const all = (field.options ?? []).map((option) => option.id);
    return all.slice(random.int(0, all.length - 1));
  },
  user: (random, { pool }) => orNull(pool.sellers, random),
  org: (random, { pool }) => orNull(pool.organizations, random),
  // Persons come after organizations: their ids are known before they are made. The stories' people are left out.
  people: (random, { counts }) => firstId.person + storyCounts.persons + random.int(0, counts.persons - 1),
  address: (random) => customAddress(random),
};

function valueFor(field: Field, context: Omit<SeedContext, "customFields">, random: Random): CustomValue {
  return makers[field.field_type]?.(random, context, field) ?? null;
}

function customAddress(random: Random): CustomValue {
  const city = random.pick(cities);
  const number = String(random.int(1, 180));
  const value = `${city.route} ${number}, ${city.locality}, ${city.country}`;
  return {
    value,
    country: city.country,
    admin_area_level_1: city.admin,
    admin_area_level_2: null,
    locality: city.locality,
    sublocality: null,
    route: city.route,
    street_number: number,
    postal_code: city.postal_code,
    formatted_address: value,
  };
}
