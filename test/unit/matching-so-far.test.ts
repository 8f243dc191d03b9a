import { matchIn, world } from "../support/matching-world";

test.each([
  [
    "reading PERSONS DEALS",
    "NONE: The CRM's persons and deals are still being read for the first time: the meeting is matched again then.",
  ],
  [
    "Ada = ada@acme.de; D1 of Ada; reading DEALS",
    "MATCHED: It is the only deal of the attendees that was open around the meeting. The CRM's deals are still being read for the first time, so this may change.",
  ],
  ["Ada = ada@acme.de; D1 of Ada; D2 of Ada; chosen D2; reading DEALS", "MATCHED: A user chose this deal."],
  [
    "Ada = ada@acme.de; reading DEALS",
    "NONE: The CRM's deals are still being read for the first time: the meeting is matched again then.",
  ],
  ["reading USERS", "NONE: No attendee is a known person of the CRM."],
])("with %j the meeting is told no more than is known", (crm, told) => {
  const { deal } = matchIn(world(crm, "ada@acme.de"));
  expect(`${deal.status}: ${deal.reason}`).toBe(told);
});

test("an attendee whom the CRM's persons may still bring is told so, and free mail stands for no company whatever comes", () => {
  const [stranger, free] = matchIn(world("reading PERSONS ORGANIZATIONS", "new@other.de; new@gmail.com")).attendees;
  expect([stranger?.reason, stranger?.organizationReason, free?.organizationReason]).toEqual([
    "The CRM's persons are still being read for the first time: who this is, is looked up again then.",
    "The CRM's persons and organizations are still being read for the first time: it is looked up again then.",
    "Free mail stands for no company.",
  ]);
});
