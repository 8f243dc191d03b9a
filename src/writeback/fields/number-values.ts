import { isObject, type Reading, strayOf, type ValueKind } from "./value-kind";

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
export function numberOf(value: unknown): Reading {
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
