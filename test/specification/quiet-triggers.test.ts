import * as times from "../../simulator/model/times";
import { judge } from "../../src/briefing/quiet/judge";
import { readKeptFacts, readQuietFacts } from "../../src/briefing/quiet/read-quiet";
import { DAY_MS, MINUTE_MS } from "../../src/platform/clock";
import { dataOf, recordMeeting, syncAgain } from "../support/stories";
import { useService } from "../support/world";

// Seen red with each of these forgotten: the deals that records have left, the deals of a meeting before its change and after it,
// another zone of the user who authorized.

/** How far the clocks of both sides are ahead. */
let aheadMs = 0;
const clock = () => new Date(Date.now() + aheadMs);
const now = () => clock().getTime();
const v1Time = (at: number) => times.v1Time(at / 1_000);
const v2Time = (at: number) => times.v2Time(at / 1_000);
const dateOnly = (at: number) => times.dateOnly(at / 1_000);

const { simulator, database, service } = useService({ deals: 60, clock, connected: ["acme"] });
beforeAll(async () => {
  const { singleDeal, severalDeals, noParticipants, ghosted } = simulator.company.stories;
  for (const { email } of [singleDeal, severalDeals, noParticipants, ghosted])
    await recordMeeting(service, [email], { startsAt: new Date(now() - 20 * DAY_MS).toISOString() });
});

async function sync(kind = "INCREMENTAL"): Promise<void> {
  aheadMs += 11 * MINUTE_MS;
  await syncAgain(service, database, undefined, kind);
}

interface Phase {
  deal_id: number;
  holds_from: string;
  verdict: string;
  quiet_since: Date | null;
}
const stored = (at: number | null) =>
  database.query<Phase>(
    `SELECT s.deal_id, s.holds_from::text, s.verdict, s.quiet_since FROM deal_silence s JOIN judged_copy USING (tenant_id, copy_id, generation)
     JOIN connection c USING (tenant_id, copy_id) WHERE $1::timestamptz IS NULL OR (s.holds_from <= $1 AND s.holds_until > $1) ORDER BY s.deal_id, s.phase`,
    [at === null ? null : new Date(at)],
  );
const scheduleOf = async (...ids: number[]) =>
  JSON.stringify((await stored(null)).filter(({ deal_id }) => ids.includes(deal_id)));

/** Each matched deal, at instants from now on: what is stored is what is judged of all facts. */
async function isJudged(): Promise<void> {
  const [of] = await database.query<{ tenant_id: number; copy_id: number }>(
    "SELECT tenant_id, copy_id FROM connection",
  );
  if (!of) throw new Error("nothing is connected");
  const scope = { ...database.scope(of.tenant_id), copyId: of.copy_id };
  const matched = await database.query<{ id: number }>(
    "SELECT DISTINCT r.crm_id AS id FROM matched_record r JOIN connection c USING (tenant_id, copy_id) WHERE r.entity = 'DEAL' ORDER BY 1",
  );
  const ids = matched.map(({ id }) => id);
  const from = now();
  const found = await readQuietFacts(scope, ids, new Date(from));
  const kept = await readKeptFacts(scope, ids, new Date(from));
  for (const days of [0, 1, 2, 5, 9, 13, 20, 33, 60]) {
    const at = from + days * DAY_MS;
    const phases = await stored(at);
    expect(phases.map(({ deal_id }) => deal_id)).toEqual(ids);
    for (const { deal_id, verdict, quiet_since } of phases) {
      const facts = found?.deals.find(({ dealId }) => dealId === deal_id);
      if (!found || !facts) throw new Error("a matched deal was not read");
      const signal = judge(facts, { ...found.copy, readAt: at }, new Date(at));
      const keptFacts = kept?.deals.find(({ dealId }) => dealId === deal_id);
      expect(keptFacts && judge(keptFacts, { ...found.copy, readAt: at }, new Date(at))).toEqual(signal);
      expect({ deal_id, days, verdict, quiet_since }).toEqual({
        deal_id,
        days,
        verdict: signal.verdict,
        quiet_since: signal.quietSince,
      });
    }
  }
}

/** `other` has no participants: nothing is asked of it behind a change that could judge it as well. */
const { deal, other, person, extra, activity, note, planned } = {
  deal: () => simulator.company.stories.singleDeal.dealId,
  other: () => simulator.company.stories.noParticipants.dealId,
  person: () => simulator.company.stories.singleDeal.personId,
  extra: { id: 0 },
  activity: { id: 0 },
  note: { id: 0 },
  planned: { id: 0 },
};
const control = () => simulator.control;
const call = { type: "call", done: true };
const meet = (story: "noParticipants" | "ghosted", inMs: number) =>
  recordMeeting(service, [simulator.company.stories[story].email], {
    externalId: "moved",
    startsAt: new Date(now() + inMs).toISOString(),
  });

interface Change {
  act: () => unknown;
  kind?: "FULL" | "RECONCILE" | "NONE";
  changes: () => number[];
}

