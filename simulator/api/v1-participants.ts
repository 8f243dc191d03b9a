import type { Company } from "../model/company";
import type { Deal, Organization, ParticipantLink, Person, User } from "../model/records";
import { toV1 } from "../model/times";
import { json, notFound } from "./answer";
import type { Operation, World } from "./operation";
import { lenientQuery, wholeNumber } from "./query";
import { pageOf, pageRules } from "./v1-page";

/** One deal's participants. A deal the user may not see answers as one that does not exist. */
export function participantOperation(world: World): Operation {
  return {
    path: "/api/v1/deals/:id/participants",
    cost: 10,
    answer: ({ user, params, query: raw }) => {
      const query = lenientQuery(raw, pageRules);
      const id = params.id ?? "";
      const deal = wholeNumber(id) === undefined ? world.views.find(user, "deal", Number(id)) : undefined;
      if (!deal) throw notFound("Deal");
      const { items, pagination } = pageOf(visibleLinks(world, user, deal.id), query);
      const data = items.map(({ link, person }) => participant(world.company, deal, link, person));
      return json(200, {
        success: true,
        data: data.length > 0 ? data : null,
        additional_data: { pagination },
        related_objects: relatedObjects(world.company, items),
      });
    },
  };
}

interface Linked {
  link: ParticipantLink;
  person: Person;
}

/** Without the persons whom the user may not see: their names and addresses would come through otherwise. */
export function visibleLinks(
  { company, views }: Pick<World, "company" | "views">,
  user: User,
  dealId: number,
): Linked[] {
  return (company.participants.get(dealId) ?? []).flatMap((link) => {
    const person = views.find(user, "person", link.personId);
    return person ? [{ link, person }] : [];
  });
}

/** `id` is the link's; the person's is in person_id.value. */
function participant(company: Company, deal: Deal, link: ParticipantLink, person: Person): object {
  return {
    id: link.id,
    person_id: {
      active_flag: !person.is_deleted,
      name: person.name,
      email: v1Values(person.emails),
      phone: v1Values(person.phones),
      owner_id: person.owner_id,
      company_id: company.id,
      value: person.id,
    },
    add_time: link.addTime,
    active_flag: true,
    related_item_data: { deal_id: deal.id, title: deal.title },
    person: v1Person(company, person),
    added_by_user_id: v1User(company, link.addedBy),
    related_item_type: "deal",
    related_item_id: deal.id,
  };
}

/** Version 1 shows an empty list as one blank value. */
function v1Values(values: Person["emails"] | Person["phones"]): object[] {
  if (values.length === 0) return [{ value: "", primary: true }];
  return values.map(({ value, primary, label }) => ({ label, value, primary }));
}

function v1User(company: Company, id: number): object {
  const user = company.users.get(id);
  return {
    id,
    name: user?.name ?? "",
    email: user?.email ?? "",
    has_pic: 0,
    pic_hash: null,
    active_flag: user?.active_flag ?? false,
    value: id,
  };
}

function v1Organization(company: Company, organization: Organization): object {
  return {
    name: organization.name,
    owner_id: organization.owner_id,
    address: organization.address?.value ?? null,
    active_flag: !organization.is_deleted,
    cc_email: `${company.domain}@pipedrivemail.com`,
    value: organization.id,
  };
}

function organizationOf(company: Company, person: Person): Organization | undefined {
  return person.org_id === null ? undefined : company.organizations.get(person.org_id);
}

function v1Person(company: Company, person: Person): object {
  const organization = organizationOf(company, person);
  return {
    id: person.id,
    company_id: company.id,
    owner_id: v1User(company, person.owner_id),
    org_id: organization ? v1Organization(company, organization) : null,
    name: person.name,
    first_name: person.first_name,
    last_name: person.last_name,
    active_flag: !person.is_deleted,
    phone: v1Values(person.phones),
    email: v1Values(person.emails),
    first_char: person.name.slice(0, 1).toLowerCase(),
    update_time: toV1(person.update_time),
    add_time: toV1(person.add_time),
    visible_to: String(person.visible_to),
    picture_id: null,
    label: null,
    label_ids: person.label_ids,
    last_incoming_mail_time: person.last_incoming_mail_time && toV1(person.last_incoming_mail_time),
    last_outgoing_mail_time: person.last_outgoing_mail_time && toV1(person.last_outgoing_mail_time),
    org_name: organization?.name ?? null,
    owner_name: company.users.get(person.owner_id)?.name ?? "",
    cc_email: `${company.domain}@pipedrivemail.com`,
  };
}

function relatedObjects(company: Company, linked: readonly Linked[]): object {
  const user: Record<number, object> = {};
  const person: Record<number, object> = {};
  const organization: Record<number, object> = {};
  for (const { link, person: record } of linked) {
    user[link.addedBy] = v1User(company, link.addedBy);
    person[record.id] = {
      active_flag: !record.is_deleted,
      id: record.id,
      name: record.name,
      email: v1Values(record.emails),
      phone: v1Values(record.phones),
      owner_id: record.owner_id,
    };
    const employer = organizationOf(company, record);
    if (employer) organization[employer.id] = { id: employer.id, ...v1Organization(company, employer) };
  }
  return { user, person, organization };
}
