import { writeNote } from "../support/notes";
import { connect, noJobIsDue, readMatch, recordMeeting, syncAgain, syncEnds } from "../support/stories";
import { useService } from "../support/world";

let aheadMs = 0;
const clock = () => new Date(Date.now() + aheadMs);
const { simulator, database, service } = useService({ deals: 20, clock });

const matchOf = (id: string, as: object) => readMatch(service, id, as);
const somebody = (name: string) => {
  const email = `${name}@many-trading.example`;
  const emails = [{ value: email, primary: true, label: "work" }];
  return { email, id: simulator.control.add("person", { name, emails }) };
};

// Planted and seen red: the meeting stayed about the deal of others.
test("a meeting is matched again where nothing has changed but who takes part in its deal", async () => {
  const as = { tenant: "swapped" };
  const [met, other, third] = [somebody("met"), somebody("other"), somebody("third")];
  const deal = simulator.control.add("deal", { title: "Swapped", status: "open", person_id: null, org_id: null });
  simulator.control.setParticipants(deal, [met.id, third.id]);
  await connect(service, simulator, as);
  await syncEnds(service, as);
  const { id } = await recordMeeting(service, [met.email], {}, as);
  await syncAgain(service, database, as);
  expect(await matchOf(id, as)).toEqual({ status: "MATCHED", deal: { crmId: String(deal) } });
  simulator.control.setParticipants(deal, [other.id, third.id]);
  await syncAgain(service, database, as, "RECONCILE");
  expect(await matchOf(id, as)).toEqual({ status: "NONE", deal: null });
});

// Planted and seen red: it waited for the next change of a deal, a person or a company, whosever.
test("a meeting is matched again where nothing has come but an activity at its time, which tells its deal", async () => {
  const as = { tenant: "pointed" };
  const { email, personId: person_id, dealIds } = simulator.company.stories.severalDeals;
  const [deal_id = 0] = dealIds;
  await connect(service, simulator, as);
  await syncEnds(service, as);
  const startsAt = new Date(clock().getTime() + 3_600_000).toISOString();
  const { id } = await recordMeeting(service, [email], { startsAt }, as);
  await noJobIsDue(database);
  expect(await matchOf(id, as)).toEqual({ status: "NEEDS_CHOICE", deal: null });
  const due = { due_date: startsAt.slice(0, 10), due_time: startsAt.slice(11, 16) };
  simulator.control.add("activity", { subject: "Call", type: "call", deal_id, person_id, ...due });
  aheadMs += 10 * 60_000;
  await syncAgain(service, database, as);
  expect(await matchOf(id, as)).toEqual({ status: "MATCHED", deal: { crmId: String(deal_id) } });
});

// Planted and seen red: the match said the same of both, and of whom the deal was when the note was written was forgotten.
test("a deal that something is written to is kept for who leads to it then, and not for who did before", async () => {
  const as = { tenant: "led" };
  const [ada, bob, zoe] = [somebody("ada"), somebody("bob"), somebody("zoe")];
  const deal = simulator.control.add("deal", { title: "Led", status: "open", person_id: ada.id });
  const isOf = async ({ id }: { id: number }) => {
    simulator.control.setParticipants(deal, [id]);
    simulator.control.change("deal", deal, { person_id: id });
    aheadMs += 10 * 60_000;
    await syncAgain(service, database, as);
  };
  simulator.control.setParticipants(deal, [ada.id]);
  await connect(service, simulator, as);
  await syncEnds(service, as);
  const input = { externalId: "led", startsAt: new Date(Date.now() + 3_600_000).toISOString() };
  const { id } = await recordMeeting(service, [ada.email, bob.email], input, as);
  await isOf(bob);
  const about = { status: "MATCHED", deal: { crmId: String(deal) } };
  expect(await matchOf(id, as)).toEqual(about);
  expect((await writeNote(service, { meetingId: id }, as)).state).toBe("WRITTEN");
  await isOf(zoe);
  await recordMeeting(service, [bob.email], input, as);
  expect(await matchOf(id, as)).toEqual(about);
});
