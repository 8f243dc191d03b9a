import { whyOutdated } from "../briefing/meeting-rows";
import type { DealLinks, Mails } from "../briefing/records";
import { type InteractionRow, timelineOf } from "../briefing/timeline";
import {
  areAwaited,
  gapsOf,
  type NotHeld,
  readAsked,
  readUnread,
  type UnreadDeal,
  type UnreadDeals,
  type UnreadParticipants,
} from "../connections/completeness";
import type { DealRow } from "../entities/deal";
import type { MeetingAttendeeRow, MeetingMatchRow } from "../entities/meeting";
import type { OrganizationRow, PersonRow } from "../entities/records";
import type { GapSummary } from "../entities/sync-run";
import type { OperationContext } from "./context";
import type { Property, Reads } from "./look-up-plan";
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
  return idsOf(await context.loaders.attendees.load(meetingId), idOf);
}

/** Each once. */
const idsOf = <Row>(rows: readonly Row[], idOf: (row: Row) => number | null): number[] =>
  [...new Set(rows.map(idOf))].filter((id) => id !== null);

/** While it is not certain which deal is meant, who takes part in the others is looked up later. */
export function lookUpTimeline(meetingId: Property, reads: Reads, first: number) {
  const { contactsAround, dealLinks, match, participantIds, mails } = reads;
  const deal = dealLinks(match(meetingId).dealId);
  mails(deal.personId);
  mails(participantIds(deal.crmId).personId);
  mails(lookUpPersons(meetingId, reads).crmId);
  return contactsAround(meetingId, first);
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
  const [deals, attendees] = await Promise.all([
    match.dealId === null ? possibleDealsOf(context, meetingId) : recordsOf(loaders.dealLinks, [match.dealId]),
    idsOfAttendees(context, meetingId, ({ personId }) => personId),
  ]);
  const takingPart = await Promise.all(deals.map(({ crmId }) => loaders.participantIds.load(crmId)));
  const people = new Set([...attendees, ...idsOf([...deals, ...takingPart.flat()], ({ personId }) => personId)]);
  const [contacts, mails] = await Promise.all([
    loaders.contactsAround.load(meetingId, first),
    recordsOf<Mails>(loaders.mails, [...people]),
  ]);
  return timelineOf({ contacts, deals, people, mails }, first);
}

async function possibleDealsOf({ loaders }: OperationContext, meetingId: string): Promise<DealLinks[]> {
  const records = await loaders.matchedIds.load(meetingId);
  return recordsOf(
    loaders.dealLinks,
    idsOf(records, ({ dealId }) => dealId),
  );
}

/** What the records of a meeting name, who owns them, where they stand, with whom they are, and who of it is not known. */
export function lookUpGaps(meetingId: Property, reads: Reads): void {
  const { user, pipeline, stage, mails, heldOrganizations, participantIds } = reads;
  reads.state();
  const { dealId, personId, organizationId } = reads.matchedIds(meetingId);
  const deal = reads.dealLinks(dealId);
  user(deal.ownerId);
  pipeline(deal.pipelineId);
  stage(deal.stageId);
  mails(deal.personId);
  mails(participantIds(dealId).personId);
  heldOrganizations(deal.organizationId);
  const person = reads.person(personId);
  user(person.ownerId);
  heldOrganizations(person.organizationId);
  user(reads.organization(organizationId).ownerId);
  reads.unreadDealsOf(organizationId);
}

/** The records of a meeting, whether held or not. */
interface Records {
  dealIds: readonly number[];
  personIds: readonly number[];
  organizationIds: readonly number[];
}

/** What the answer lacks: it depends on every list, on who takes part in its deals, and on what its records name. */
export async function gapsAround(context: OperationContext, meetingId: string): Promise<GapSummary[]> {
  const [copy, now] = [await context.copy(), context.services.clock()];
  const [state, found] = await Promise.all([
    context.loaders.state.load(THE_COPYS),
    context.loaders.matchedIds.load(meetingId),
  ]);
  if (!copy || !state) return [];
  const records: Records = {
    dealIds: idsOf(found, ({ dealId }) => dealId),
    personIds: idsOf(found, ({ personId }) => personId),
    organizationIds: idsOf(found, ({ organizationId }) => organizationId),
  };
  const isAlone = records.dealIds.length === 0 && records.personIds.length > 0;
  const [unread, notHeld] = await Promise.all([
    // Any deal may be one that an attendee takes part in.
    isAlone ? context.once("unknown deals", () => readUnread(copy, "NOT_KNOWN")) : unreadAround(context, records),
    namedInVain(context, records),
  ]);
  const asked = areAwaited(unread) ? await context.once("asked", () => readAsked(copy, now)) : null;
  return gapsOf({ state, unread, notHeld, asked }, now);
}

/** Those whose unread participants could hide that an attendee takes part: the deals around, and those of the companies. */
async function unreadAround({ loaders }: OperationContext, { dealIds, organizationIds }: Records) {
  const [deals, ofOrganizations] = await Promise.all([
    recordsOf(loaders.dealLinks, dealIds),
    Promise.all(organizationIds.map((id) => loaders.unreadDealsOf.load(id))),
  ]);
  const others = deals.filter(({ organizationId }) => !organizationId || !organizationIds.includes(organizationId));
  return unreadOf([...others.flatMap(unreadOne), ...ofOrganizations.flat()]);
}

const unreadOne = ({ gap, isDue, addedAt }: UnreadDeal): UnreadDeals[] => {
  if (gap) return [{ code: gap[0], count: 1, since: gap[1], message: gap[2] }];
  return isDue ? [{ code: null, count: 1, since: addedAt ?? 0, message: null }] : [];
};

function unreadOf(deals: readonly UnreadDeals[]): UnreadParticipants {
  const unasked = deals.filter(({ code }) => code === null);
  const oldest = unasked.length > 0 ? Math.min(...unasked.map(({ since }) => since)) : null;
  return {
    failed: deals.flatMap(({ code, count, since, message }) => (code ? [[code, count, since, message ?? ""]] : [])),
    unasked: [unasked.reduce((sum, { count }) => sum + count, 0), oldest],
  };
}

/** How many of what they name are not held. */
async function namedInVain(
  { loaders }: OperationContext,
  { dealIds, personIds, organizationIds }: Records,
): Promise<NotHeld> {
  const [deals, persons, organizations, takingPart] = await Promise.all([
    recordsOf(loaders.dealLinks, dealIds),
    recordsOf(loaders.person, personIds),
    recordsOf(loaders.organization, organizationIds),
    Promise.all(dealIds.map((id) => loaders.participantIds.load(id))),
  ]);
  const missing = async <Row>(
    naming: readonly Row[],
    idOf: (row: Row) => number | null,
    lookUp: { load(id: number): Promise<unknown> },
  ) => {
    const named = await Promise.all(idsOf(naming, idOf).map((id) => lookUp.load(id)));
    return named.filter((held) => !held).length;
  };
  const { user, pipeline, stage, heldOrganizations, mails } = loaders;
  const owned = [...deals, ...persons, ...organizations];
  const [USERS, PIPELINES, STAGES, ORGANIZATIONS, PERSONS] = await Promise.all([
    missing(owned, ({ ownerId }) => ownerId, user),
    missing(deals, ({ pipelineId }) => pipelineId, pipeline),
    missing(deals, ({ stageId }) => stageId, stage),
    missing([...deals, ...persons], ({ organizationId }) => organizationId, heldOrganizations),
    missing([...deals, ...takingPart.flat()], ({ personId }) => personId, mails),
  ]);
  return { USERS, PIPELINES, STAGES, ORGANIZATIONS, PERSONS };
}
