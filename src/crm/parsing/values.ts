import { z } from "zod";
import { LONGEST_TEXT, normalizeAddress } from "../../platform/email-address";
import { cutHtml, cutText } from "../../platform/safe-html";

/** The value of a JSON text; undefined where the text is no JSON. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const [QUOTE, BACKSLASH, COMMA, LIST, OBJECT, LETTER_U, LETTER_D, ZERO] = Buffer.from('"\\,[{ud0');
const LOWER_CASE = 0x20;

/** What a part begins with, in whatever else it may stand. */
const BEGINNINGS = [",", "[", "{", "\\u"];

/**
 * Whether JSON text has more parts than that: values, and escapes of what PostgreSQL does not take, each of which costs
 * work of its own. Looked for as texts first, which takes a fourth of parsing it: character by character takes as long.
 */
export function hasMoreParts(text: string, most: number): boolean {
  let possible = 0;
  for (const beginning of BEGINNINGS) {
    for (let at = text.indexOf(beginning); at >= 0 && possible <= most; at = text.indexOf(beginning, at + 1))
      possible += 1;
  }
  if (possible <= most) return false;
  let parts = 0;
  let isString = false;
  for (let at = 0; at < text.length && parts <= most; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) isString = !isString;
    else if (!isString) parts += code === COMMA || code === LIST || code === OBJECT ? 1 : 0;
    else if (code === BACKSLASH) {
      at += 1;
      if (text.charCodeAt(at) === LETTER_U && isUnstorable(text, at + 1)) parts += 1;
    }
  }
  return parts > most;
}

/** NUL, or half a character: the four digits that follow its `\u`. */
function isUnstorable(text: string, at: number): boolean {
  if ((text.charCodeAt(at) | LOWER_CASE) === LETTER_D) return true;
  for (let digit = at; digit < at + 4; digit += 1) if (text.charCodeAt(digit) !== ZERO) return false;
  return true;
}

/** CRM ids are whole numbers; what JavaScript cannot hold exactly is refused rather than rounded. */
export const id = z.number().int().positive();
export const optionalId = id.nullish().transform((value) => value ?? null);

/** A count or a position: what the column cannot hold is refused here rather than failing a whole page. */
export const optionalCount = z
  .int32()
  .nullish()
  .transform((value) => value ?? null);

/** UTF-16 units of a name, title, subject, label, address or reason; the CRM's own are 255. It is only shown: cut. */
export const MAX_TEXT = 1_000;
/** UTF-16 units of a note's HTML; the CRM takes about as much. What is longer is kept cut, and says so. */
export const MAX_NOTE = 100_000;
/** Of a longer note, where the last line may name what we wrote. */
const MAX_NOTE_ENDING = 1_000;

/** Text for display: missing and null become "", because the wire has both where people left a field empty. */
export const text = z
  .string()
  .nullish()
  .transform((value) => cutText(value ?? "", MAX_TEXT));
export const noteContent = z
  .string()
  .nullish()
  .transform((value) => {
    const sent = value ?? "";
    const truncated = sent.length > MAX_NOTE;
    return { content: cutHtml(sent, MAX_NOTE), truncated, ending: truncated ? sent.slice(-MAX_NOTE_ENDING) : "" };
  });
/** Text of a single record that is stored by itself: PostgreSQL takes no NUL; a page's rows are mended all at once. */
export const storableText = text.transform((value) => value.replaceAll("\0", "\ufffd"));
export const optionalText = z
  .string()
  .nullish()
  .transform((value) => (value ? cutText(value, MAX_TEXT) : null));

/** v1 flags are 0/1, v2 flags are booleans, and some samples mix them. */
export const flag = z.union([z.boolean(), z.literal(0), z.literal(1)]).transform(Boolean);
export const optionalFlag = flag.nullish().transform((value) => value ?? null);

