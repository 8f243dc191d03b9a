import type { MatchedEntity } from "../../src/entities/meeting";
import { type AskedTarget, type Target, type TargetFacts, targetOf } from "../../src/writeback/targets";

const COPY = 7;
const target = (name: string): Target => ({ entity: ENTITY[name[0] ?? ""] ?? "DEAL", id: Number(name.slice(1)) });
const ENTITY: Record<string, MatchedEntity> = { D: "DEAL", P: "PERSON", O: "ORGANIZATION" };
const targets = (names: string) => names.split(" ").filter(Boolean).map(target);
const nameOf = ({ entity, id }: Target) => `${entity[0]}${id}`;

/** `D1 P1 | O2`: what is certain, and which companies only a domain tells of; `deals`, `others`: what is in question. */
function factsIn(text: string): TargetFacts {
  const [records = "", ...questions] = text.split(", ");
  const [certain = "", byDomain = ""] = records.split("|");
  return {
    copyId: COPY,
    certain: targets(certain),
    byDomain: targets(byDomain),
    hasDeals: questions.includes("deals"),
    hasChoice: questions.includes("chosen"),
    mayChange: questions.includes("reading"),
    lacksCompany: questions.includes("lacking"),
    ambiguousHaveDeals: questions.includes("others"),
  };
}

function inWords(facts: string, entity: MatchedEntity | null, named?: AskedTarget): string {
  const found = targetOf(factsIn(facts), entity, named);
  return found.ok ? nameOf(found.value) : found.code;
}

const CHOICE = "NEEDS_CHOICE";
const NOT = "TARGET_NOT_MATCHED";

test.each<[facts: string, note: string, deal: string, person: string, organization: string]>([
  ["", NOT, NOT, NOT, NOT],
  [", deals", CHOICE, CHOICE, NOT, NOT],
  [", chosen", CHOICE, CHOICE, NOT, NOT],
  ["P1, chosen", CHOICE, CHOICE, "P1", NOT],
  [", others", NOT, NOT, NOT, NOT],
  ["|O1", NOT, NOT, NOT, NOT],
  ["|O1, deals", CHOICE, CHOICE, NOT, NOT],
  ["D1 P1 O1, deals", "D1", "D1", "P1", "O1"],
  ["D1 P1", "D1", "D1", "P1", NOT],
  ["D1 P1 P2 O1 O2, deals", "D1", "D1", CHOICE, CHOICE],
  ["D1 P1, deals, others", "D1", "D1", "P1", NOT],
  ["P1 O1, deals", CHOICE, CHOICE, "P1", "O1"],
  ["P1 O1", "P1", NOT, "P1", "O1"],
  ["P1 O1|O2", "P1", NOT, "P1", "O1"],
  ["P1, others", CHOICE, NOT, "P1", NOT],
  [", reading", CHOICE, CHOICE, CHOICE, CHOICE],
  ["P1 O1, reading", CHOICE, CHOICE, CHOICE, CHOICE],
  ["P1, deals, reading", CHOICE, CHOICE, CHOICE, CHOICE],
  ["D1 P1 O1, deals, reading", CHOICE, CHOICE, CHOICE, CHOICE],
  ["D1 P1 O1, deals, chosen, reading", "D1", "D1", CHOICE, CHOICE],
  ["P1 P2 O1", CHOICE, NOT, CHOICE, "O1"],
  ["D1 P1 O1, deals, lacking", "D1", "D1", "P1", CHOICE],
])("with '%s' a write that names nothing goes to %s, of a deal %s, of a person %s, of an organization %s", (...row) => {
  const [facts, ...expected] = row;
  expect(
    [null, "DEAL" as const, "PERSON" as const, "ORGANIZATION" as const].map((entity) => inWords(facts, entity)),
  ).toEqual(expected);
});

test.each<[named: string, copyId: number, note: string, ofPerson: string]>([
  ["D1", COPY, "D1", NOT],
  ["D2", COPY, NOT, NOT],
  ["P1", COPY, "P1", "P1"],
  ["P1", COPY + 1, NOT, NOT],
  ["O1", COPY, "O1", NOT],
  ["O2", COPY, "O2", NOT],
  ["O3", COPY, NOT, NOT],
])("%s of copy %s is named: a note goes to %s, a value of a person to %s", (name, copyId, note, ofPerson) => {
  const facts = "D1 P1 O1|O2, deals, others";
  const named = { ...target(name), copyId };
  expect([inWords(facts, null, named), inWords(facts, "PERSON", named)]).toEqual([note, ofPerson]);
});

// Seen red: of a chosen deal that was still to be read it was said that the CRM has it no more.
test.each([
  ["P1, reading", "still being read"],
  ["P1, chosen, reading", "still being read"],
  ["D1 P1, deals, reading", "still being read"],
  ["P1, chosen", "not in the connected CRM"],
  ["P1, deals, chosen, reading", "Choose it with chooseDeal"],
])("with '%s' a note is refused with words that hold: %s", (facts, words) => {
  expect(targetOf(factsIn(facts), null)).toMatchObject({ message: expect.stringContaining(words) });
});

// Seen red: who writes a deal's field was told to name a person.
test("what a deal's field is refused with can be followed: a person or organization is for a note alone", () => {
  expect(targetOf(factsIn(", deals"), "DEAL")).toMatchObject({
    message: expect.stringContaining("for a note, targetId"),
  });
});

test("an id that names no record is no target, whatever is certain", () => {
  expect([inWords("P1", null, null), inWords("P1", "PERSON", null)]).toEqual([NOT, NOT]);
});
