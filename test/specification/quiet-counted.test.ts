import * as times from "../../simulator/model/times";
import { DAY_MS } from "../../src/platform/clock";
import { writeNote } from "../support/notes";
import { rejudged, setQuiet } from "../support/quiet-settings";
import { connect, dataOf, noJobIsDue, recordMeeting, syncAgain, syncEnds } from "../support/stories";
import { useService } from "../support/world";

// Seen red: an earlier first mail that is not kept; one that is kept and in no timeline; a held meeting that is left out of its own.

const { simulator, database, service } = useService({ deals: 20, connected: ["acme"] });

const STARTED = Date.now();
const ago = (days: number) => Math.floor((STARTED - days * DAY_MS) / 1_000);
const v2Time = (days: number) => times.v2Time(ago(days));
const iso = (days: number) => new Date(ago(days) * 1_000).toISOString();

let buyers = 0;
/** A person of the CRM with one open deal, of whom no other meeting knows. */
function newBuyer(): { email: string; personId: number; dealId: number } {
  const email = `buyer@counted-${++buyers}.example`;
  const { control } = simulator;
  const emails = [{ value: email, primary: true, label: "work" }];
  const personId = control.add("person", { name: email, emails, org_id: null });
  const added = { add_time: v2Time(60), stage_change_time: v2Time(1) };
  const dealId = control.add("deal", { title: email, status: "open", person_id: personId, org_id: null, ...added });
  control.setParticipants(dealId, [personId]);
  return { email, personId, dealId };
}

interface Briefed {
  deal: {
    quiet: {
      verdict: string;
      quietSince: string | null;
      reasons: { code: string; message: string; since: string | null }[];
    };
    lastInteraction: { kind: string; at: string } | null;
  };
  timeline: { kind: string; at: string; person: { crmId: string } | null }[];
}
const BRIEFING = `query ($id: ID!) { briefing(meetingId: $id) { timeline(first: 20) { kind at person { crmId } }
  deal { quiet { verdict quietSince reasons { code message since } } lastInteraction { kind at } } } }`;
const briefing = async (id: string, as = {}) =>
  dataOf(await service.ask<{ briefing: Briefed }>(BRIEFING, { id }, as)).briefing;

test("our first mail is the earliest that was ever seen, whoever of the deal got it, and it is in the timeline", async () => {
  const { email, personId, dealId } = newBuyer();
  const { control } = simulator;
  control.change("person", personId, { last_outgoing_mail_time: v2Time(20) });
  await syncAgain(service, database);
  const startsAt = new Date(Date.now() - 70 * DAY_MS).toISOString();
  const { id } = await recordMeeting(service, [email], { startsAt });
  const neverReplied = async () => {
    const { deal, timeline } = await briefing(id);
    const reason = deal.quiet.reasons.find(({ code }) => code === "NEVER_REPLIED");
    const mails = timeline
      .filter(({ kind }) => kind === "OUTGOING_MAIL")
      .map(({ at, person }) => [at, person?.crmId ?? null]);
    return { verdict: deal.quiet.verdict, since: reason?.since, message: reason?.message, mails };
  };
  expect(await neverReplied()).toMatchObject({ verdict: "GHOSTED", since: iso(20) });
  // A colleague comes, to whom we had written before.
  const colleague = control.add("person", { name: "Colleague", last_outgoing_mail_time: v2Time(30.2) });
  control.setParticipants(dealId, [personId, colleague], "moves");
  await syncAgain(service, database);
  for (const person of [personId, colleague]) control.change("person", person, { last_outgoing_mail_time: v2Time(2) });
  await syncAgain(service, database);
  const { mails, ...told } = await neverReplied();
  expect(told).toEqual({
    verdict: "GHOSTED",
    since: iso(30.2),
    message: "No answer of the buyer is known since our first known word, a mail to the buyer, 30 days ago.",
  });
  expect(mails).toEqual(expect.arrayContaining([[iso(30.2), null]]));
  expect(mails).toHaveLength(3);
});

