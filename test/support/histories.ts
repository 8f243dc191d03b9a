import type { Simulator } from "../../simulator";
import * as times from "../../simulator/model/times";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/platform/clock";
import { writeNote } from "./notes";
import fc from "./properties";
import { setQuiet } from "./quiet-settings";
import type { Service } from "./service";
import { dataOf, recordMeeting } from "./stories";

/** What random changes are made in: a company, the service beside it, and the clock of both. */
export interface Stage {
  simulator: Simulator;
  service: Service;
  now(): number;
  /** The deals that a meeting may lead to, and the people of them. */
  deals: number[];
  persons: number[];
  /** Of whom no meeting knows: they come to a deal and leave it, and no match changes with them. */
  strangers: number[];
}

const all = ({ persons, strangers }: Stage) => [...persons, ...strangers];

/** Numbers from which a change takes what it needs. */
export interface Draw {
  kind: number;
  of: number;
  to: number;
  /** Days from now, of what lies behind or ahead. */
  days: number;
}
export const draw: fc.Arbitrary<Draw> = fc.record({
  kind: fc.nat(1_000),
  of: fc.nat(1_000),
  to: fc.nat(1_000),
  days: fc.oneof(fc.constantFrom(0, 1, 3, 7, 8.4, 10, 14, 30), fc.double({ min: 0, max: 40, noNaN: true })),
});

export const pick = <T>(list: readonly T[], number: number): T => {
  const found = list[number % list.length];
  if (found === undefined) throw new Error("there is nothing to choose from");
  return found;
};

const v1Time = (at: number) => times.v1Time(at / 1_000);
const v2Time = (at: number) => times.v2Time(at / 1_000);
const dateOnly = (at: number) => times.dateOnly(at / 1_000);
const timeOnly = (at: number) => new Date(at).toISOString().slice(11, 16);

export const DAY_MOVED = "a deal's day was moved, of a few and mostly later";
const OFTEN_MOVED = 3;

