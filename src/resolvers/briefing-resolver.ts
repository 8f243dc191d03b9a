import type { GraphQLResolveInfo } from "graphql";
import { Arg, Ctx, FieldResolver, ID, Info, Query, Resolver, Root } from "type-graphql";
import { inWords, newsSince } from "../briefing/journal";
import { MOST_CANDIDATES } from "../briefing/meeting-rows";
import type { InteractionRow } from "../briefing/records";
import { asOf, gapsOf, type NotHeld, readAsked } from "../connections/completeness";
import type { DealRow } from "../entities/deal";
import type { MeetingAttendeeRow, MeetingMatchRow, MeetingRow } from "../entities/meeting";
import type { OrganizationRow, PersonRow } from "../entities/records";
import type { GapSummary } from "../entities/sync-run";
import { A_DEPARTMENT, asMany } from "../schema/base";
import { Meeting, MeetingMatch, PersonMatch } from "../schema/meeting";
import { Interaction } from "../schema/quiet";
import { Briefing, Deal, DealCandidate, DealChange, Organization, Person } from "../schema/records";
import { DataGap } from "../schema/sync";
import { beginWith, LooksUp, type Property, type Reads, type Sized } from "./ahead";
import { type OperationContext, outdatedBecause } from "./context";
import { First, nestedSize, uuidIn } from "./inputs";
import { recordOf, recordsOf, THE_COPYS } from "./loaders";

@Resolver(() => Briefing)
export class BriefingResolver {
  @Query(() => Briefing, {
    nullable: true,
    description: "null for a meeting that this tenant has not, and while no CRM is connected.",
  })
  async briefing(
    @Arg("meetingId", () => ID, { description: "The global id of a recorded meeting." }) id: string,
    @Ctx() context: OperationContext,
    @Info() info: GraphQLResolveInfo,
  ): Promise<Briefing | null> {
    const [uuid, copy] = [uuidIn(id, "Meeting"), await context.copy()];
    if (!uuid || !copy) return null;
    beginWith(info, copy, context.loaders, context.loaders.meeting, uuid);
    const meeting = await context.loaders.meeting.load(uuid);
    return meeting && Object.assign(new Briefing(), { meeting });
  }

  @FieldResolver(() => Deal, {
    nullable: true,
    description: "The deal that the meeting is about, where that is certain.",
  })
  @LooksUp<MeetingRow>(({ id }, { match, deal }) => deal(match(id).dealId))
  deal(@Root() { meeting }: Briefing, @Ctx() context: OperationContext): Promise<DealRow | null> {
    return dealOf(context, meeting);
  }

  @FieldResolver(() => [Deal], {
    complexity: asMany(50),
    description: "Other deals of the attendees, open ones first; at most 50.",
  })
  @LooksUp<MeetingRow>(({ id }, { otherDeals }) => otherDeals(id))
  async otherDeals(@Root() { meeting }: Briefing, @Ctx() context: OperationContext): Promise<DealRow[]> {
    return context.loaders.otherDeals.load(meeting.id);
  }

  @FieldResolver(() => [Person], {
    complexity: asMany(A_DEPARTMENT),
    description: "The attendees that are known persons.",
  })
  @LooksUp<MeetingRow>(({ id }, reads) => personsOf(id, reads))
  async persons(@Root() { meeting }: Briefing, @Ctx() context: OperationContext): Promise<PersonRow[]> {
    return recordsOf(context.loaders.person, await matchedPersonIds(context, meeting.id));
  }

  @FieldResolver(() => [Organization], {
    complexity: asMany(A_DEPARTMENT),
    description: "The companies for which the attendees come.",
  })
  @LooksUp<MeetingRow>(({ id }, reads) => organizationsOf(id, reads))
  async organizations(@Root() { meeting }: Briefing, @Ctx() context: OperationContext): Promise<OrganizationRow[]> {
    return matchedOrganizations(context, meeting.id);
  }

  @FieldResolver(() => Date, {
    nullable: true,
    description:
      "The oldest watermark of what the briefing shows: up to then it is known to be complete; null while a list was never read.",
  })
  @LooksUp<MeetingRow>((_meeting, { state }) => void state())
  async asOf(@Ctx() { loaders }: OperationContext): Promise<Date | null> {
    const state = await loaders.state.load(THE_COPYS);
    return state && asOf(state.lists);
  }

