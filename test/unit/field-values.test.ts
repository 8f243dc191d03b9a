import { isApplied, readValue } from "../../src/writeback/field-values";

const OPTIONS = [
  { id: 101, label: "Consumer" },
  { id: 102, label: "Enterprise" },
  { id: 103, label: "Twice" },
  { id: 104, label: "Twice" },
  { id: 105, label: "101" },
];
const field = (type: string) => ({ name: "Field", type, options: OPTIONS, writable: true });
const wireOf = (type: string, value: unknown) => {
  const reading = readValue(field(type), value);
  return "wire" in reading ? reading.wire : reading.fault;
};
const ZONE = "Europe/Berlin";

// Seen red with: numbers rounded; an ambiguous label taken; an empty list sent; 256 characters sent; a February 30th sent.
test.each<[string, unknown, unknown]>([
  ["varchar", "REF-1", "REF-1"],
  ["varchar", 42, "42"],
  ["varchar", "ü".repeat(255), "ü".repeat(255)],
  ["varchar", "👋".repeat(255), "👋".repeat(255)],
  ["varchar_auto", "Website", "Website"],
  ["text", "two\nlines", "two\nlines"],
  ["text", "t".repeat(65_000), "t".repeat(65_000)],
  ["phone", "+372 5123 456", "+372 5123 456"],
  ["double", 12.5, 12.5],
  ["double", "1250.50", 1250.5],
  ["double", "-0.5", -0.5],
  ["double", "0", 0],
  ["double", 0.1, 0.1],
  ["double", "1234567890.123456", 1234567890.123456],
  ["double", "9007199254740991", 9007199254740991],
  ["int", 12, 12],
  ["int", "12", 12],
  ["int", "12.0", 12],
  ["int", -3, -3],
  ["monetary", { value: 1250.5, currency: "EUR" }, { value: 1250.5, currency: "EUR" }],
  ["monetary", { value: "9999999999999.99", currency: "eur" }, { value: 9999999999999.99, currency: "EUR" }],
  ["date", "2024-02-29", "2024-02-29"],
  ["daterange", { value: "2026-01-01", until: "2026-01-01" }, { value: "2026-01-01", until: "2026-01-01" }],
  ["time", "9:05", { value: "09:05:00" }],
  ["time", { value: "14:30:15" }, { value: "14:30:15" }],
  ["time", { value: "14:30", timezone_name: ZONE, timezone_id: 9 }, { value: "14:30:00", timezone_name: ZONE }],
  ["timerange", { value: "22:00", until: "06:00" }, { value: "22:00:00", until: "06:00:00" }],
  [
    "timerange",
    { value: "09:00", until: "17:00", timezone_name: ZONE },
    { value: "09:00:00", until: "17:00:00", timezone_name: ZONE },
  ],
  ["enum", 101, 101],
  ["enum", "102", 102],
  ["enum", "Enterprise", 102],
  ["set", [101, "Enterprise", 102], [101, 102]],
  ["set", [], null],
  ["user", 7, 7],
  ["org", "12", 12],
  ["people", 9007199254740991, 9007199254740991],
  ["address", "Hauptstraße 5, Köln", { value: "Hauptstraße 5, Köln" }],
  ["address", { value: "Hauptstraße 5", locality: "Köln" }, { value: "Hauptstraße 5", locality: "Köln" }],
])("a %s takes %j and sends %j", (type, value, wire) => {
  expect(wireOf(type, value)).toEqual(wire);
});

