import { blankActivity } from "../model/blank";
import type { Activity, Deal, Person } from "../model/records";
import { DAY, dateOnly, HOUR, v2Time } from "../model/times";
import { firstId, must, nextId, type SeedContext } from "./context";
import type { Random } from "./random";
import { subjects } from "./words";

export function seedActivities(context: SeedContext): void {
  const random = context.random.stream("activities");
  for (let index = 0; index < context.counts.activities; index++) {
    const type = random.weighted([
      ["call", 35],
      ["meeting", 30],
      ["email", 20],
      ["task", 15],
    ]);
    const dealId = random.chance(0.92) ? random.pick(context.pool.deals) : null;
    const deal = dealId === null ? null : must(context.company.deals.get(dealId));
    const about = deal ?? aboutPerson(must(context.company.persons.get(random.pick(context.pool.persons))));
    addActivity(context, {
      type,
      subject: random.pick(subjects[type] ?? []),
      ownerId: random.chance(0.85) ? about.owner_id : random.pick(context.pool.sellers),
      dealId,
      personId: about.person_id,
      orgId: about.org_id,
      ...timing(context, deal, random),
      random,
    });
  }
}

function aboutPerson(person: Person): Pick<Deal, "owner_id" | "person_id" | "org_id"> {
  return { owner_id: person.owner_id, person_id: person.id, org_id: person.org_id };
}

/** Mostly done; some overdue, some planned. A deal that fell silent has nothing after the other side's last mail. */
function timing(context: SeedContext, deal: Deal | null, random: Random): { due: number; done: boolean } {
  const silentSince = deal === null ? undefined : context.pool.silentSince.get(deal.id);
  if (silentSince !== undefined) return { due: silentSince - random.int(1, 60) * DAY, done: true };
  const isClosed = deal !== null && deal.status !== "open";
  const fate = random.next();
  if (!isClosed && fate < 0.1) return { due: context.now + random.int(HOUR, 40 * DAY), done: false };
  if (fate < 0.18) return { due: context.now - random.int(DAY, 30 * DAY), done: false };
  return { due: context.now - Math.floor(random.next() ** 2 * 400 * DAY) - HOUR, done: true };
}

export function addActivity(
  context: SeedContext,
  plan: {
    type: string;
    subject: string;
    ownerId: number;
    dealId: number | null;
    personId: number | null;
    orgId: number | null;
    due: number;
    done: boolean;
    random: Random;
  },
): Activity {
  const { random } = plan;
  const added = Math.min(plan.due, context.now) - random.int(HOUR, 10 * DAY);
  const activity = blankActivity({
    id: nextId(context.company.activities, firstId.activity),
    subject: plan.subject,
    type: plan.type,
    owner_id: plan.ownerId,
    add_time: v2Time(added),
  });
  activity.deal_id = plan.dealId;
  activity.person_id = plan.personId;
  activity.org_id = plan.orgId;
  if (plan.personId !== null) activity.participants = [{ person_id: plan.personId, primary: true }];
  activity.due_date = dateOnly(plan.due);
  if (random.chance(0.7)) {
    activity.due_time = `${v2Time(plan.due).slice(11, 16)}:00`;
    activity.duration = random.pick(["00:15:00", "00:30:00", "01:00:00", ""]);
  }
  activity.done = plan.done;
  activity.marked_as_done_time = plan.done ? v2Time(Math.min(plan.due + random.int(0, 2 * HOUR), context.now)) : null;
  activity.update_time = activity.marked_as_done_time ?? activity.add_time;
  activity.note = random.chance(0.2) ? "<p>Agenda in the invitation.</p>" : null;
  if (plan.type === "meeting" && random.chance(0.5)) {
    activity.busy = true;
    activity.conference_meeting_client = "google_meet";
    activity.conference_meeting_url = `https://meet.google.com/sim-${activity.id}`;
    activity.conference_meeting_id = `sim-${activity.id}`;
  }
  context.company.activities.set(activity.id, activity);
  return activity;
}
