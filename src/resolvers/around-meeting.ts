import { whyOutdated } from "../briefing/meeting-rows";
import type { Mails } from "../briefing/records";
import { type InteractionRow, timelineOf } from "../briefing/timeline";
import {
  gapsOf,
  type NotHeld,
  readAsked,
  readUnread,
  type UnreadParticipants,
  unreadOf,
} from "../connections/completeness";
import type { DealRow } from "../entities/deal";
import type { MeetingAttendeeRow, MeetingMatchRow } from "../entities/meeting";
import type { OrganizationRow, PersonRow } from "../entities/records";
import type { GapSummary } from "../entities/sync-run";
import type { Property, Reads } from "./ahead";
import type { OperationContext } from "./context";
import { recordOf, recordsOf, THE_COPYS } from "./look-ups";

/** What a briefing puts together of the records around a meeting, and of each what is looked up for it. */

/** The reason why a meeting's match counts no more; null while it counts. */
export const outdatedBecause = async ({ copy }: OperationContext, match: MeetingMatchRow | null) =>
  whyOutdated((await copy())?.copyId ?? null, match);

export const lookUpDeal = (meetingId: Property, { match, deal }: Reads) => deal(match(meetingId).dealId);

/** The deal that a meeting is about, where its match holds. */
export async function dealOf(context: OperationContext, meetingId: string): Promise<DealRow | null> {
  const match = await context.loaders.match.load(meetingId);
  if (!match || (await outdatedBecause(context, match))) return null;
  return recordOf(context.loaders.deal, match.dealId);
}

export function lookUpPersons(meetingId: Property, { match, attendees, person }: Reads) {
  match(meetingId);
  return person(attendees(meetingId).personId);
}

/** The attendees that are known persons. */
export async function personsOf(context: OperationContext, meetingId: string): Promise<PersonRow[]> {
  return recordsOf(context.loaders.person, await idsOfAttendees(context, meetingId, ({ personId }) => personId));
}

export function lookUpOrganizations(meetingId: Property, { match, attendees, organization }: Reads) {
  match(meetingId);
  return organization(attendees(meetingId).organizationId);
}

/** The companies for which they come. */
export async function organizationsOf(context: OperationContext, meetingId: string): Promise<OrganizationRow[]> {
  const ids = await idsOfAttendees(context, meetingId, ({ organizationId }) => organizationId);
  return recordsOf(context.loaders.organization, ids);
}

async function idsOfAttendees(
  context: OperationContext,
  meetingId: string,
  idOf: (attendee: MeetingAttendeeRow) => number | null,
): Promise<number[]> {
  if (await outdatedBecause(context, await context.loaders.match.load(meetingId))) return [];
  const attendees = await context.loaders.attendees.load(meetingId);
  return [...new Set(attendees.map(idOf))].filter((id) => id !== null);
}

/** While it is not certain which deal is meant, the contacts of the others are looked up later. */
export function lookUpTimeline(meetingId: Property, reads: Reads, first: number): void {
  const { contactsOfDeal, contactsOfPerson, participantIds, mails } = reads;
  const deal = lookUpDeal(meetingId, reads);
  contactsOfDeal(deal.crmId, first);
  mails(deal.personId);
  mails(participantIds(deal.crmId).personId);
  const { crmId } = lookUpPersons(meetingId, reads);
  contactsOfPerson(crmId, first);
  mails(crmId);
}

/** The latest contacts with the attendees, and about the deal, or while that is not certain about all that it could be. */
export async function timelineAround(
  context: OperationContext,
  meetingId: string,
  first: number,
): Promise<InteractionRow[]> {
  const { loaders } = context;
  const match = await loaders.match.load(meetingId);
  if (!match || (await outdatedBecause(context, match))) return [];
  const [deal, attendees] = await Promise.all([recordOf(loaders.deal, match.dealId), personsOf(context, meetingId)]);
  const deals = match.dealId === null ? await loaders.otherDeals.load(meetingId) : deal ? [deal] : [];
  const takingPart = await Promise.all(deals.map(({ crmId }) => loaders.participantIds.load(crmId)));
  const people = new Set([
    ...attendees.map(({ crmId }) => crmId),
    ...[...deals, ...takingPart.flat()].map(({ personId }) => personId),
  ]);
  const [ofDeals, ofAttendees, mails] = await Promise.all([
    Promise.all(deals.map(({ crmId }) => loaders.contactsOfDeal.load(crmId, first))),
    Promise.all(attendees.map(({ crmId }) => loaders.contactsOfPerson.load(crmId, first))),
    recordsOf<Mails>(
      loaders.mails,
      [...people].filter((id) => id !== null),
    ),
  ]);
  return timelineOf({ contacts: [...ofDeals, ...ofAttendees].flat(), deals, people: mails }, first);
}