test.each<[string, unknown, string]>([
  ["varchar", "  ", "is blank"],
  ["varchar", true, "is not text"],
  ["varchar", {}, "is not text"],
  ["varchar", "ü".repeat(256), "has 256 characters, at most 255 fit"],
  ["varchar", "a\0b", "NUL"],
  ["varchar", "\ud800", "surrogate"],
  ["text", "t".repeat(65_001), "at most 65000"],
  ["text", ["a"], "is not text"],
  ["phone", "call me", "has no digit"],
  ["phone", 3725123, "send it as text"],
  ["double", "12,5", "is not a number"],
  ["double", " ", "is not a number"],
  ["double", true, "is not a number"],
  ["double", [1], "is not a number"],
  ["double", "12345678901234567", "16 digits"],
  ["double", "0.12345678901234567", "16 digits"],
  ["double", "9007199254740993", "16 digits"],
  // A double holds this one exactly, and others that are rounded to it.
  ["double", 9007199254740994, "16 digits"],
  ["double", 1.2345e19, "16 digits"],
  ["double", "99999999999999.99", "cannot be kept exactly"],
  ["double", 99999999999999.98, "Send a long one as text"],
  ["double", 1e300, "16 digits"],
  ["double", 0.30000000000000004, "16 digits"],
  ["double", Number.NaN, "is not a number"],
  ["int", 12.5, "is not a whole number"],
  ["int", "twelve", "is not a number"],
  ["monetary", 1250, "is not an object"],
  ["monetary", { value: 1 }, "has no currency"],
  ["monetary", { value: 1, currency: "euro" }, "has no currency"],
  ["monetary", { value: "1.234,56", currency: "EUR" }, "has a value that is not a number"],
  ["monetary", { value: 1, currency: "EUR", cents: 5 }, 'unknown member "cents"'],
  ["date", "2026-02-30", "is not a calendar day"],
  ["date", "20.11.2026", "is not a calendar day"],
  ["date", "2026-11-20T09:00:00Z", "is not a calendar day"],
  ["date", 1763640000000, "is not a calendar day"],
  ["daterange", "2026-11-20", "is not an object"],
  ["daterange", { value: "2026-11-20" }, "has no calendar day"],
  ["daterange", { value: "2026-11-20", until: "2026-11-19" }, "ends before it begins"],
  ["time", "25:00", "has no time of day in value"],
  ["time", { value: "09:00", timezone_id: 9 }, "timezone_id and no timezone_name"],
  ["time", { value: "09:00", timezone_name: "Mars/Base" }, "no zone"],
  ["time", { value: "09:00", timezone_name: "+02:00" }, "no zone"],
  ["timerange", "09:00", "is not an object"],
  ["timerange", { value: "09:00" }, "has no time of day in until"],
  ["enum", 100, 'is none of the options "Consumer" (101)'],
  ["enum", "enterprise", "is none of the options"],
  ["enum", "Twice", 'means several options: "Twice" (103), "Twice" (104)'],
  ["enum", "101", "means several options"],
  ["enum", [101], "is neither an option's id nor its label"],
  ["set", 101, "is not a list"],
  ["set", [101, 999], "has a member that is none of the options"],
  ["set", ["Twice"], "has a member that means several options"],
  ["set", Array(11).fill(101), "longer than the list"],
  ["user", "anna", "is not a CRM id"],
  ["user", 0, "is not a CRM id"],
  ["org", -1, "is not a CRM id"],
  ["org", 1.5, "is not a CRM id"],
  ["people", "9007199254740993", "is not a CRM id"],
  ["address", 5, "is neither text nor an object"],
  ["address", { value: "" }, "has no text in value"],
  ["address", { value: "A 1", subpremise: "2" }, 'unknown member "subpremise"'],
  ["address", { value: "A 1", locality: 5 }, "has a locality that is not text"],
  ["formula", 5, "(formula) cannot be written in the CRM"],
])("a %s refuses %j: it %s", (type, value, why) => {
  const fault = wireOf(type, value);
  expect(fault).toContain(why);
  expect(fault).toMatch(/ expects .*, for example .*; "" clears it\.$|cannot be written|Remove that\.$/);
});

test.each(["varchar", "text", "double", "monetary", "time", "enum", "set", "people", "address"])(
  "null and an empty text clear a %s, and only an empty one counts as cleared",
  (type) => {
    expect([wireOf(type, null), wireOf(type, "")]).toEqual([null, null]);
    expect([null, undefined, "", []].map((held) => isApplied(type, null, held))).toEqual([true, true, true, true]);
    expect(isApplied(type, null, 0)).toBe(false);
    expect(isApplied(type, null, "left")).toBe(false);
  },
);

