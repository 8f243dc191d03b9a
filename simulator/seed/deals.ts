import { blankDeal } from "../model/blank";
import type { Deal, Stage } from "../model/records";
import { DAY, dateOnly, HOUR, v1Time, v2Time } from "../model/times";
import { firstId, must, nextId, type SeedContext } from "./context";
import { seededVisibility } from "./organizations";
import type { Random } from "./random";
import { currencies, lostReasons, products } from "./words";

const OLDEST_DAYS = 540;
const MOST_PARTICIPANTS = 5;
export const DELETED_PERCENT = 4;

export function seedDeals(context: SeedContext): void {
  const random = context.random.stream("deals");
  const stages = [...context.company.stages.values()];
  for (let index = 0; index < context.counts.deals; index++) {
    const added = context.now - Math.floor(random.next() ** 1.3 * OLDEST_DAYS * DAY) - random.int(HOUR, DAY);
    const orgId = random.chance(0.9) ? random.pick(context.pool.organizations) : null;
    const personId = random.chance(0.92) ? contactOf(context, orgId, random) : null;
    const deal = addDeal(context, {
      title: `${titleSubject(context, orgId, personId)} – ${random.pick(products)}`,
      stage: random.pick(stages),
      ownerId: random.pick(context.pool.sellers),
      orgId,
      personId,
      added,
      random,
    });
    deal.visible_to = seededVisibility(random);
    settle(context, deal, added, random);
    linkParticipants(context, deal.id, participantsOf(context, deal, random), added);
    context.pool.deals.push(deal.id);
  }
}

export function addDeal(
  context: SeedContext,
  plan: {
    title: string;
    stage: Stage;
    ownerId: number;
    orgId: number | null;
    personId: number | null;
    added: number;
    random: Random;
  },
): Deal {
  const { random } = plan;
  const deal = blankDeal({
    id: nextId(context.company.deals, firstId.deal),
    title: plan.title,
    owner_id: plan.ownerId,
    pipeline_id: plan.stage.pipeline_id,
    stage_id: plan.stage.id,
    add_time: v2Time(plan.added),
    custom_fields: context.customFields("deal", random),
  });
  deal.org_id = plan.orgId;
  deal.person_id = plan.personId;
  deal.currency = random.weighted(currencies);
  const amount = Math.exp(random.next() * 7 + 5.5);
  deal.value = deal.currency === "JPY" ? Math.round(amount) * 100 : Math.round(amount * 100) / 100;
  deal.stage_change_time = random.chance(0.75) ? v2Time(between(random, plan.added, context.now)) : null;
  deal.expected_close_date = random.chance(0.7) ? dateOnly(plan.added + random.int(30, 200) * DAY) : null;
  deal.probability = random.chance(0.3) ? random.int(1, 19) * 5 : null;
  const changed = deal.stage_change_time === null ? plan.added : Math.floor(Date.parse(deal.stage_change_time) / 1_000);
  deal.update_time = v2Time(between(random, changed, context.now));
  context.company.deals.set(deal.id, deal);
  return deal;
}

/** What became of the deal: still open (perhaps without an answer), won, lost, archived or deleted. */
function settle(context: SeedContext, deal: Deal, added: number, random: Random): void {
  const { open, closed } = context.percent;
  // Whole numbers: a choice among fractions could miss its end.
  const fate = random.weighted<"open" | "silent" | "won" | "lost" | "deleted">([
    ["open", open * 46 * 44],
    ["silent", open * 46 * 6],
    ["won", closed * 50 * 24],
    ["lost", closed * 50 * 22],
    ["deleted", DELETED_PERCENT * 46 * 50],
  ]);
  if (fate === "silent") fallSilent(context, deal, random);
  else copyMailTimes(context, deal);
  if (fate === "won" || fate === "lost") close(deal, fate, between(random, added, context.now), random);
  if (fate === "deleted") {
    deal.status = "deleted";
    deal.is_deleted = true;
    deal.stage_change_time = null;
    deal.update_time = v2Time(Math.max(added, context.now - random.int(1, 60) * DAY));
  } else if (deal.status !== "open" && random.chance(0.12)) {
    deal.is_archived = true;
    deal.archive_time = deal.update_time;
  }
}

function close(deal: Deal, status: "won" | "lost", at: number, random: Random): void {
  const time = v2Time(at);
  deal.status = status;
  deal.close_time = time;
  deal.local_close_date = dateOnly(at);
  deal.update_time = time;
  if (status === "won") {
    deal.won_time = time;
    deal.local_won_date = dateOnly(at);
  } else {
    deal.lost_time = time;
    deal.local_lost_date = dateOnly(at);
    deal.lost_reason = random.chance(0.7) ? random.pick(lostReasons) : null;
  }
}

function fallSilent(context: SeedContext, deal: Deal, random: Random): void {
  const incoming = context.now - random.int(30, 90) * DAY;
  deal.last_incoming_mail_time = v2Time(incoming);
  deal.last_outgoing_mail_time = v2Time(incoming + random.int(10, 20) * DAY);
  const person = deal.person_id === null ? undefined : context.company.persons.get(deal.person_id);
  if (person) {
    person.last_incoming_mail_time = deal.last_incoming_mail_time;
    person.last_outgoing_mail_time = deal.last_outgoing_mail_time;
  }
  context.pool.silentSince.set(deal.id, incoming);
}

function copyMailTimes(context: SeedContext, deal: Deal): void {
  const person = deal.person_id === null ? undefined : context.company.persons.get(deal.person_id);
  deal.last_incoming_mail_time = person?.last_incoming_mail_time ?? null;
  deal.last_outgoing_mail_time = person?.last_outgoing_mail_time ?? null;
}

function titleSubject(context: SeedContext, orgId: number | null, personId: number | null): string {
  if (orgId !== null) return must(context.company.organizations.get(orgId)).name;
  if (personId !== null) return must(context.company.persons.get(personId)).name;
  return "Inbound request";
}

function contactOf(context: SeedContext, orgId: number | null, random: Random): number {
  const colleagues = orgId === null ? undefined : context.pool.personsByOrganization.get(orgId);
  return random.pick(colleagues ?? context.pool.persons);
}

/** The contact person is mostly, but not always, a participant as well. */
function participantsOf(context: SeedContext, deal: Deal, random: Random): number[] {
  const chosen = new Set<number>();
  if (deal.person_id !== null && random.chance(0.85)) chosen.add(deal.person_id);
  const wanted = random.weighted([
    [0, 20],
    [1, 35],
    [2, 22],
    [3, 12],
    [4, 7],
    [MOST_PARTICIPANTS, 4],
  ]);
  for (let tries = 0; chosen.size < wanted && tries < 2 * MOST_PARTICIPANTS; tries++) {
    chosen.add(contactOf(context, random.chance(0.9) ? deal.org_id : null, random));
  }
  return wanted === 0 ? [] : [...chosen];
}

export function linkParticipants(
  context: SeedContext,
  dealId: number,
  personIds: readonly number[],
  added: number,
): void {
  if (personIds.length === 0) return;
  const deal = must(context.company.deals.get(dealId));
  const links = personIds.map((personId, index) => ({
    // Ten ids for each deal: never a person's id, and without a counter beside the data.
    id: firstId.participant + dealId * 10 + index,
    personId,
    addedBy: deal.owner_id,
    addTime: v1Time(added),
  }));
  context.company.participants.set(dealId, links);
}

function between(random: Random, from: number, to: number): number {
  return from + Math.floor(random.next() * (to - from));
}