  @FieldResolver(() => [DataGap], {
    description: "What could not be read, so that nothing missing looks like nothing there.",
  })
  @LooksUp<MeetingRow>(({ id }, reads) => {
    reads.state();
    reads.unreadAround(id);
    lookUpNamed(id, reads);
  })
  async gaps(@Root() { meeting }: Briefing, @Ctx() context: OperationContext): Promise<GapSummary[]> {
    const { loaders, services } = context;
    const [copy, now] = [await context.copy(), services.clock()];
    const [state, unread, notHeld] = await Promise.all([
      loaders.state.load(THE_COPYS),
      loaders.unreadAround.load(meeting.id),
      namedInVain(context, meeting),
    ]);
    if (!copy || !state) return [];
    return gapsOf({ state, unread, notHeld, asked: await readAsked(copy, unread, now) }, now);
  }

  @FieldResolver(() => [Interaction], {
    description: "The latest interactions with the attendees and about the meeting's deal, newest first.",
  })
  @LooksUp<MeetingRow, Sized>(({ id }, { timeline }, { first }) => timeline(id, nestedSize(first ?? 10)))
  timeline(
    @Root() { meeting }: Briefing,
    @First(10) first: number | null,
    @Ctx() { loaders }: OperationContext,
  ): Promise<InteractionRow[]> {
    return loaders.timeline.load(meeting.id, nestedSize(first ?? 10));
  }

  @FieldResolver(() => [DealChange], {
    description:
      "What has changed in the deal since the meeting before this one, or in the last 30 days; newest first. The history " +
      "begins with the connection. Empty where no deal is certain.",
  })
  async changes(
    @Root() { meeting }: Briefing,
    @First(20) first: number | null,
    @Ctx() context: OperationContext,
  ): Promise<DealChange[]> {
    const { loaders, services } = context;
    const deal = await dealOf(context, meeting);
    if (!deal) return [];
    const since = newsSince(await loaders.previousMeeting.load(meeting.id), services.clock());
    return inWords(await loaders.changes.load({ dealId: deal.crmId, first: nestedSize(first ?? 20), since }), loaders);
  }

  @FieldResolver(() => Meeting, {
    nullable: true,
    description: "The meeting before this one that was about the same deal and was not cancelled.",
  })
  @LooksUp<MeetingRow>(({ id }, { previousMeeting }) => previousMeeting(id))
  previousMeeting(@Root() { meeting }: Briefing, @Ctx() { loaders }: OperationContext): Promise<MeetingRow | null> {
    return loaders.previousMeeting.load(meeting.id);
  }
}

@Resolver(() => PersonMatch)
export class PersonMatchResolver {
  @FieldResolver(() => Person, { nullable: true, description: "The one person; null unless MATCHED and readable." })
  @LooksUp<MeetingAttendeeRow>(({ personId }, { person }) => person(personId))
  person(@Root() { personId }: PersonMatch, @Ctx() { loaders }: OperationContext): Promise<PersonRow | null> {
    return recordOf(loaders.person, personId);
  }

  @FieldResolver(() => Organization, {
    nullable: true,
    description: "The matched person's company, else the one that the domain of the address tells.",
  })
  @LooksUp<MeetingAttendeeRow>(({ organizationId }, { organization }) => organization(organizationId))
  organization(
    @Root() { organizationId }: PersonMatch,
    @Ctx() { loaders }: OperationContext,
  ): Promise<OrganizationRow | null> {
    return recordOf(loaders.organization, organizationId);
  }

  @FieldResolver(() => [Person], {
    complexity: asMany(MOST_CANDIDATES),
    description: "Where several persons could be meant: those, at most 50.",
  })
  candidates(@Root() { candidateIds }: PersonMatch, @Ctx() context: OperationContext): Promise<PersonRow[]> {
    return recordsOf(context.loaders.person, candidateIds.slice(0, MOST_CANDIDATES));
  }
}

@Resolver(() => MeetingMatch)
export class MeetingMatchResolver {
  @FieldResolver(() => Deal, {
    nullable: true,
    description: "The deal that the meeting is about; null until one is certain or chosen.",
  })
  @LooksUp<MeetingMatchRow>(({ dealId }, { deal }) => deal(dealId))
  deal(@Root() { dealId }: MeetingMatch, @Ctx() { loaders }: OperationContext): Promise<DealRow | null> {
    return recordOf(loaders.deal, dealId);
  }

  @FieldResolver(() => [DealCandidate], {
    complexity: asMany(MOST_CANDIDATES),
    description:
      "The deals that could be meant, at most 50, the matched one among them; a user may choose another of them.",
  })
  async candidates(@Root() { candidates }: MeetingMatch, @Ctx() context: OperationContext): Promise<DealCandidate[]> {
    const found = await Promise.all(
      candidates
        .slice(0, MOST_CANDIDATES)
        .map(async ({ dealId, reason }) => ({ deal: await context.loaders.deal.load(dealId), reason })),
    );
    return found.flatMap(({ deal, reason }) => (deal ? [{ deal, reason }] : []));
  }

