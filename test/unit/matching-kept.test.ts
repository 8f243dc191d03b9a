import { BOTH, dealInWords, matchIn, OTHER, TWO, world } from "../support/matching-world";

// Which deal a meeting is about that is kept: why, what the CRM holds, who attends, the answer.
test.each([
  ["a user chose", `${TWO}; D1 of Ada; D2 of Ada; chosen D2`, BOTH, "D2 CHOSEN"],
  [
    "a choice stands above an activity",
    `${TWO}; D1 of Ada; D2 of Ada; activity D1 Ada 0; chosen D2`,
    BOTH,
    "D2 CHOSEN",
  ],
  ["a choice stands when its people have left the deal", `${TWO}; D1 of Ada; D2 of Zoe; chosen D2`, BOTH, "D2 CHOSEN"],
  ["the chosen deal is gone: nothing takes its place", `${TWO}; D1 of Ada; chosen D2 gone`, BOTH, "choose D1"],
  ["the chosen deal is gone and there is no other", `${TWO}; chosen D2 gone`, BOTH, "none"],
  [
    "recorded again with the same people: still chosen",
    `${TWO}; D1 of Ada; D2 of Ada; chosen D2 for ${OTHER}`,
    BOTH,
    "D2 CHOSEN",
  ],
  [
    "recorded again with one of the people: still chosen, although the CRM has taken them off",
    `${TWO}; D1 of Ada; D2 of Zoe; chosen D2 for bob@acme.de`,
    BOTH,
    "D2 CHOSEN",
  ],
  [
    "recorded again with somebody who may be one of its people: still chosen",
    `Eve = eve@acme.de; Fay = eve@acme.de; D1 of Eve Fay; D2 of Fay won -60; chosen D2 for ${OTHER}`,
    "eve@acme.de",
    "D2 CHOSEN",
  ],
  [
    "recorded again with other people while it is to be asked for its participants: in doubt",
    `${TWO}; D1 of Ada; D2 of Zoe unasked; chosen D2 for ${OTHER}`,
    BOTH,
    "choose D1 D2",
  ],
  [
    "recorded again with other people while the CRM is read for the first time: in doubt",
    `${TWO}; chosen D2 for ${OTHER}; D2 of Zoe; reading PERSONS`,
    BOTH,
    "choose D2",
  ],
  [
    "recorded again with other people: decided anew",
    `${TWO}; D1 of Ada; D2 of Zoe; chosen D2 for ${OTHER}`,
    BOTH,
    "D1 ONLY_CANDIDATE",
  ],
])("%s", (_why, crm, attendees, answer) => {
  expect(dealInWords(world(crm, attendees))).toBe(answer);
});

// Seen red: a deal that is out of sight was no deal of those who attend, so that the choice was given up for good.
test("a choice outlasts that its deal is out of sight, whoever attends by then", () => {
  const { deal, dropsChoice } = matchIn(world(`${TWO}; D1 of Ada; chosen D2 gone for ${OTHER}`, BOTH));
  expect([deal.status, dropsChoice]).toEqual(["NEEDS_CHOICE", false]);
});

// Why a deal is kept, what the CRM holds, who attends, for whom it is kept. Seen red: for our own people as well, who attend
// always; for nobody, where no buyer is left: whoever comes next would have had the deal of others; for those of another deal.
test.each([
  ["who leads to it", `${TWO}; D1 of Ada`, BOTH, ["ada@acme.de"]],
  [
    "all buyers where nobody leads to it, and none of ours",
    `${TWO}; D2 of Zoe; chosen D2`,
    BOTH,
    ["ada@acme.de", "bob@acme.de"],
  ],
  [
    "who led to it, and who leads to it now",
    `${TWO}; D2 of Bob; chosen D2 for ada@acme.de`,
    BOTH,
    ["ada@acme.de", "bob@acme.de"],
  ],
  ["who leads to what took its place", `${TWO}; D2 of Bob; written D1 gone for ada@acme.de`, BOTH, ["bob@acme.de"]],
  ["those before, while only ours attend", `${TWO}; D2 of Zoe; chosen D2 for ${OTHER}`, "anna@seller.de", [OTHER]],
])("a deal is kept for %s", (_why, crm, attendees, people) => {
  expect(matchIn(world(crm, attendees)).keptFor).toEqual(people);
});
