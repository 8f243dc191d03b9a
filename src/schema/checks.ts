import { MaxDate, MinDate, ValidateBy, type ValidationArguments } from "class-validator";
import { normalizeAddress } from "../platform/email-address";

/** What is wrong with a value, as the end of a sentence that its field's name begins; null: nothing. */
type FaultOf = (value: unknown, within: object) => string | null;

/** A check of an input's field by a function of our own. A field that is absent or null is not checked. */
export function Checked(name: string, faultOf: FaultOf): PropertyDecorator {
  const fault = (of?: ValidationArguments) => (of ? faultOf(of.value, of.object) : null);
  return ValidateBy({
    name,
    validator: { validate: (_value, of) => fault(of) === null, defaultMessage: (of) => fault(of) ?? "is not valid" },
  });
}

const asText = (value: unknown) => (typeof value === "string" ? value : "");

/** Text of so many characters at most once it is trimmed, that PostgreSQL can hold. */
export const Text = (most: number) =>
  Checked("text", (value) => {
    const text = asText(value).trim();
    if (text.length > most) return `must have at most ${most} characters`;
    return text.includes("\0") ? "must not contain a NUL character" : null;
  });

export const NotBlank = () =>
  Checked("notBlank", (value) => (asText(value).trim() === "" ? "must not be empty" : null));

export const HoldsAddress = () =>
  Checked("holdsAddress", (value) => (normalizeAddress(asText(value)) === null ? "is not an e-mail address" : null));

export const CurrencyCode = () =>
  Checked("currency", (value) => (/^[A-Z]{3}$/.test(asText(value)) ? null : "is not a code of three capital letters"));

const EARLIEST = new Date("1970-01-01");
const LATEST = new Date("2200-01-01");

/** A year with a wrong digit would otherwise be kept, and judged by. */
export function SensibleInstant(): PropertyDecorator {
  const checks = [
    MinDate(EARLIEST, { message: "must not be before 1970" }),
    MaxDate(LATEST, { message: "must not be after 2200" }),
  ];
  return (target, property) => {
    for (const check of checks) check(target, property);
  };
}

export const NotBefore = <Input extends object>(other: keyof Input & string) =>
  Checked("notBefore", (value, within) => {
    const start: unknown = Reflect.get(within, other);
    return value instanceof Date && start instanceof Date && value < start ? `must not be before ${other}` : null;
  });

/** A field that says nothing without another. */
export const With = <Input extends object>(other: keyof Input & string) =>
  Checked("with", (_value, within) => (Reflect.get(within, other) == null ? `needs ${other} beside it` : null));
