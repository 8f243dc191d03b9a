import { connect, dataOf, recordMeeting, syncAgain, syncEnds } from "../support/stories";
import { useService } from "../support/world";

// Seen red: users of the CRM looked for by the calendar's own spelling, so that one with a tag in the CRM was a buyer; meetings of
// an owner found by the text that was recorded, a name and all.

const { simulator, database, service } = useService({ deals: 20 });
const as = { tenant: "spellings", email: "uwe.dotted@gmail.com" };

const severalDeals = () => simulator.company.stories.severalDeals;
beforeAll(async () => {
  await connect(service, simulator, as);
  await syncEnds(service, as);
  simulator.control.change("user", severalDeals().ownerIds[0], { email: "Uwe.Dotted+crm@googlemail.com" });
  await syncAgain(service, database, as, "FULL");
});

test.each(["uwedotted@gmail.com", "Uwe <uwe.dotted+calendar@gmail.com>", "Uwe.Dotted+crm@googlemail.com"])(
  "a user of the CRM is one of our own as %s, and the owner of deals",
  async (email) => {
    const { email: buyer, ownerIds } = severalDeals();
    const { id, attendees } = await recordMeeting(service, [buyer, email], {}, as);
    expect(attendees.map(({ side }) => side)).toEqual(["BUYER", "SELLER"]);
    const own = await recordMeeting(service, [buyer], { ownerEmail: email }, as);
    const query = `query ($id: ID!, $own: ID!) {
      meeting(id: $id) { match { rule } } own: meeting(id: $own) { owner { crmId } match { rule } } }`;
    expect(dataOf(await service.ask(query, { id, own: own.id }, as))).toEqual({
      meeting: { match: { rule: "OWNER_ATTENDS" } },
      own: { owner: { crmId: String(ownerIds[0]) }, match: { rule: "OWNER_ATTENDS" } },
    });
  },
);

test("of two users of one mailbox a meeting's owner is the one with that very address, or nobody is named", async () => {
  const [, other] = severalDeals().ownerIds;
  simulator.control.change("user", other, { email: "uwe.dotted+sales@gmail.com" });
  await syncAgain(service, database, as, "FULL");
  const ownerOf = async (ownerEmail: string) => {
    const { id } = await recordMeeting(service, [], { ownerEmail }, as);
    const query = "query ($id: ID!) { meeting(id: $id) { owner { crmId } } }";
    return dataOf(await service.ask<{ meeting: { owner: object | null } }>(query, { id }, as)).meeting.owner;
  };
  expect(await ownerOf("uwe.dotted+sales@gmail.com")).toEqual({ crmId: String(other) });
  expect(await ownerOf("uwedotted@gmail.com")).toBeNull();
});

test("the meetings of an owner are found however the owner was written", async () => {
  const spellings = ["Anna <anna@owners.example>", "ANNA@Owners.example", "anna+work@owners.example"];
  for (const ownerEmail of spellings) await recordMeeting(service, [], { ownerEmail }, as);
  const query = `query ($ownerEmail: String!) {
    meetings(first: 10, filter: { ownerEmail: $ownerEmail }) { nodes { ownerEmail } } }`;
  for (const ownerEmail of ["anna@owners.example", ...spellings]) {
    const { meetings } = dataOf(
      await service.ask<{ meetings: { nodes: { ownerEmail: string }[] } }>(query, { ownerEmail }, as),
    );
    expect(meetings.nodes.map((node) => node.ownerEmail).sort()).toEqual([...spellings].sort());
  }
});