const BERLIN = { value: "09:00:00", timezone_id: 5, timezone_name: ZONE };
test.each<[string, unknown, unknown, boolean]>([
  ["varchar", " REF ", "REF", true],
  ["varchar", "abcdef", "abc", false],
  ["varchar", "REF", "ref", false],
  ["varchar", "REF", null, false],
  ["varchar", "REF", undefined, false],
  ["text", "a\r\nb\n", "a\nb", true],
  ["text", "a\nb", "a b", false],
  ["text", "e\u0301", "\u00e9", true],
  ["phone", "+372 (51) 23-456", "+3725123456", true],
  ["phone", "+3725123456", "+3725123457", false],
  ["phone", "1", null, false],
  ["double", 12.5, "12.50", true],
  ["double", 0, "", false],
  ["double", 0, null, false],
  ["double", 12.5, 12.4, false],
  ["int", 5, 5, true],
  ["int", 5, true, false],
  ["monetary", { value: 5, currency: "EUR" }, { value: "5.00", currency: "EUR", more: 1 }, true],
  ["monetary", { value: 5, currency: "EUR" }, { value: 5, currency: "USD" }, false],
  ["monetary", { value: 5, currency: "EUR" }, 5, false],
  ["date", "2026-01-02", "2026-01-02", true],
  ["date", "2026-01-02", "2026-01-01", false],
  ["daterange", { value: "a", until: "b" }, { value: "a", until: "b", more: null }, true],
  ["daterange", { value: "a", until: "b" }, { value: "a", until: null }, false],
  ["time", { value: "09:00:00" }, BERLIN, true],
  ["time", { value: "09:00:00", timezone_name: "Asia/Calcutta" }, { ...BERLIN, timezone_name: "Asia/Kolkata" }, true],
  ["time", { value: "09:00:00", timezone_name: "Europe/Tallinn" }, BERLIN, false],
  ["time", { value: "09:30:00" }, BERLIN, false],
  ["timerange", { value: "09:00:00", until: "10:00:00" }, { ...BERLIN, until: "10:00:00" }, true],
  ["timerange", { value: "09:00:00", until: "10:00:00" }, BERLIN, false],
  ["enum", 101, "101", true],
  ["enum", 101, 102, false],
  ["enum", 101, null, false],
  ["set", [101, 102], ["102", "101"], true],
  ["set", [101, 102], [101], false],
  ["set", [101], null, false],
  ["enum", 101, { toString: 1 }, false],
  ["set", [101], [{ toString: 1 }], false],
  ["org", 12, "12", true],
  ["people", 12, null, false],
  ["address", { value: "Main  St 5" }, { value: "main st 5", locality: "Köln", formatted_address: "x" }, true],
  ["address", { value: "Main St 5", locality: "Köln" }, { value: "Main St 5", locality: null }, false],
  ["address", { value: "Main St 5", locality: null }, { value: "Main St 5", locality: "Köln" }, true],
  ["address", { value: "Main St 5" }, { value: "Side St 5" }, false],
  ["address", { value: "Main St 5" }, null, false],
  ["formula", 1, 1, false],
])("a %s that was sent as %j and comes back as %j is applied: %j", (type, sent, held, applied) => {
  expect(isApplied(type, sent, held)).toBe(applied);
});

// Seen red with: a look through all options for each member.
test("a long list of options is looked through once for all members of a value", () => {
  let reads = 0;
  const options = Array.from({ length: 1_000 }, (_, id) => ({
    id,
    get label() {
      reads += 1;
      return `Option ${id}`;
    },
  }));
  const value = options.map(({ id }) => `Option ${id}`);
  expect(readValue({ ...field("set"), options }, value)).toEqual({ wire: options.map(({ id }) => id) });
  expect(reads).toBeLessThan(3 * options.length);
});