// Seen red: whoever got it had to be one of the deal's people, and two records that were made one were an answer.
test("our first mail stays the first where the two records of who got it are made one", async () => {
  const { email, personId, dealId } = newBuyer();
  const { control } = simulator;
  const twin = control.add("person", { name: "Twin", last_outgoing_mail_time: v2Time(2), org_id: null });
  control.setParticipants(dealId, [personId, twin], "moves");
  control.change("person", personId, { last_outgoing_mail_time: v2Time(20) });
  await syncAgain(service, database);
  const { id } = await recordMeeting(service, [email], { startsAt: iso(70) });
  const said = async () => {
    const { deal, timeline } = await briefing(id);
    const since = deal.quiet.reasons.find(({ code }) => code === "NEVER_REPLIED")?.since;
    const mails = timeline.filter(({ kind }) => kind === "OUTGOING_MAIL");
    return { since, mails: mails.map(({ at }) => at) };
  };
  const before = { since: iso(20), mails: [iso(2), iso(20)] };
  expect(await said()).toEqual(before);
  control.merge("person", personId, twin, "move");
  control.change("person", twin, { emails: [{ value: email, primary: true, label: "work" }] });
  await syncAgain(service, database, {}, "RECONCILE");
  await noJobIsDue(database);
  expect(await said()).toEqual(before);
});

// Seen red: once the person was deleted it was nobody, and the mail counted again.
test("who has left the deal takes the first mail along, also when that person is deleted later", async () => {
  const { email, personId, dealId } = newBuyer();
  const { control } = simulator;
  const successor = control.add("person", { name: "Successor", org_id: null });
  control.change("person", personId, { last_outgoing_mail_time: v2Time(20) });
  await syncAgain(service, database);
  const { id } = await recordMeeting(service, [email], { startsAt: iso(70) });
  expect((await briefing(id)).deal.quiet.verdict).toBe("GHOSTED");
  control.change("deal", dealId, { person_id: successor });
  control.setParticipants(dealId, [successor], "moves");
  await syncAgain(service, database);
  control.remove("person", personId);
  await syncAgain(service, database, {}, "RECONCILE");
  await noJobIsDue(database);
  const kept = `SELECT first_mail_at AS at, first_mail_person_id AS "to" FROM deal WHERE crm_id = ${dealId}`;
  expect(await database.query(kept)).toEqual([{ at: null, to: null }]);
});

test("a person who has ever carried a mail time has one, also where the CRM shows none any more", async () => {
  const { email, personId } = newBuyer();
  simulator.control.change("person", personId, { last_outgoing_mail_time: v2Time(20) });
  await syncAgain(service, database);
  const { id } = await recordMeeting(service, [email], { startsAt: new Date(Date.now() - 70 * DAY_MS).toISOString() });
  simulator.control.change("person", personId, { last_outgoing_mail_time: null });
  await syncAgain(service, database);
  const { deal } = await briefing(id);
  expect(deal.quiet).toMatchObject({ verdict: "GHOSTED", quietSince: iso(20) });
});

test("a meeting that was held is in its own timeline, for the silence is counted from it", async () => {
  const { email } = newBuyer();
  await syncAgain(service, database);
  const { id } = await recordMeeting(service, [email], { startsAt: iso(5), endsAt: null });
  const { deal, timeline } = await briefing(id);
  expect(deal.lastInteraction).toMatchObject({ kind: "MEETING", at: iso(5) });
  expect(deal.quiet.reasons.map(({ message }) => message)).toEqual([
    "No next step is planned, and the last known contact, a recorded meeting, was 5 days ago.",
  ]);
  expect(timeline.map(({ kind, at }) => [kind, at])).toEqual([["MEETING", iso(5)]]);
});

test("of two tenants with one CRM company neither's notes and meetings move the other's silence", async () => {
  const other = { tenant: "twin" };
  const { email } = newBuyer();
  await connect(service, simulator, other);
  await syncEnds(service, other);
  await syncAgain(service, database);
  const startsAt = iso(25);
  const ours = await recordMeeting(service, [email], { startsAt });
  const theirs = await recordMeeting(service, [email], { startsAt }, other);
  const before = await briefing(ours.id);
  expect(before.deal.quiet).toMatchObject({ verdict: "QUIET", quietSince: startsAt });
  await writeNote(service, { meetingId: theirs.id }, other);
  await recordMeeting(service, [email], { startsAt: iso(1) }, other);
  await syncAgain(service, database, other);
  expect((await briefing(theirs.id, other)).deal.quiet.verdict).toBe("ACTIVE");
  await syncAgain(service, database);
  const after = await briefing(ours.id);
  expect([after.deal.quiet, after.timeline]).toEqual([before.deal.quiet, before.timeline]);
});

const codesOf = ({ reasons }: Briefed["deal"]["quiet"]) => reasons.map(({ code }) => code);
const dateIn = (timeZone: string, at: number) => new Intl.DateTimeFormat("sv-SE", { timeZone }).format(at);

