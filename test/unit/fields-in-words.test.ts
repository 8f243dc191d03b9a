import { wordsOf } from "../../src/briefing/fields";
import { isFieldListDue, knownOf, unknownIn } from "../../src/connections/field-lists";

const OPTIONS = new Map([
  ["1", "Low"],
  ["2", "High"],
]);
const known = { options: OPTIONS, names: new Map([["7", "Olivia Lefèvre"]]) };

test.each([
  ["enum", 1, "Low", []],
  ["enum", "2", "High", []],
  ["enum", { id: 2, label: "as it was" }, "High", []],
  ["enum", "constructor", "constructor (unknown option)", ["constructor"]],
  ["set", [1, 9, 2], "Low, 9 (unknown option), High", ["9"]],
  ["set", [], null, []],
  ["user", { value: 7, name: "whatever" }, "Olivia Lefèvre", []],
  ["people", { id: 8, name: "somebody who is not matched" }, "8", []],
  ["monetary", { value: 0, currency: "EUR" }, "0 EUR", []],
  ["monetary", { value: 12.5 }, "12.5", []],
  ["daterange", { value: "2026-11-20", until: null }, "2026-11-20", []],
  ["time", "9:30:00", "9:30", []],
  ["address", "Hauptstraße 5", "Hauptstraße 5", []],
  ["constructor", "a type that nobody knows", "a type that nobody knows", []],
  ["varchar", true, "true", []],
  ["varchar", { deep: { deeper: 1 } }, null, []],
  ["varchar", "", null, []],
] as const)("a %s that holds %j is said as %j", (type, value, text, missingOptionIds) => {
  expect(wordsOf(type, value, known)).toEqual({ text, missingOptionIds });
});

test("a text for people has 1,000 characters at most", () => {
  expect(wordsOf("text", "long ".repeat(10_000), known).text).toHaveLength(1_000);
});

const LIST = knownOf([
  { key: "a", type: "enum", options: [{ id: 1, label: "Low" }] },
  { key: "b", type: "varchar", options: [] },
]);

test("unknown is a key that the list does not have, and an option that its field does not have, where a value is held", () => {
  expect(unknownIn({ a: 1, b: "1", c: null, d: "" }, LIST)).toEqual([]);
  expect(unknownIn({ a: [1, 2], b: 3, c: 0 }, LIST)).toEqual(["a/2", "c"]);
  LIST.names.add("c").add("a/2");
  expect(unknownIn({ a: [1, 2], c: 0 }, LIST)).toEqual([]);
});

const at = (hours: number) => new Date(Date.UTC(2026, 10, 22) + hours * 3_600_000);
/** Never read, and so many hours ago asked for last, and first in vain. */
const inVain = (asked: number, failed: number) => ({
  askedAt: at(-asked),
  failedSince: at(-failed),
  readAt: null,
  wanted: [],
});

test.each([
  ["never asked", null, true],
  ["read an hour ago", { askedAt: at(-1), readAt: at(-1), wanted: [] }, false],
  ["with something wanted, asked half an hour ago", { askedAt: at(-0.5), readAt: at(-0.5), wanted: ["c"] }, false],
  ["with something wanted, asked an hour ago", { askedAt: at(-1), readAt: at(-1), wanted: ["c"] }, true],
  ["read a day ago", { askedAt: at(-24), readAt: at(-24), wanted: [] }, true],
  ["read a day ago, asked in vain just now", { ...inVain(0.1, 0.1), readAt: at(-24) }, false],
  ["never read, asked an hour ago", inVain(1, 1), true],
  ["never read, asked an hour ago, and two before that", inVain(1, 3), false],
  ["never read, asked two hours ago, and two before that", inVain(2, 4), true],
  ["never read for a year, asked less than four hours ago", inVain(3.9, 9_000), false],
  ["never read for a year, asked four hours ago", inVain(4, 9_000), true],
  ["noted by a clock of next year", { askedAt: at(9_000), readAt: at(9_000), wanted: [] }, true],
  ["seen to fail by a clock of next year", inVain(4, -9_000), true],
])("whether a list that was %s is due", (_what, list, isDue) => {
  expect(isFieldListDue(list && { failedSince: null, ...list }, at(0))).toBe(isDue);
});