/** What the records of a meeting name: who owns them, where they stand, with whom they are, and who of it is not known. */
export function lookUpGaps(meetingId: Property, reads: Reads): void {
  const { user, pipeline, stage, mails, heldOrganizations, participantIds, unreadDeals, unreadOfOrganization } = reads;
  reads.state();
  for (const deal of [lookUpDeal(meetingId, reads), reads.otherDeals(meetingId)]) {
    user(deal.ownerId);
    pipeline(deal.pipelineId);
    stage(deal.stageId);
    mails(deal.personId);
    mails(participantIds(deal.crmId).personId);
    heldOrganizations(deal.organizationId);
    unreadDeals(deal.crmId);
  }
  const person = lookUpPersons(meetingId, reads);
  user(person.ownerId);
  heldOrganizations(person.organizationId);
  const organization = lookUpOrganizations(meetingId, reads);
  user(organization.ownerId);
  unreadOfOrganization(organization.crmId);
}

interface Records {
  deals: readonly DealRow[];
  persons: readonly PersonRow[];
  organizations: readonly OrganizationRow[];
}

/** What the answer lacks: it depends on every list, on who takes part in its deals, and on what its records name. */
export async function gapsAround(context: OperationContext, meetingId: string): Promise<GapSummary[]> {
  const [copy, now] = [await context.copy(), context.services.clock()];
  const [state, deal, others, persons, organizations] = await Promise.all([
    context.loaders.state.load(THE_COPYS),
    dealOf(context, meetingId),
    context.loaders.otherDeals.load(meetingId),
    personsOf(context, meetingId),
    organizationsOf(context, meetingId),
  ]);
  if (!copy || !state) return [];
  const records = { deals: deal ? [deal, ...others] : others, persons, organizations };
  const isAlone = records.deals.length === 0 && persons.length > 0;
  const [unread, notHeld] = await Promise.all([
    // Any deal may be one that an attendee takes part in.
    isAlone ? readUnread(copy) : unreadAround(context, records),
    namedInVain(context, records),
  ]);
  return gapsOf({ state, unread, notHeld, asked: await readAsked(copy, unread, now) }, now);
}

/** Those whose unread participants could hide that an attendee takes part: the deals around, and those of the companies. */
async function unreadAround(
  { loaders }: OperationContext,
  { deals, organizations }: Records,
): Promise<UnreadParticipants> {
  const found = await Promise.all([
    ...deals.map(({ crmId }) => loaders.unreadDeals.load(crmId)),
    ...organizations.map(({ crmId }) => loaders.unreadOfOrganization.load(crmId)),
  ]);
  return unreadOf(found.flat());
}

/** How many of what they name are not held. */
async function namedInVain(
  { loaders }: OperationContext,
  { deals, persons, organizations }: Records,
): Promise<NotHeld> {
  const takingPart = await Promise.all(deals.map(({ crmId }) => loaders.participantIds.load(crmId)));
  const missing = async (ids: readonly (number | null)[], lookUp: { load(id: number): Promise<unknown> }) => {
    const named = [...new Set(ids)].filter((id) => id !== null);
    return (await Promise.all(named.map((id) => lookUp.load(id)))).filter((held) => !held).length;
  };
  const { user, pipeline, stage, heldOrganizations, mails } = loaders;
  const [USERS, PIPELINES, STAGES, ORGANIZATIONS, PERSONS] = await Promise.all([
    missing(
      [...deals, ...persons, ...organizations].map(({ ownerId }) => ownerId),
      user,
    ),
    missing(
      deals.map(({ pipelineId }) => pipelineId),
      pipeline,
    ),
    missing(
      deals.map(({ stageId }) => stageId),
      stage,
    ),
    missing(
      [...deals, ...persons].map(({ organizationId }) => organizationId),
      heldOrganizations,
    ),
    missing(
      [...deals, ...takingPart.flat()].map(({ personId }) => personId),
      mails,
    ),
  ]);
  return { USERS, PIPELINES, STAGES, ORGANIZATIONS, PERSONS };
}
