import { matchIn, world } from "../support/matching-world";

test.each([
  [
    "reading PERSONS DEALS",
    "PENDING: The CRM's persons and deals have not been read to their end yet; the meeting is matched again then.",
  ],
  [
    "Ada = ada@acme.de; D1 of Ada; reading DEALS",
    "MATCHED: It is the only deal of the attendees that was open when the meeting began. The CRM's deals have not been read to their end yet, so this may change.",
  ],
  ["Ada = ada@acme.de; D1 of Ada; D2 of Ada; chosen D2; reading DEALS", "MATCHED: A user chose this deal."],
  [
    "Ada = ada@acme.de; reading DEALS",
    "PENDING: The CRM's deals have not been read to their end yet; the meeting is matched again then.",
  ],
  [
    "Ada = ada@acme.de; chosen D9 gone; reading DEALS",
    "PENDING: The deal that a user chose has not been read from the connected CRM yet; the meeting is matched again then.",
  ],
  ["", "NONE: No attendee is a known person of the CRM, or from a known company."],
])("with %j the meeting is told no more than is known", (crm, told) => {
  const { deal } = matchIn(world(crm, "ada@acme.de"));
  expect(`${deal.status}: ${deal.reason}`).toBe(told);
});

test.each([
  ["USERS ORGANIZATIONS", false],
  ["DEALS", true],
  ["PERSONS", true],
])("while %s are read, that the deal may change is %j", (lists, mayChange) => {
  const { deal } = matchIn(world(`Ada = ada@acme.de; D1 of Ada; reading ${lists}`, "ada@acme.de"));
  expect(deal).toMatchObject({ status: "MATCHED", mayChange });
});

test("an attendee whom the CRM may still bring is PENDING, and what free mail stands for no list will bring", () => {
  const crm = "Kim = kim@gmail.com; reading PERSONS ORGANIZATIONS";
  const { attendees } = matchIn(world(crm, "new@other.de; kim@gmail.com; no-reply@acme.de; anna@seller.de"));
  const words = attendees.map(({ status, organizationStatus }) => `${status} ${organizationStatus}`);
  expect(words).toEqual(["PENDING PENDING", "MATCHED NONE", "NONE NONE", "NONE NONE"]);
  const again = "The CRM's persons and organizations have not been read to their end yet; it is looked up again then.";
  expect([attendees[0]?.reason, attendees[0]?.organizationReason, attendees[1]?.organizationReason]).toEqual([
    again,
    again,
    "Free mail stands for no company.",
  ]);
});

// Seen red: the first deal that came made one of two persons certain, and the next page brought the other's.
test.each(["DEALS", "PERSONS", "PERSONS DEALS"])(
  "while %s are read, the only one on an open deal of those with an address may not stay it",
  (lists) => {
    const crm = `Ann = ada@acme.de; Bea = ada@acme.de; D1 of Ann; reading ${lists}`;
    const [attendee] = matchIn(world(crm, "ada@acme.de")).attendees;
    const unread = `The CRM's ${lists.toLowerCase().replace(" ", " and ")} have not been read to their end yet`;
    expect(attendee).toMatchObject({
      ...{ status: "AMBIGUOUS", personId: null, rule: null, candidateIds: [1, 2] },
      reason: `2 persons in the CRM have this address, and 1 of them is on a deal that was open when the meeting began: nothing tells which one it is. ${unread}, so this may change.`,
    });
  },
);

test("who has an address is certain once the persons are read, and until then it is said that others may come", () => {
  const said = (lists: string) => {
    const { status, reason } = matchIn(world(`Ada = ada@acme.de; reading ${lists}`, "ada@acme.de")).attendees[0] ?? {};
    return `${status}: ${reason}`;
  };
  const exact = "MATCHED: This person has exactly this address in the CRM.";
  expect(said("DEALS")).toBe(exact);
  expect(said("PERSONS DEALS")).toBe(
    `${exact} The CRM's persons and deals have not been read to their end yet, so this may change.`,
  );
});