  @FieldResolver(() => [Person], {
    complexity: asMany(A_DEPARTMENT),
    description: "The attendees that are known persons.",
  })
  @LooksUp<MeetingMatchRow>(({ meetingId }, reads) => personsOf(meetingId, reads))
  async persons(@Root() { meetingId }: MeetingMatch, @Ctx() context: OperationContext): Promise<PersonRow[]> {
    return recordsOf(context.loaders.person, await matchedPersonIds(context, meetingId));
  }

  @FieldResolver(() => [Organization], {
    complexity: asMany(A_DEPARTMENT),
    description: "The companies for which the attendees come.",
  })
  @LooksUp<MeetingMatchRow>(({ meetingId }, reads) => organizationsOf(meetingId, reads))
  organizations(@Root() { meetingId }: MeetingMatch, @Ctx() context: OperationContext): Promise<OrganizationRow[]> {
    return matchedOrganizations(context, meetingId);
  }
}

function personsOf(meetingId: Property, { match, attendees, person }: Reads) {
  match(meetingId);
  return person(attendees(meetingId).personId);
}

function organizationsOf(meetingId: Property, { match, attendees, organization }: Reads) {
  match(meetingId);
  return organization(attendees(meetingId).organizationId);
}

/** What the records of a meeting name: whoever owns them, where they stand, and with whom they are. */
function lookUpNamed(meetingId: Property, reads: Reads): void {
  const { user, pipeline, stage, heldPersons, heldOrganizations, participantIds } = reads;
  for (const deal of [reads.deal(reads.match(meetingId).dealId), reads.otherDeals(meetingId)]) {
    user(deal.ownerId);
    pipeline(deal.pipelineId);
    stage(deal.stageId);
    heldPersons(deal.personId);
    heldPersons(participantIds(deal.crmId).personId);
    heldOrganizations(deal.organizationId);
  }
  const person = personsOf(meetingId, reads);
  user(person.ownerId);
  heldOrganizations(person.organizationId);
  user(organizationsOf(meetingId, reads).ownerId);
}

/** How many of those records are not held. */
async function namedInVain(context: OperationContext, meeting: MeetingRow): Promise<NotHeld> {
  const { loaders } = context;
  const [deal, others, personIds, organizations] = await Promise.all([
    dealOf(context, meeting),
    loaders.otherDeals.load(meeting.id),
    matchedPersonIds(context, meeting.id),
    matchedOrganizations(context, meeting.id),
  ]);
  const deals = deal ? [deal, ...others] : others;
  const persons = await recordsOf(loaders.person, personIds);
  const takingPart = await Promise.all(deals.map(({ crmId }) => loaders.participantIds.load(crmId)));
  const count = async (ids: readonly (number | null)[], look: (id: number) => Promise<unknown>) => {
    const named = [...new Set(ids)].filter((id) => id !== null);
    return (await Promise.all(named.map(look))).filter((held) => !held).length;
  };
  const [USERS, PIPELINES, STAGES, ORGANIZATIONS, PERSONS] = await Promise.all([
    count([...deals, ...persons, ...organizations].map(({ ownerId }) => ownerId), (id) => loaders.user.load(id)),
    count(deals.map(({ pipelineId }) => pipelineId), (id) => loaders.pipeline.load(id)),
    count(deals.map(({ stageId }) => stageId), (id) => loaders.stage.load(id)),
    count([...deals, ...persons].map(({ organizationId }) => organizationId), (id) => loaders.heldOrganizations.load(id)),
    count(
      [...deals, ...takingPart.flat()].map(({ personId }) => personId),
      (id) => loaders.heldPersons.load(id),
    ),
  ]);
  return { USERS, PIPELINES, STAGES, ORGANIZATIONS, PERSONS };
}

/** The deal that a meeting is about, where its match holds. */
async function dealOf(context: OperationContext, { id }: MeetingRow): Promise<DealRow | null> {
  const match = await context.loaders.match.load(id);
  if (!match || (await outdatedBecause(context, match))) return null;
  return recordOf(context.loaders.deal, match.dealId);
}

const matchedPersonIds = (context: OperationContext, meetingId: string): Promise<number[]> =>
  idsOfAttendees(context, meetingId, ({ personId }) => personId);

async function matchedOrganizations(context: OperationContext, meetingId: string): Promise<OrganizationRow[]> {
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
  return [...new Set(attendees.map(idOf).filter((id) => id !== null))];
}
