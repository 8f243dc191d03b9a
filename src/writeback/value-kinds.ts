import type { CrmFieldOption } from "../crm/parsing/fields";

/** A value as the CRM takes it, or what is wrong with it: the rest of a sentence that begins with "it". */
export type Reading = { wire: unknown } | { fault: string };

/** How values of one field type are checked, and how the CRM's echo is compared (wire facts 7.2). */
export interface ValueKind {
  /** What is expected, with an example; it follows "expects". */
  shape: string;
  /** @param value never null or "", which clear a field of any type */
  read(value: unknown, options: readonly CrmFieldOption[]): Reading;
  /** Whether the CRM's value means what was sent, whatever it added or spelled otherwise. */
  isSame(sent: unknown, echoed: unknown): boolean;
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The first member that does not belong there. */
export const strayOf = (value: object, known: readonly string[]): string | undefined =>
  Object.keys(value)
    .find((name) => !known.includes(name))
    ?.slice(0, 60);

/** What the CRM keeps of a number (wire facts 7.2). More is refused here rather than rounded there. */
const DIGITS = 16;
/** Every decimal of so many digits survives being read into a double. */
const SURE_DIGITS = 15;
const DECIMAL = /^-?\d{1,40}(\.\d{1,40})?$/;

/** Without leading zeros, and without trailing ones behind the point. */
function canonical(decimal: string): string {
  const [whole = "", fraction = ""] = decimal.replace("-", "").split(".");
  const digits = `${whole.replace(/^0+(?=\d)/, "")}.${fraction.replace(/0+$/, "")}`.replace(/\.$/, "");
  return decimal.startsWith("-") && /[1-9]/.test(digits) ? `-${digits}` : digits;
}

const digitsOf = (decimal: string) => decimal.replace(/[-.]/g, "").replace(/^0+/, "").length;
const TOO_LONG = `cannot be kept exactly: at most ${DIGITS} digits fit. Send a long one as text`;

/**
 * A number, or a decimal as text. A JSON number was rounded when the request was read, before anybody could look: one
 * with a fraction and more digits than a double surely keeps is refused, and text is exact.
 */
function numberOf(value: unknown): Reading {
  const text = typeof value === "number" ? String(value) : typeof value === "string" ? value.trim() : "";
  if (/^-?\d+(\.\d+)?e[+-]?\d+$/.test(text)) return { fault: TOO_LONG };
  if (!DECIMAL.test(text)) return { fault: "is not a number" };
  const decimal = canonical(text);
  const number = Number(decimal);
  const most = typeof value === "number" && !Number.isInteger(value) ? SURE_DIGITS : DIGITS;
  const isExact =
    digitsOf(decimal) <= most &&
    canonical(String(number)) === decimal &&
    (!Number.isInteger(number) || Number.isSafeInteger(number));
  return isExact ? { wire: number } : { fault: TOO_LONG };
}

/** v1 and older records have numbers as text. */
const isSameNumber = (sent: unknown, echoed: unknown) =>
  (typeof echoed === "number" || (typeof echoed === "string" && echoed.trim() !== "")) &&
  Number(echoed) === Number(sent);

export const decimal: ValueKind = {
  shape: `a number of at most ${DIGITS} digits, for example 12.5 or, exact whatever reads it, "1250.50"`,
  read: numberOf,
  isSame: isSameNumber,
};

export const whole: ValueKind = {
  shape: `a whole number of at most ${DIGITS} digits, for example 250`,
  read: (value) => {
    const reading = numberOf(value);
    return "wire" in reading && !Number.isInteger(reading.wire) ? { fault: "is not a whole number" } : reading;
  },
  isSame: isSameNumber,
};

export const monetary: ValueKind = {
  shape: 'an amount with its currency, for example { "value": "1250.50", "currency": "EUR" }',
  read: (value) => {
    if (!isObject(value)) return { fault: "is not an object with value and currency" };
    const stray = strayOf(value, ["value", "currency"]);
    if (stray !== undefined) return { fault: `has an unknown member "${stray}"` };
    const amount = numberOf(value.value);
    if ("fault" in amount) return { fault: `has a value that ${amount.fault}` };
    const currency = typeof value.currency === "string" ? value.currency.trim().toUpperCase() : "";
    if (!/^[A-Z]{3}$/.test(currency)) return { fault: "has no currency of three letters" };
    return { wire: { value: amount.wire, currency } };
  },
  isSame: (sent, echoed) =>
    isObject(sent) && isObject(echoed) && isSameNumber(sent.value, echoed.value) && sent.currency === echoed.currency,
};

/** A CRM id: a number, or the text in which this API shows ids. */
const isId = (value: unknown) => Number.isSafeInteger(value) && Number(value) > 0;
export const reference = (what: string): ValueKind => ({
  shape: `the CRM id of a ${what}, for example 42`,
  read: (value) => {
    const id = typeof value === "string" && /^[1-9]\d{0,15}$/.test(value) ? Number(value) : value;
    return isId(id) ? { wire: id } : { fault: "is not a CRM id" };
  },
  isSame: isSameNumber,
});

const LINE_CHARACTERS = 255;
/** Reported by integrators, not documented (wire facts 7.2). */
const TEXT_CHARACTERS = 65_000;

function readText(value: unknown, most: number): Reading {
  const number = typeof value === "number" ? numberOf(value) : null;
  const text = number && "wire" in number ? String(number.wire) : value;
  if (typeof text !== "string") return { fault: "is not text" };
  if (text.trim() === "") return { fault: "is blank" };
  const characters = [...text].length;
  return characters > most ? { fault: `has ${characters} characters, at most ${most} fit` } : { wire: text };
}

/** Line ends and blanks around the text are the CRM's to mend; anything else that differs, a cut for one, is not. */
const normal = (text: unknown) => (typeof text === "string" ? text.normalize().replace(/\r\n?/g, "\n").trim() : null);
const isSameText = (sent: unknown, echoed: unknown) => normal(echoed) !== null && normal(sent) === normal(echoed);

const text = (most: number, example: string): ValueKind => ({
  shape: `text of at most ${most} characters, for example ${example}`,
  read: (value) => readText(value, most),
  isSame: isSameText,
});

export const line = text(LINE_CHARACTERS, '"REF-1042"');
export const longText = text(TEXT_CHARACTERS, '"Agreed on a trial in March."');

const dialled = (number: unknown) => (typeof number === "string" ? number.replace(/[\s().\-/]/g, "") : null);

export const phone: ValueKind = {
  shape: `a phone number of at most ${LINE_CHARACTERS} characters, for example "+372 5123 456"`,
  read: (value) => {
    const reading =
      typeof value === "number" ? { fault: "is a number; send it as text" } : readText(value, LINE_CHARACTERS);
    return "wire" in reading && !/\d/.test(String(reading.wire)) ? { fault: "has no digit" } : reading;
  },
  isSame: (sent, echoed) => dialled(echoed) !== null && dialled(sent) === dialled(echoed),
};

const PARTS =
  "country admin_area_level_1 admin_area_level_2 locality sublocality route street_number postal_code formatted_address".split(
    " ",
  );
const spelled = (value: unknown) => normal(value)?.replace(/\s+/g, " ").toLowerCase();

/** The CRM fills the parts that were not sent; the text itself and the parts that were sent must stay. */
export const address: ValueKind = {
  shape:
    'an address as text, for example "Hauptstraße 5, 50667 Köln", or { "value": "Hauptstraße 5", "locality": "Köln" }',
  read: (value) => {
    const sent = typeof value === "string" ? { value } : value;
    if (!isObject(sent)) return { fault: "is neither text nor an object" };
    const stray = strayOf(sent, ["value", ...PARTS]);
    if (stray !== undefined) return { fault: `has an unknown member "${stray}"` };
    if (typeof sent.value !== "string" || sent.value.trim() === "") return { fault: "has no text in value" };
    const wrong = PARTS.find((part) => typeof (sent[part] ?? "") !== "string");
    return wrong ? { fault: `has a ${wrong} that is not text` } : { wire: sent };
  },
  isSame: (sent, echoed) => {
    if (!isObject(sent) || !isObject(echoed)) return false;
    return Object.entries(sent).every(([part, text]) => text === null || spelled(echoed[part]) === spelled(text));
  },
};