const INSTANT = /^(.{10})[T ]((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d)(?:\.\d+)?(?:Z|\+00:00)?$/;
const DAY = /^(?!0000)\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])$/;
const TIME_OF_DAY = /^([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?$/;

/** v1 `YYYY-MM-DD HH:MM:SS` (UTC without a zone) and v2 RFC 3339, as RFC 3339 text; null for null and "". */
export const optionalInstant = z
  .string()
  .nullish()
  .transform((value, context) => {
    if (!value) return null;
    const [, day = "", time] = INSTANT.exec(value) ?? [];
    if (!isDay(day)) {
      context.addIssue("is not a time stamp of the CRM");
      return z.NEVER;
    }
    return `${day}T${time}Z`;
  });
export const instant = optionalInstant.transform((value, context) => {
  if (value === null) context.addIssue("is missing");
  return value ?? z.NEVER;
});

export const optionalDay = z
  .string()
  .nullish()
  .transform((value, context) => {
    if (value && !isDay(value)) context.addIssue("is not a calendar day");
    return value || null;
  });

/** A February 30th parses in JavaScript and would then fail a whole page in PostgreSQL. Every month has 28 days. */
function isDay(text: string): boolean {
  return DAY.test(text) && (Number(text.slice(8)) <= 28 || new Date(text).toISOString().startsWith(text));
}

/** As HH:MM:SS; `HH:MM` and `H:MM` occur, too. null: it is none. */
export function timeOfDay(text: string): string | null {
  const [found, hours = "", minutes, seconds = "00"] = TIME_OF_DAY.exec(text) ?? [];
  return found === undefined ? null : `${hours.padStart(2, "0")}:${minutes}:${seconds}`;
}

/** "" and null mean that the activity has only a day. */
export const optionalTimeOfDay = z
  .string()
  .nullish()
  .transform((value, context) => {
    const time = value ? timeOfDay(value) : null;
    if (value && time === null) context.addIssue("is not a time of day");
    return time;
  });

/**
 * Money as exact decimal text. The wire has a JSON number of about 16 significant digits, which a double gives back
 * as it came; PostgreSQL's numeric reads the exponent form of very large and small ones exactly.
 */
export const optionalDecimal = z
  .number()
  .nullish()
  .transform((value) => (value == null ? null : String(value)));

/** Deeper than any documented value (an address or a money object is one level); keeps later recursion bounded. */
const MAX_CUSTOM_FIELD_DEPTH = 8;

/** Of a record, as JSON: three of the CRM's largest texts. Without some of them it would be another record: rejected. */
export const MAX_CUSTOM_FIELDS_BYTES = 256 * 1024;

type CustomFields = Record<string, unknown>;

const areFields = (value: unknown): boolean => typeof value === "object" && !Array.isArray(value);
const areShallow = (fields: CustomFields) => !isDeeperThan(fields, MAX_CUSTOM_FIELD_DEPTH);
const TOO_DEEP = { error: "is nested too deeply", abort: true };
const areKeepable = (fields: CustomFields) => Buffer.byteLength(JSON.stringify(fields)) <= MAX_CUSTOM_FIELDS_BYTES;
const TOO_LARGE = { error: `is larger than ${MAX_CUSTOM_FIELDS_BYTES} bytes` };

const fieldsOrNull = z.custom<CustomFields>(areFields, { error: "is no object", abort: true }).nullable();
const sentFields = fieldsOrNull.optional().transform((fields) => fields ?? {});

/** All of the company, null where the record has none; an account without any sends null. Left out, they would all seem empty. */
export const allCustomFields = fieldsOrNull
  .transform((fields) => fields ?? {})
  .refine(areShallow, TOO_DEEP)
  .refine(areKeepable, TOO_LARGE);

const isSet = ([, value]: [string, unknown]) => value !== null;

/** Those that the record has. Of a company's many most are null (wire fact 4): kept, they were two thirds of each row. */
export const customFields = sentFields
  .transform((fields): CustomFields => Object.fromEntries(Object.entries(fields).filter(isSet)))
  .refine(areShallow, TOO_DEEP)
  .refine(areKeepable, TOO_LARGE);

export function isDeeperThan(value: unknown, limit: number): boolean {
  if (value === null || typeof value !== "object") return false;
  return limit === 0 || Object.values(value).some((inner) => isDeeperThan(inner, limit - 1));
}

/** E-mail addresses or phone numbers of a person. With some left out it would be matched wrongly: rejected. */
export const MAX_CONTACT_VALUES = 200;
const TOO_MANY = { error: `holds more than ${MAX_CONTACT_VALUES}` };

/** Blank values stand for an empty list on the wire and are left out. @param split what people put into one, before it is cut */
const contactValues = (split: (text: string) => string[]) =>
  z
    .array(z.object({ value: z.string().nullish(), label: optionalText, primary: optionalFlag.transform(Boolean) }))
    .max(MAX_CONTACT_VALUES, TOO_MANY)
    .nullish()
    .transform((list) =>
      (list ?? []).flatMap(({ value, ...said }) =>
        (value?.trim() ? split(value.trim()) : []).map((part) => ({ value: cutText(part, MAX_TEXT), ...said })),
      ),
    )
    .refine((list) => list.length <= MAX_CONTACT_VALUES, TOO_MANY);

/** What stands between addresses; a blank or a slash only behind one: names have the one, mailboxes the other. Looked behind from there alone. */
const BETWEEN = /[;,|\r\n]+|(?=[\s/])(?<=@[^\s@/]+)[\s/]+/;

/** A text that holds no address is only shown: it stays as it is, and so does a single one with its name. */
function addressesIn(text: string): string[] {
  const parts = text.length > LONGEST_TEXT ? [] : text.split(BETWEEN);
  const found = new Set(parts.flatMap((part) => normalizeAddress(part) ?? []));
  return found.size > 1 || (found.size === 1 && !normalizeAddress(text)) ? [...found] : [text];
}

export const emails = contactValues(addressesIn);
export const phones = contactValues((text) => [text]);