/** Each is the only thing that happens before what is stored must have changed: who forgets one is seen. */
test.each<[string, Change]>([
  [
    "a person's mail",
    {
      act: () => control().change("person", person(), { last_incoming_mail_time: v2Time(now() - 60 * MINUTE_MS) }),
      changes: () => [deal()],
    },
  ],
  [
    "an activity that is planned",
    {
      act: () => {
        const due = { due_date: dateOnly(now() + 4 * DAY_MS), due_time: "" };
        planned.id = control().add("activity", {
          type: "call",
          done: false,
          ...due,
          deal_id: deal(),
          person_id: person(),
        });
      },
      changes: () => [deal()],
    },
  ],
  [
    "the zone of the user who authorized",
    {
      act: () => {
        for (const { id } of simulator.company.users.values())
          control().change("user", id, { timezone_name: "Pacific/Auckland" });
      },
      changes: () => [deal()],
    },
  ],
  [
    "a deal's new stage",
    {
      act: () => control().change("deal", other(), { stage_change_time: v2Time(now() - 35 * DAY_MS) }),
      changes: () => [other()],
    },
  ],
  [
    "an activity that is done",
    {
      act: () => {
        const due = now() - 30 * MINUTE_MS;
        const at = {
          due_date: dateOnly(due),
          due_time: new Date(due).toISOString().slice(11, 16),
          marked_as_done_time: v2Time(due),
        };
        activity.id = control().add("activity", { ...call, ...at, deal_id: deal(), person_id: person() });
      },
      changes: () => [deal()],
    },
  ],
  [
    "an activity that moves to another deal",
    {
      act: () => control().change("activity", activity.id, { deal_id: other() }),
      changes: () => [deal(), other()],
    },
  ],
  [
    "an activity that is gone",
    {
      act: () => control().remove("activity", activity.id),
      kind: "RECONCILE",
      changes: () => [other()],
    },
  ],
  [
    "a note",
    {
      act: () => {
        note.id = control().add("note", {
          deal_id: deal(),
          content: "They called.",
          add_time: v1Time(now() - MINUTE_MS),
        });
      },
      changes: () => [deal()],
    },
  ],
  [
    "a note that moves to another deal",
    {
      act: () => control().change("note", note.id, { deal_id: other() }),
      changes: () => [deal(), other()],
    },
  ],
  [
    "a note that is gone",
    { act: () => control().remove("note", note.id), kind: "RECONCILE", changes: () => [other()] },
  ],
  [
    "a stage that rots sooner",
    {
      act: () => {
        const { stageId } = simulator.company.stories.singleDeal;
        control().change("stage", stageId, { is_deal_rot_enabled: true, days_to_rotten: 4 });
      },
      kind: "FULL",
      changes: () => [deal()],
    },
  ],
  [
    "a participant who came",
    {
      act: () => {
        const mailed = { last_incoming_mail_time: v2Time(now() - MINUTE_MS) };
        extra.id = control().add("person", { name: "Somebody Else", ...mailed });
        control().setParticipants(deal(), [person(), extra.id], "moves");
      },
      changes: () => [deal()],
    },
  ],
  [
    "a participant who is gone from the CRM",
    {
      act: () => control().remove("person", extra.id),
      kind: "RECONCILE",
      changes: () => [deal()],
    },
  ],
  [
    "a meeting",
    {
      act: () => meet("noParticipants", -30 * MINUTE_MS),
      kind: "NONE",
      changes: () => [other()],
    },
  ],
  [
    "a meeting that is moved",
    {
      act: () => meet("noParticipants", 3 * DAY_MS),
      kind: "NONE",
      changes: () => [other()],
    },
  ],
  [
    "a meeting that is with others now",
    {
      act: () => meet("ghosted", 3 * DAY_MS),
      kind: "NONE",
      changes: () => [other(), simulator.company.stories.ghosted.dealId],
    },
  ],
  ["a deal that is won", { act: () => control().change("deal", other(), { status: "won" }), changes: () => [other()] }],
  ["a deal that is gone", { act: () => control().remove("deal", other()), changes: () => [other()] }],
])("what is stored follows %s", async (_kind, { act, kind, changes }) => {
  const before = await Promise.all(changes().map((id) => scheduleOf(id)));
  await act();
  if (kind !== "NONE") await sync(kind);
  const after = await Promise.all(changes().map((id) => scheduleOf(id)));
  for (const [index, id] of changes().entries()) expect([id, after[index] === before[index]]).toEqual([id, false]);
  await isJudged();
});

test.each(["cancelMeeting", "deleteMeeting"])(
  "a meeting is no contact and no next step any more after %s",
  async (end) => {
    const { email, dealId } = simulator.company.stories.ghosted;
    const before = await scheduleOf(dealId);
    const startsAt = new Date(now() + 5 * DAY_MS).toISOString();
    const { id } = await recordMeeting(service, [email], { externalId: `ended by ${end}`, startsAt });
    expect(await scheduleOf(dealId)).not.toBe(before);
    dataOf(await service.ask(`mutation ($id: ID!) { ${end}(meetingId: $id) { __typename } }`, { id }));
    expect(await scheduleOf(dealId)).toBe(before);
    await isJudged();
  },
);

test("a deal that becomes matched is judged with its match", async () => {
  const { email, dealId } = simulator.company.stories.secondaryAddress;
  expect(await scheduleOf(dealId)).toBe("[]");
  await recordMeeting(service, [email]);
  expect(await scheduleOf(dealId)).not.toBe("[]");
  await isJudged();
});
