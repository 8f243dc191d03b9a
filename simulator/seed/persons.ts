import { blankPerson } from "../model/blank";
import type { Person } from "../model/records";
import { DAY, HOUR, v2Time } from "../model/times";
import { firstId, must, nextId, type SeedContext } from "./context";
import { seededVisibility } from "./organizations";
import { addressAt, asciiWord, emailList, untidy } from "./people";
import type { Random } from "./random";
import { firstNames, freeMailDomains, jobTitles, lastNames } from "./words";

export function seedPersons(context: SeedContext): void {
  const random = context.random.stream("persons");
  let previous: string | undefined;
  for (let index = 0; index < context.counts.persons; index++) {
    const name = `${random.pick(firstNames)} ${random.pick(lastNames)}`;
    const orgId = random.chance(0.88) ? random.pick(context.pool.organizations) : null;
    const addresses = addressesOf(context, { name, orgId, index, previous }, random);
    const person = addPerson(context, {
      name,
      orgId,
      addresses,
      ownerId: random.pick(context.pool.sellers),
      added: context.now - random.int(20, 600) * DAY - random.int(0, DAY),
      random,
    });
    person.visible_to = seededVisibility(random);
    previous = addresses.find((address) => address.trim() !== "")?.trim();
    if (index > 0 && random.chance(0.02)) {
      person.is_deleted = true;
      person.update_time = v2Time(context.now - random.int(1, 40) * DAY);
      continue;
    }
    context.pool.persons.push(person.id);
    if (orgId !== null) {
      const colleagues = context.pool.personsByOrganization.get(orgId);
      if (colleagues) colleagues.push(person.id);
      else context.pool.personsByOrganization.set(orgId, [person.id]);
    }
  }
}

function addressesOf(
  context: SeedContext,
  who: { name: string; orgId: number | null; index: number; previous: string | undefined },
  random: Random,
): string[] {
  const chance = random.next();
  if (chance < 0.04) return [];
  if (chance < 0.07) return [""];
  if (chance < 0.09 && who.previous !== undefined) return [who.previous];
  const website = who.orgId === null ? null : must(context.company.organizations.get(who.orgId)).website;
  const isFreeMail = website === null || random.chance(0.08);
  const domain = isFreeMail ? random.pick(freeMailDomains) : website.replace("https://www.", "");
  // The running number keeps free-mail addresses apart from each other and from those of the stories.
  const name = isFreeMail ? `${who.name}${who.index + 1}` : who.name;
  const addresses = [untidy(addressAt(name, domain), random)];
  if (random.chance(0.22)) {
    addresses.push(untidy(`${asciiWord(who.name)}${who.index + 1}@${random.pick(freeMailDomains)}`, random));
  }
  if (random.chance(0.03)) addresses.push("");
  return addresses;
}

export function addPerson(
  context: SeedContext,
  plan: {
    name: string;
    orgId: number | null;
    addresses: readonly string[];
    ownerId: number;
    added: number;
    random: Random;
  },
): Person {
  const { random } = plan;
  const person = blankPerson({
    id: nextId(context.company.persons, firstId.person),
    name: plan.name,
    owner_id: plan.ownerId,
    add_time: v2Time(plan.added),
    custom_fields: context.customFields("person", random),
  });
  person.org_id = plan.orgId;
  person.emails = emailList(plan.addresses, random);
  person.phones = random.chance(0.6)
    ? [{ value: `+49 30 ${random.int(1_000_000, 9_999_999)}`, primary: true, label: "work" }]
    : [];
  person.job_title = random.chance(0.7) ? random.pick(jobTitles) : null;
  person.birthday = random.chance(0.1) ? `19${random.int(60, 99)}-0${random.int(1, 9)}-1${random.int(0, 9)}` : null;
  person.update_time = v2Time(plan.added + Math.floor(random.next() * (context.now - plan.added)));
  if (random.chance(0.85)) {
    const incoming = context.now - Math.floor(random.next() ** 2 * 200 * DAY) - random.int(1, 20) * HOUR;
    person.last_incoming_mail_time = random.chance(0.9) ? v2Time(incoming) : null;
    person.last_outgoing_mail_time = v2Time(Math.min(context.now - 60, incoming + random.int(-5 * DAY, 5 * DAY)));
  }
  context.company.persons.set(person.id, person);
  return person;
}
