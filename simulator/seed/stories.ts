import type { Person, Stage } from "../model/records";
import type { Stories } from "../model/stories";
import { DAY, dateOnly, HOUR, v2Time } from "../model/times";
import { addActivity } from "./activities";
import { must, type SeedContext } from "./context";
import { addDeal, linkParticipants } from "./deals";
import { addNote } from "./notes";
import { addOrganization } from "./organizations";
import { addPerson } from "./persons";

const STORY_AGE_DAYS = 40;

/** The stories come first and draw from a stream of their own, so their ids are the same whatever the size. */
export function seedStories(context: SeedContext): Stories {
  const story = new StoryTeller(context);
  return {
    singleDeal: singleDeal(context, story),
    severalDeals: severalDeals(story),
    sharedAddress: sharedAddress(story),
    freeMail: freeMail(story),
    ghosted: ghosted(context, story),
    secondaryAddress: secondaryAddress(story),
    noParticipants: noParticipants(story),
  };
}

class StoryTeller {
  readonly random;
  private readonly added: number;

  constructor(private readonly context: SeedContext) {
    this.random = context.random.stream("stories");
    this.added = context.now - STORY_AGE_DAYS * DAY;
  }

  seller(index: number): number {
    return must(this.context.pool.sellers[index]);
  }

  organization(name: string, domain: string): number {
    const { random, added } = this;
    const organization = addOrganization(this.context, { name, domain, ownerId: this.seller(0), added, random });
    organization.website = `https://www.${domain}`;
    return organization.id;
  }

  person(name: string, orgId: number | null, addresses: readonly string[]): Person {
    const { random, added } = this;
    const person = addPerson(this.context, { name, orgId, addresses, ownerId: this.seller(0), added, random });
    person.last_incoming_mail_time = v2Time(this.context.now - 3 * DAY);
    person.last_outgoing_mail_time = v2Time(this.context.now - 2 * DAY);
    return person;
  }

  deal(title: string, person: Person, ownerId: number, participantIds: readonly number[]): number {
    const stages: Stage[] = [...this.context.company.stages.values()];
    const deal = addDeal(this.context, {
      title,
      stage: must(stages[2]),
      ownerId,
      orgId: person.org_id,
      personId: person.id,
      added: this.added,
      random: this.random,
    });
    deal.stage_change_time = v2Time(this.context.now - 6 * DAY);
    deal.expected_close_date = dateOnly(this.context.now + 30 * DAY);
    deal.update_time = v2Time(this.context.now - 2 * DAY);
    deal.last_incoming_mail_time = person.last_incoming_mail_time;
    deal.last_outgoing_mail_time = person.last_outgoing_mail_time;
    linkParticipants(this.context, deal.id, participantIds, this.added);
    return deal.id;
  }
}

function singleDeal(context: SeedContext, story: StoryTeller): Stories["singleDeal"] {
  const email = "marta.lindqvist@halden-freight.example";
  const colleagueEmail = "jens.aaby@halden-freight.example";
  const orgId = story.organization("Halden Freight A/S", "halden-freight.example");
  const buyer = story.person("Marta Lindqvist", orgId, [email]);
  const colleague = story.person("Jens Aaby", orgId, [colleagueEmail]);
  const participantIds = [buyer.id, colleague.id];
  const ownerId = story.seller(0);
  const dealId = story.deal("Halden Freight A/S – annual licence", buyer, ownerId, participantIds);
  const deal = must(context.company.deals.get(dealId));
  deal.value = 48_250.75;
  deal.currency = "EUR";
  const links = { ownerId, dealId, personId: buyer.id, orgId, random: story.random };
  const done = { type: "call", subject: "Call about the offer", due: context.now - 2 * DAY, done: true, ...links };
  const planned = { type: "meeting", subject: "Contract review", due: context.now + 3 * DAY, done: false, ...links };
  const note = addNote(context, {
    content: "<p>Budget is confirmed; <b>legal</b> reads the contract.</p>",
    userId: ownerId,
    added: context.now - 2 * DAY + HOUR,
  });
  Object.assign(note, { deal_id: dealId, person_id: buyer.id, org_id: orgId });
  return {
    personId: buyer.id,
    email,
    dealId,
    orgId,
    ownerId,
    stageId: deal.stage_id,
    pipelineId: deal.pipeline_id,
    participantIds,
    colleagueEmail,
    doneActivityId: addActivity(context, done).id,
    plannedActivityId: addActivity(context, planned).id,
    noteId: note.id,
  };
}

function severalDeals(story: StoryTeller): Stories["severalDeals"] {
  const email = "tomasz.zielinski@baltic-mills.example";
  const orgId = story.organization("Baltic Mills Sp. z o.o.", "baltic-mills.example");
  const person = story.person("Tomasz Zieliński", orgId, [email]);
  const ownerIds: [number, number] = [story.seller(0), story.seller(1)];
  const first = story.deal("Baltic Mills – renewal", person, ownerIds[0], [person.id]);
  const second = story.deal("Baltic Mills – second plant", person, ownerIds[1], [person.id]);
  return { personId: person.id, email, dealIds: [first, second], ownerIds };
}

function sharedAddress(story: StoryTeller): Stories["sharedAddress"] {
  const email = "office@kivi-ja-poeg.example";
  const orgId = story.organization("Kivi ja Poeg OÜ", "kivi-ja-poeg.example");
  const first = story.person("Mart Kivi", orgId, [email]);
  const second = story.person("Liis Kivi", orgId, [email, "liis.kivi@kivi-ja-poeg.example"]);
  return { personIds: [first.id, second.id], email };
}

function freeMail(story: StoryTeller): Stories["freeMail"] {
  const email = "odile.marchetti@gmail.com";
  const person = story.person("Odile Marchetti", null, [email]);
  return {
    personId: person.id,
    email,
    dealId: story.deal("Odile Marchetti – pilot", person, story.seller(0), [person.id]),
  };
}

function ghosted(context: SeedContext, story: StoryTeller): Stories["ghosted"] {
  const email = "henrik.stahl@corvus-optik.example";
  const orgId = story.organization("Corvus Optik GmbH", "corvus-optik.example");
  const person = story.person("Henrik Stahl", orgId, [email]);
  person.last_incoming_mail_time = v2Time(context.now - 35 * DAY);
  person.last_outgoing_mail_time = v2Time(context.now - 9 * DAY);
  const dealId = story.deal("Corvus Optik – rollout", person, story.seller(0), [person.id]);
  const links = { ownerId: story.seller(0), dealId, personId: person.id, orgId, random: story.random };
  addActivity(context, { type: "call", subject: "Intro call", due: context.now - 36 * DAY, done: true, ...links });
  return { dealId, personId: person.id, email };
}

function secondaryAddress(story: StoryTeller): Stories["secondaryAddress"] {
  const email = "n.okonkwo@tessel-labs.example";
  const storedEmail = " N.Okonkwo@Tessel-Labs.EXAMPLE ";
  const primaryEmail = "ngozi.okonkwo@private-post.example";
  const person = story.person("Ngozi Okonkwo", null, [primaryEmail, storedEmail]);
  const dealId = story.deal("Tessel Labs – training days", person, story.seller(1), [person.id]);
  return { personId: person.id, email, storedEmail, primaryEmail, dealId };
}

function noParticipants(story: StoryTeller): Stories["noParticipants"] {
  const email = "bea.fontaine@atelier-nord.example";
  const person = story.person("Béa Fontaine", null, [email]);
  return { dealId: story.deal("Atelier Nord – support plan", person, story.seller(0), []), personId: person.id, email };
}
