import { v2Time } from "../../simulator/model/times";
import { DAY_MS } from "../../src/platform/clock";
import { dataOf, recordMeeting, syncAgain } from "../support/stories";
import { useService } from "../support/world";

const { simulator, database, service } = useService({ deals: 10, connected: ["acme"] });

const STARTED = Date.now();
const secondsAgo = (days: number) => Math.floor((STARTED - days * DAY_MS) / 1_000);
const at = (days: number) => new Date(secondsAgo(days) * 1_000);

const person = (name: string) =>
  simulator.control.add("person", {
    name,
    emails: [{ value: `${name}@unmatched.example`, primary: true, label: "work" }],
  });
const deal = (person_id: number, days: number, status: "open" | "won" = "open") =>
  simulator.control.add("deal", { title: `of ${person_id}`, status, person_id, add_time: v2Time(secondsAgo(days)) });

// Seen red: nothing was kept before a meeting, and the last mail by then was taken for the first.
test("our first mail is the earliest that was ever seen, also of a deal that no meeting was about by then", async () => {
  const [ada, bob, cleo] = [person("ada"), person("bob"), person("cleo")];
  const [old, young, others, won] = [deal(ada, 60), deal(bob, 10), deal(cleo, 60), deal(bob, 60, "won")];
  simulator.control.setParticipants(others, [cleo, bob]);
  for (const days of [20, 9, 2]) {
    for (const id of [ada, bob])
      simulator.control.change("person", id, { last_outgoing_mail_time: v2Time(secondsAgo(days)) });
    await syncAgain(service, database);
  }
  const kept = await database.query(
    `SELECT crm_id AS deal, first_mail_at AS at, first_mail_person_id AS person FROM deal
     WHERE crm_id = ANY ($1) ORDER BY crm_id`,
    [[old, young, others, won]],
  );
  expect(kept).toEqual([
    { deal: old, at: at(20), person: ada },
    { deal: young, at: at(9), person: bob },
    { deal: others, at: at(20), person: bob },
    { deal: won, at: null, person: null },
  ]);
  const startsAt = at(70).toISOString();
  const { id } = await recordMeeting(service, ["ada@unmatched.example"], { startsAt });
  const query = "query ($id: ID!) { briefing(meetingId: $id) { deal { quiet { verdict reasons { code since } } } } }";
  interface Briefed {
    briefing: { deal: { quiet: { verdict: string; reasons: object[] } } };
  }
  const { quiet } = dataOf(await service.ask<Briefed>(query, { id })).briefing.deal;
  expect(quiet.verdict).toBe("GHOSTED");
  expect(quiet.reasons).toContainEqual({ code: "NEVER_REPLIED", since: at(20).toISOString() });
});
