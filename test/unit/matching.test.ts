import type { DealFact } from "../../src/briefing/matching/facts";
import { matchAttendees } from "../../src/briefing/matching/match-attendees";
import { matchDeal } from "../../src/briefing/matching/match-deal";
import { normalizeAddress } from "../../src/platform/email-address";

test.each([
  ["ada@example.com", "ada@example.com"],
  ["  Ada@Example.COM ", "ada@example.com"],
  ['"Lovelace, Ada" <Ada@Example.com>', "ada@example.com"],
  ["mailto:ada@example.com", "ada@example.com"],
  ["ada+crm@example.com", "ada+crm@example.com"],
  ["ada@büro.example", "ada@xn--bro-hoa.example"],
  ["ａｄａ@example.com", "ada@example.com"],
  ["ada", null],
  ["@example.com", null],
  ["ada@", null],
  ["ada lovelace@example.com", null],
  ["a@b@example.com", null],
  ["", null],
  [`${"a".repeat(320)}@b.example`, null],
])("the address in %j is %j", (text, address) => {
  expect(normalizeAddress(text)).toBe(address);
});

const person = (crmId: number, ...addresses: string[]) => ({ crmId, organizationId: null, addresses });
const sidesOf = (address: string | null, persons: ReturnType<typeof person>[]) =>
  matchAttendees({
    ownerAddress: "owner@us.example",
    attendees: [{ position: 0, address }],
    userAddresses: new Set(["colleague@us.example"]),
    persons,
  })[0];

test.each([
  ["the meeting's owner is one of ours", "owner@us.example", { side: "SELLER", status: "NONE" }],
  ["a CRM user is one of ours", "colleague@us.example", { side: "SELLER", status: "NONE" }],
  [
    "a person with exactly this address is matched",
    "ada@buyer.example",
    { side: "BUYER", status: "MATCHED", rule: "EMAIL_EXACT", personId: 1 },
  ],
  ["a second address counts like the first", "ada@home.example", { side: "BUYER", status: "MATCHED", personId: 1 }],
  [
    "two persons with one address are ambiguous, with both",
    "info@buyer.example",
    { status: "AMBIGUOUS", personId: null, candidateIds: [1, 2] },
  ],
  ["a stranger stays a stranger", "new@buyer.example", { side: "BUYER", status: "NONE", personId: null }],
  ["what is no address is ignored", null, { side: "IGNORED", status: "NONE" }],
])("%s", (_case, address, expected) => {
  const persons = [
    person(2, "info@buyer.example"),
    person(1, "ada@buyer.example", "ada@home.example", "info@buyer.example"),
  ];
  expect(sidesOf(address, persons)).toMatchObject(expected);
});

const startsAt = new Date("2026-11-20T10:00:00Z");
const day = (offset: number) => new Date(startsAt.getTime() + offset * 86_400_000);
const deal = (crmId: number, fields: Partial<DealFact> = {}): DealFact => ({
  crmId,
  addTime: day(-100),
  wonTime: null,
  lostTime: null,
  personIds: [1],
  ...fields,
});

test.each([
  ["the only open deal is the one", [deal(5)], "MATCHED", 5],
  ["two open deals need a choice", [deal(5), deal(6)], "NEEDS_CHOICE", null],
  ["a deal of other people does not count", [deal(5), deal(6, { personIds: [9] })], "MATCHED", 5],
  ["a deal opened 14 days after the meeting counts", [deal(5, { addTime: day(14) })], "MATCHED", 5],
  ["a deal opened later than that does not", [deal(5, { addTime: day(14.01) })], "NONE", null],
  ["a deal won 14 days before the meeting counts", [deal(5, { wonTime: day(-14) })], "MATCHED", 5],
  ["a deal lost earlier than that does not", [deal(5, { lostTime: day(-14.01) })], "NONE", null],
  ["a deal closed after the meeting was open at it", [deal(5, { wonTime: day(3) })], "MATCHED", 5],
  ["a deal whose opening is unknown counts", [deal(5, { addTime: null })], "MATCHED", 5],
  ["no deal at all is none", [], "NONE", null],
] as const)("%s", (_case, deals, status, dealId) => {
  expect(matchDeal(startsAt, new Set([1]), deals)).toMatchObject({ status, dealId });
});

test("without a known person there is no deal, whatever deals there are", () => {
  expect(matchDeal(startsAt, new Set(), [deal(5)])).toMatchObject({ status: "NONE", candidates: [] });
});

test("the order of the deals changes nothing, and every candidate is named", () => {
  const deals = [deal(7), deal(5), deal(6, { personIds: [1, 2] })];
  const one = matchDeal(startsAt, new Set([1, 2]), deals);
  expect(matchDeal(startsAt, new Set([2, 1]), [...deals].reverse())).toEqual(one);
  expect(one.candidates.map(({ dealId }) => dealId)).toEqual([5, 6, 7]);
});