/** What people do in the CRM; a sync brings it. */
export const IN_THE_CRM: Record<string, (stage: Stage, draw: Draw) => unknown> = {
  "a mail came": (stage, { of, days }) => {
    const last_incoming_mail_time = v2Time(stage.now() - days * DAY_MS);
    stage.simulator.control.change("person", pick(all(stage), of), { last_incoming_mail_time });
  },
  "a mail was sent": (stage, { of, days }) => {
    const last_outgoing_mail_time = v2Time(stage.now() - days * DAY_MS);
    stage.simulator.control.change("person", pick(all(stage), of), { last_outgoing_mail_time });
  },
  "an activity was done": (stage, { of, to, days }) => {
    const at = stage.now() - days * DAY_MS;
    const type = pick(["call", "meeting", "lunch", "task", "deadline", "email", "demo"], to);
    const who = to % 3 === 0 ? {} : { person_id: pick(stage.persons, of) };
    const due = { due_date: dateOnly(at), due_time: to % 2 === 0 ? timeOnly(at) : "" };
    stage.simulator.control.add("activity", {
      type,
      done: true,
      deal_id: pick(stage.deals, of),
      marked_as_done_time: v2Time(at),
      ...due,
      ...who,
    });
  },
  "an activity was planned": (stage, { of, to, days }) => {
    const at = stage.now() + (to % 4 === 0 ? -days : days) * DAY_MS;
    const due = { due_date: dateOnly(at), due_time: to % 2 === 0 ? timeOnly(at) : "" };
    stage.simulator.control.add("activity", { type: "call", done: false, deal_id: pick(stage.deals, of), ...due });
  },
  "an activity was ticked off, or opened again": (stage, { of }) => {
    const [id, activity] = pick([...stage.simulator.company.activities], of);
    const done = !activity.done;
    const marked_as_done_time = done ? v2Time(stage.now()) : null;
    stage.simulator.control.change("activity", id, { done, marked_as_done_time });
  },
  "an activity moved to another deal": (stage, { of, to }) =>
    stage.simulator.control.change("activity", activityOf(stage, of), {
      deal_id: to % 5 === 0 ? null : pick(stage.deals, to),
    }),
  "an activity was removed": (stage, { of }) => stage.simulator.control.remove("activity", activityOf(stage, of)),
  "a note was written": ({ simulator, deals, now }, { of, days }) => {
    const add_time = v1Time(now() - days * DAY_MS);
    simulator.control.add("note", { deal_id: pick(deals, of), content: "They called.", add_time });
  },
  "a note moved to another deal": (stage, { of, to }) =>
    stage.simulator.control.change("note", noteOf(stage, of), { deal_id: pick(stage.deals, to) }),
  "a note was removed": (stage, { of }) => stage.simulator.control.remove("note", noteOf(stage, of)),
  "a deal changed stage": ({ simulator, deals, now }, { of, to, days }) =>
    simulator.control.change("deal", pick(deals, of), {
      stage_id: pick([...simulator.company.stages.keys()], to),
      stage_change_time: v2Time(now() - days * DAY_MS),
    }),
  "a deal got another value and owner": ({ simulator, deals }, { of, to }) => {
    const owner_id = pick([...simulator.company.users.keys()], to);
    simulator.control.change("deal", pick(deals, of), { value: to, currency: pick(["EUR", "SEK"], of), owner_id });
  },
  "a deal got another title, day and company": ({ simulator, deals, now }, { of, to, days }) => {
    const org_id = to % 4 === 0 ? null : pick([...simulator.company.organizations.keys()], to);
    const expected_close_date = to % 5 === 0 ? null : dateOnly(now() + days * DAY_MS);
    simulator.control.change("deal", pick(deals, of), { title: `Deal ${to}`, expected_close_date, org_id });
  },
  [DAY_MOVED]: ({ simulator, deals, now }, { of, to, days }) => {
    const id = pick(deals.slice(0, OFTEN_MOVED), of);
    const day = Date.parse(simulator.company.deals.get(id)?.expected_close_date ?? dateOnly(now()));
    const moved = (to % 3 === 0 ? -1 : 1) * (days + 1) * DAY_MS;
    simulator.control.change("deal", id, { expected_close_date: dateOnly(day + moved) });
  },
  "a deal was won, lost or taken up again": ({ simulator, deals }, { of, to }) =>
    simulator.control.change("deal", pick(deals, of), { status: pick(["open", "open", "won", "lost"] as const, to) }),
  "a deal got another person": ({ simulator, deals, persons }, { of, to }) =>
    simulator.control.change("deal", pick(deals, of), { person_id: to % 5 === 0 ? null : pick(persons, to) }),
  "a deal was added at another time": ({ simulator, deals, now }, { of, days }) =>
    simulator.control.change("deal", pick(deals, of), { add_time: v2Time(now() - days * DAY_MS) }),
  "a deal got other participants": ({ simulator, deals, persons, strangers }, { of, to }) => {
    const some = [pick(strangers, to), pick(persons, of + 1), pick(strangers, to + of)].slice(0, to % 4);
    simulator.control.setParticipants(pick(deals, of), [...new Set(some)], "moves");
  },
  "a stage rots in other days": ({ simulator }, { of, to }) =>
    simulator.control.change("stage", pick([...simulator.company.stages.keys()], of), {
      is_deal_rot_enabled: to % 4 > 0,
      days_to_rotten: (to % 30) + 1,
    }),
  "a person was hidden, or a deal": ({ simulator, deals, persons }, { of, to }) =>
    to % 2 === 0
      ? simulator.control.hide("deal", pick(deals, of))
      : simulator.control.hide("person", pick(persons, of)),
  "all that was hidden is seen again": ({ simulator, deals, persons }) => {
    for (const id of deals) simulator.control.show("deal", id);
    for (const id of persons) simulator.control.show("person", id);
  },
  "two persons were made one": (stage, { of, to }) => {
    const [loserId, winnerId] = [pick(stage.persons, of), pick(stage.persons, to)];
    if (loserId === winnerId || stage.persons.length < 8) return;
    stage.simulator.control.merge("person", loserId, winnerId, "move");
    stage.persons = stage.persons.filter((id) => id !== loserId);
  },
  "the user moved to another zone": ({ simulator }, { of }) => {
    const timezone_name = pick(["Europe/Tallinn", "America/Santiago", "Pacific/Auckland", "Asia/Kolkata", "UTC"], of);
    for (const id of simulator.company.users.keys()) simulator.control.change("user", id, { timezone_name });
  },
};

