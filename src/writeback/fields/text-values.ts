import { numberOf } from "./number-values";
import { isObject, type Reading, strayOf, type ValueKind } from "./value-kind";

const LINE_CHARACTERS = 255;
/** Reported by integrators, not documented (wire facts 7.2). */
const TEXT_CHARACTERS = 65_000;

const nothing = "is blank";

function readText(value: unknown, most: number): Reading {
  const number = typeof value === "number" ? numberOf(value) : null;
  const text = number && "wire" in number ? String(number.wire) : value;
  if (typeof text !== "string") return { fault: "is not text" };
  if (text.trim() === "") return { fault: nothing };
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

const PARTS = [
  ...["country", "admin_area_level_1", "admin_area_level_2", "locality", "sublocality"],
  ...["route", "street_number", "postal_code", "formatted_address"],
];
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
