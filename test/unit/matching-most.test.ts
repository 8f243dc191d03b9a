import type { DealFact } from "../../src/briefing/matching/facts";
import type { Match } from "../../src/briefing/matching/match";
import { dealInWords, matchIn, world } from "../support/matching-world";
import { array, assert, constantFrom, property, subarray, tuple, uniqueArray } from "../support/properties";

const RUNS = { numRuns: process.env.DEEP ? 20_000 : 1_000 };

const TWINS = "Eve = eve@acme.de; Fay = eve@acme.de; user Anna = anna@seller.de";

// Seen red with how many at most and at least compared, not for the same attendees: D1 OWNER_ATTENDS; choose D1 D2.
test.each([
  [
    "another has one more, whoever came",
    `${TWINS}; Ada = ada@acme.de; D1 of Eve owner Anna; D2 of Ada Eve; D3 of Fay`,
    "choose D1 D2 D3",
  ],
  [
    "who could be the other came by an address of her own too",
    "Eve = eve@acme.de, ada@acme.de; Fay = eve@acme.de; D1 of Eve Fay; D2 of Fay",
    "D1 MOST_ATTENDEES",
  ],
])("most attendees where one could be several persons: %s", (_case, crm, deal) => {
  expect(dealInWords(world(crm, "eve@acme.de; ada@acme.de"))).toBe(deal);
});

/** Every way in which attendees could be persons. One set of persons counts once. */
function waysOf({ attendees }: Match): number[][] {
  const sets = attendees.map(({ personId, candidateIds }) => (personId === null ? candidateIds : [personId]));
  const each = [...new Map(sets.map((ids) => [ids.join(" "), ids])).values()].filter((ids) => ids.length > 0);
  return each.reduce<number[][]>((ways, ids) => ways.flatMap((way) => ids.map((one) => [...way, one])), [[]]);
}

const ADDRESSES = ["ada@acme.de", "bob@acme.de", "cid@zeta.de", "eve@zeta.de"];
const PEOPLE = ["Ada", "Bob", "Cid", "Dan", "Eve", "Fay"];
const addressesOf = tuple(constantFrom(...PEOPLE), subarray(ADDRESSES, { minLength: 1, maxLength: 2 }));
const persons = uniqueArray(addressesOf, { selector: ([name]) => name, minLength: 3 });
const deals = array(tuple(subarray(PEOPLE, { minLength: 1, maxLength: 4 }), constantFrom("", " owner Anna")), {
  ...{ minLength: 2, maxLength: 5 },
});

test("a deal in which fewer take part than in another, whoever the attendees are, is never the one; one with more always is", () => {
  let outnumbered = 0;
  const attending = subarray(ADDRESSES, { minLength: 1 });
  assert(
    property(attending, persons, deals, (emails, known, dealsOf) => {
      const statements = [
        "user Anna = anna@seller.de",
        ...known.map(([name, addresses]) => `${name} = ${addresses.join(", ")}`),
        ...dealsOf.map(([people, owner], index) => `D${index} of ${people.join(" ")}${owner}`),
      ];
      const told = world(statements.join("; "), emails.join("; "));
      const found = matchIn(told);
      // Of three whose persons are each other's in a ring too few are taken for certain.
      if (found.attendees.filter(({ candidateIds }) => candidateIds.length > 0).length > 2) return;
      const ways = waysOf(found);
      const candidates = found.deal.candidates.flatMap(({ dealId }) =>
        told.facts.deals.filter(({ crmId }) => crmId === dealId),
      );
      const count = ({ personIds }: DealFact, way: number[]) => personIds.filter((id) => way.includes(id)).length;
      const left = candidates.filter((one) => {
        const isSpokenFor = ways.some((way) => count(one, way) > 0);
        return isSpokenFor && !candidates.some((other) => ways.every((way) => count(other, way) > count(one, way)));
      });
      const { dealId } = found.deal;
      if (dealId !== null) expect(left.map(({ crmId }) => crmId)).toContain(dealId);
      if (left.length === 1) expect(dealId).toBe(left[0]?.crmId);
      if (left.length > 0 && left.length < candidates.length) outnumbered += 1;
    }),
    RUNS,
  );
  expect(outnumbered).toBeGreaterThan(RUNS.numRuns / 10);
});
