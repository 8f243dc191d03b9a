import { decimalOf } from "./words";

/** How people fill a custom field in. */
interface FieldKind {
  text: string;
  input: "line" | "number" | "long" | "date" | "time" | "choice" | "choices" | "dates" | "times" | "amount";
}

/** By the CRM's word for the type; a type that is not here is a line of text. */
const KINDS: Readonly<Record<string, FieldKind>> = {
  varchar: { text: "Text", input: "line" },
  varchar_auto: { text: "Text with suggestions", input: "line" },
  text: { text: "Long text", input: "long" },
  phone: { text: "Phone number", input: "line" },
  address: { text: "Address", input: "line" },
  double: { text: "Number", input: "number" },
  int: { text: "Whole number", input: "number" },
  monetary: { text: "Amount of money", input: "amount" },
  date: { text: "Date", input: "date" },
  daterange: { text: "From one date to another", input: "dates" },
  time: { text: "Time of day", input: "time" },
  timerange: { text: "From one time of day to another", input: "times" },
  enum: { text: "One of several options", input: "choice" },
  set: { text: "Any of several options", input: "choices" },
  user: { text: "User of the CRM", input: "line" },
  org: { text: "Organization of the CRM", input: "line" },
  people: { text: "Person of the CRM", input: "line" },
};

const OTHER: FieldKind = { text: "Another type", input: "line" };

export const fieldKind = (type: string | null): FieldKind => KINDS[type ?? ""] ?? OTHER;

/**
 * What is sent for what was filled in; undefined while that is nothing, or only a part of it.
 * @param parts one text, the two of a range or an amount, or the ids of the chosen options
 */
export function valueFrom(type: string | null, parts: readonly string[]): unknown {
  const [first = "", second = ""] = parts.map((part) => part.trim());
  switch (fieldKind(type).input) {
    case "choices":
      return parts.length > 0 ? parts.map(optionOf) : undefined;
    case "choice":
      return first ? optionOf(first) : undefined;
    case "number":
      return asNumber(first) || undefined;
    case "amount":
      return first && second ? { value: asNumber(first), currency: second.toUpperCase() } : undefined;
    case "dates":
    case "times":
      return first && second ? { value: first, until: second } : undefined;
    default:
      return first || undefined;
  }
}

const PARTS: Partial<Record<FieldKind["input"], readonly [string, string]>> = {
  amount: ["amount", "currency"],
  dates: ["first date", "second date"],
  times: ["first time", "second time"],
};

/** Which of two parts is missing; null where both are there, or neither. */
export function missingPart(type: string | null, parts: readonly string[]): string | null {
  const names = PARTS[fieldKind(type).input];
  const [first = "", second = ""] = parts.map((part) => part.trim());
  return names && !first !== !second ? `The ${names[first ? 1 : 0]} is missing` : null;
}

/** An option's id: as text it may be the label of another option as well, and a number is none. */
const optionOf = (id: string): number | string => (/^[1-9]\d{0,14}$/.test(id) ? Number(id) : id);

/** As the browser's language writes it, for the service; what is no number goes as it is, and the service says what is expected. */
export const asNumber = (typed: string): string => decimalOf(typed) ?? typed.trim();