// Seen red: by the day of UTC, where our mail of the evening before came after the call, and the buyer was said to be silent.
test("what was done on a day without a time counts from when that day began for the tenant", async () => {
  const { email, personId, dealId } = newBuyer();
  const { control } = simulator;
  const midnight = Math.floor((STARTED - 9 * DAY_MS) / DAY_MS) * DAY_MS;
  const [evening, late] = [midnight + DAY_MS / 6, midnight + DAY_MS * 0.9].map((at) => times.v2Time(at / 1_000));
  control.change("person", personId, { last_outgoing_mail_time: evening });
  const due = { due_date: new Date(midnight).toISOString().slice(0, 10), due_time: "", marked_as_done_time: late };
  const call = { type: "call", done: true, deal_id: dealId, person_id: personId, ...due };
  control.add("activity", call);
  await syncAgain(service, database);
  const { id } = await recordMeeting(service, [email], { startsAt: iso(70) });
  const said = async () => {
    const { deal, timeline } = await briefing(id);
    const contacts = timeline.filter(({ kind }) => kind !== "MEETING");
    const shown = contacts.map(({ kind, at }) => [kind, Date.parse(at) - midnight]);
    return { codes: codesOf(deal.quiet), last: deal.lastInteraction?.kind, shown };
  };
  await setQuiet(service, { timeZone: "UTC" });
  await rejudged(service);
  const [mail, hour] = [["OUTGOING_MAIL", DAY_MS / 6], DAY_MS / 24];
  expect(await said()).toMatchObject({
    codes: expect.arrayContaining(["GHOSTED"]),
    last: "OUTGOING_MAIL",
    shown: [mail, ["ACTIVITY", 0]],
  });
  await setQuiet(service, { timeZone: "America/Phoenix" });
  await rejudged(service);
  const { codes, ...rest } = await said();
  expect(codes).not.toContain("GHOSTED");
  expect(rest).toEqual({ last: "ACTIVITY", shown: [["ACTIVITY", 7 * hour], mail] });
  // What was never due, when it was ticked off. Seen red with that taken for a midnight: nine hours before.
  control.add("activity", { ...call, due_date: null });
  await setQuiet(service, { timeZone: "Asia/Tokyo" });
  await rejudged(service);
  await syncAgain(service, database);
  expect((await said()).shown).toContainEqual(["ACTIVITY", DAY_MS * 0.9]);
});

// Seen red: by the day of UTC.
test("the next activity may be one of this day without a time, and this day is the tenant's", async () => {
  const { email, personId, dealId } = newBuyer();
  const timeZone = new Date().getUTCHours() < 11 ? "Pacific/Pago_Pago" : "Pacific/Kiritimati";
  const add = (days: number) => {
    const due_date = new Date(STARTED + days * DAY_MS).toISOString().slice(0, 10);
    simulator.control.add("activity", {
      type: "call",
      done: false,
      deal_id: dealId,
      person_id: personId,
      due_date,
      due_time: "",
    });
  };
  for (const days of [-1, 0, 1, 2]) add(days);
  await syncAgain(service, database);
  const { id } = await recordMeeting(service, [email], { startsAt: iso(70) });
  await setQuiet(service, { timeZone });
  await rejudged(service);
  const asked = "query ($id: ID!) { briefing(meetingId: $id) { deal { nextActivity { dueAt dueDay } } } }";
  const { deal } = dataOf(await service.ask<{ briefing: { deal: { nextActivity: object } } }>(asked, { id })).briefing;
  const dueDay = dateIn(timeZone, Date.now());
  expect(deal.nextActivity).toEqual({ dueAt: `${dueDay}T00:00:00.000Z`, dueDay });
});

// Seen red: cut by when they can have been at the latest, a day without a time hid what came after it.
test("a timeline that is cut has the newest, also beside days without a time", async () => {
  const { email, personId, dealId } = newBuyer();
  const due_date = new Date(STARTED - 9 * DAY_MS).toISOString().slice(0, 10);
  const add = (due_time: string) => {
    const done = { done: true, due_date, due_time, marked_as_done_time: `${due_date}T21:36:00Z` };
    simulator.control.add("activity", { type: "call", deal_id: dealId, person_id: personId, ...done });
  };
  for (const time of ["", "06:00:00"]) add(time);
  await setQuiet(service, { timeZone: "UTC" });
  await rejudged(service);
  await syncAgain(service, database);
  const { id } = await recordMeeting(service, [email], { startsAt: iso(70) });
  const asked = "query ($id: ID!) { briefing(meetingId: $id) { timeline(first: 1) { at } } }";
  const { timeline } = dataOf(await service.ask<{ briefing: { timeline: object[] } }>(asked, { id })).briefing;
  expect(timeline).toEqual([{ at: `${due_date}T06:00:00.000Z` }]);
});