const activityOf = ({ simulator, deals }: Stage, of: number) =>
  pick(
    [...simulator.company.activities].filter(([, one]) => deals.includes(one.deal_id ?? 0)),
    of,
  )[0];
const noteOf = ({ simulator, deals }: Stage, of: number) =>
  pick(
    [...simulator.company.notes].filter(([, one]) => deals.includes(one.deal_id ?? 0)),
    of,
  )[0];

/** What is done by the API, and holds at once. */
export const BY_THE_API: Record<string, (stage: Stage, draw: Draw) => Promise<unknown>> = {
  "a meeting is recorded, or again for another time or people": async (stage, { of, to, days }) => {
    const startsAt = stage.now() + (to % 2 === 0 ? days : -days) * DAY_MS;
    const endsAt = to % 3 === 0 ? null : new Date(startsAt + HOUR_MS).toISOString();
    const times = { startsAt: new Date(startsAt).toISOString(), endsAt };
    const emails = [emailOf(stage, of), ...(to % 4 === 0 ? [emailOf(stage, to)] : [])];
    await recordMeeting(stage.service, emails, { externalId: `history-${of % 30}`, ...times });
  },
  "a meeting is cancelled": (stage, { of }) => end(stage, "cancelMeeting", of),
  "a meeting is deleted": (stage, { of }) => end(stage, "deleteMeeting", of),
  "a deal is chosen": async (stage, { of, to }) => {
    const open = (await meetings(stage)).filter(({ match }) => match.candidates.length > 0);
    if (open.length === 0) return;
    const { id, match } = pick(open, of);
    const deal = pick(match.candidates, to).deal.id;
    const choose = "mutation ($id: ID!, $deal: ID!) { chooseDeal(meetingId: $id, dealId: $deal) { __typename } }";
    dataOf(await stage.service.ask(choose, { id, deal }));
  },
  "a choice is taken back": (stage, { of }) => end(stage, "unchooseDeal", of),
  "own days are set for a stage, or for its pipeline": async ({ service, deals, simulator }, { of, to }) => {
    const query = "{ connection { pipelines { id stages { id crmId } } } }";
    const { connection } = dataOf(await service.ask<{ connection: { pipelines: Pipeline[] } }>(query));
    const stageId = simulator.company.deals.get(pick(deals, of))?.stage_id;
    const places = connection.pipelines.flatMap(({ id, stages }) =>
      stages.map((one) => ({ ...one, at: to % 2 === 0 ? { pipelineId: id } : { stageId: one.id } })),
    );
    const place = places.find(({ crmId }) => Number(crmId) === stageId);
    if (!place) return;
    await setQuiet(service, {
      thresholds: [
        { code: "NO_RECENT_ACTIVITY", days: (to % 20) + 1, ...place.at },
        { code: "CLOSE_DATE_PUSHED", days: (to % 3) + 1, ...place.at },
      ],
    });
  },
  "a note of ours is written": async (stage, { of }) => {
    const about = (await meetings(stage)).filter(({ match }) => match.deal !== null);
    if (about.length > 0) await writeNote(stage.service, { meetingId: pick(about, of).id });
  },
};

function emailOf({ simulator, persons }: Stage, of: number): string {
  return simulator.company.persons.get(pick(persons, of))?.emails[0]?.value ?? "nobody@nowhere.example";
}

interface Pipeline {
  id: string;
  stages: { id: string; crmId: string }[];
}
interface Listed {
  id: string;
  match: { deal: { id: string } | null; candidates: { deal: { id: string } }[] };
}
async function meetings({ service }: Stage): Promise<Listed[]> {
  const query = "{ meetings(first: 50) { nodes { id match { deal { id } candidates { deal { id } } } } } }";
  return dataOf(await service.ask<{ meetings: { nodes: Listed[] } }>(query)).meetings.nodes;
}

async function end(stage: Stage, name: string, of: number): Promise<void> {
  const found = await meetings(stage);
  if (found.length === 0) return;
  const mutation = `mutation ($id: ID!) { ${name}(meetingId: $id) { __typename } }`;
  dataOf(await stage.service.ask(mutation, { id: pick(found, of).id }));
}

/** How far both clocks go on before a sync is asked for; a sync may be asked for every ten minutes. */
export const passing = ({ to, days }: Draw): number => (to % 6 === 0 ? days * HOUR_MS : 0) + 11 * MINUTE_MS;
