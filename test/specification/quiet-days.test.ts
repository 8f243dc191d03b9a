import { v2Time } from "../../simulator/model/times";
import { DAY_MS, HOUR_MS } from "../../src/platform/clock";
import { rejudged, setQuiet } from "../support/quiet-settings";
import { dataOf, recordMeeting, syncAgain } from "../support/stories";
import { useService } from "../support/world";

const { simulator, database, service } = useService({ deals: 20, connected: ["acme"] });

const MIDNIGHT = Math.floor(Date.now() / DAY_MS - 20) * DAY_MS;
const DAY = new Date(MIDNIGHT).toISOString().slice(0, 10);
const BRIEFING = `query ($id: ID!) { briefing(meetingId: $id) { timeline(first: 20) { kind at day activity { dueDay } }
  deal { lastInteraction { at day } quiet { quietSince quietSinceDay reasons { code since sinceDay } } } } }`;
interface Briefed {
  timeline: { kind: string; at: string; day: string | null; activity: { dueDay: string } | null }[];
  deal: {
    lastInteraction: object;
    quiet: { quietSince: string; quietSinceDay: string | null; reasons: { code: string; since: string }[] };
  };
}

// Seen red: an instant alone, which lies on the day before for whoever reads it west of the tenant's zone.
test.each([
  ["Europe/Tallinn", 15, true],
  ["America/Phoenix", 15, true],
  ["Europe/Tallinn", -30, false],
])(
  "in %s a call without a time, ticked off %i h after its day's midnight, is shown by its day: %s",
  async (timeZone, hours, isOfDay) => {
    const { control } = simulator;
    const email = `buyer@${timeZone.replace("/", "-")}${hours}.example`.toLowerCase();
    const emails = [{ value: email, primary: true, label: "work" }];
    const personId = control.add("person", { name: email, emails, org_id: null });
    const added = { add_time: v2Time(MIDNIGHT / 1_000 - 86_400 * 40), person_id: personId, org_id: null };
    const dealId = control.add("deal", { title: email, status: "open", ...added });
    const tickedOff = new Date(MIDNIGHT + hours * HOUR_MS).toISOString();
    const due = { due_date: DAY, due_time: "", marked_as_done_time: v2Time(Date.parse(tickedOff) / 1_000) };
    control.add("activity", { type: "call", done: true, deal_id: dealId, person_id: personId, ...due });
    await setQuiet(service, { timeZone });
    await rejudged(service);
    await syncAgain(service, database);
    const startsAt = new Date(MIDNIGHT - 35 * DAY_MS).toISOString();
    const { id } = await recordMeeting(service, [email], { startsAt });
    const { timeline, deal } = dataOf(await service.ask<{ briefing: Briefed }>(BRIEFING, { id })).briefing;
    const begins = MIDNIGHT + (timeZone === "America/Phoenix" ? 7 : -2) * HOUR_MS;
    const [at, day] = isOfDay ? [expect.anything(), DAY] : [tickedOff, null];
    const [call, ...others] = timeline;
    expect(call).toEqual({ kind: "ACTIVITY", at, day, activity: { dueDay: DAY } });
    if (isOfDay) expect([begins, begins - HOUR_MS]).toContain(Date.parse(call?.at ?? ""));
    for (const other of others) expect(other.day).toBeNull();
    expect(deal.lastInteraction).toEqual({ at: call?.at, day });
    const { quietSince, quietSinceDay, reasons } = deal.quiet;
    expect({ quietSince, quietSinceDay }).toEqual({ quietSince: call?.at, quietSinceDay: day });
    expect(reasons).toContainEqual({ code: "NO_NEXT_STEP", since: call?.at, sinceDay: day });
  },
);

const TYPED = `query ($id: ID!) { briefing(meetingId: $id) { gaps { code } timeline(first: 20) { day activity { dueDay } }
  deal { expectedCloseDate quiet { reasons { code } } } } }`;
interface Typed {
  gaps: { code: string }[];
  timeline: { day: string | null; activity: { dueDay: string } | null }[];
  deal: { expectedCloseDate: string; quiet: { reasons: { code: string }[] } };
}

// Seen red: neither the deal nor the activity was there.
test.each(["0202-12-01", "0999-12-31", "0020-02-29", "0001-01-01"])(
  "a year that was typed as %s costs no record",
  async (typed) => {
    const { control } = simulator;
    const email = `buyer@typed-${typed}.example`;
    const person_id = control.add("person", { name: email, emails: [{ value: email, primary: true, label: "" }] });
    const days = { due_date: typed, due_time: "", marked_as_done_time: null };
    const deal_id = control.add("deal", { title: email, status: "open", person_id, expected_close_date: typed });
    control.add("activity", { type: "call", done: true, deal_id, person_id, ...days });
    await syncAgain(service, database);
    const { id } = await recordMeeting(service, [email]);
    const { briefing } = dataOf(await service.ask<{ briefing: Typed }>(TYPED, { id }));
    expect(briefing.gaps).toEqual([]);
    expect(briefing.deal.expectedCloseDate).toBe(typed);
    expect(briefing.deal.quiet.reasons).toEqual([{ code: "CLOSE_DATE_PASSED" }]);
    expect(briefing.timeline).toContainEqual({ day: typed, activity: { dueDay: typed } });
  },
);
