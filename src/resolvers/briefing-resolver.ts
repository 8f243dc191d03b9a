import type { GraphQLResolveInfo } from "graphql";
import { Arg, Ctx, FieldResolver, ID, Info, Query, Resolver, Root } from "type-graphql";
import { inWords, newsSince } from "../briefing/journal";
import { MOST_CANDIDATES } from "../briefing/records";
import type { InteractionRow } from "../briefing/timeline";
import { asOf } from "../connections/completeness";
import type { DealRow } from "../entities/deal";
import type { MeetingAttendeeRow, MeetingMatchRow, MeetingRow } from "../entities/meeting";
import type { OrganizationRow, PersonRow } from "../entities/records";
import type { GapSummary } from "../entities/sync-run";
import { A_DEPARTMENT, asMany } from "../schema/base";
import { Meeting, MeetingMatch, PersonMatch } from "../schema/meeting";
import { Interaction } from "../schema/quiet";
import { Briefing, Deal, DealCandidate, DealChange, Organization, Person } from "../schema/records";
import { DataGap } from "../schema/sync";
import {
  dealOf,
  gapsAround,
  lookUpDeal,
  lookUpGaps,
  lookUpOrganizations,
  lookUpPersons,
  lookUpTimeline,
  organizationsOf,
  personsOf,
  timelineAround,
} from "./around-meeting";
import type { OperationContext } from "./context";
import { First, nestedSize, uuidIn } from "./inputs";
import { LooksUp, type Sized } from "./look-up-plan";
import { beginWith, recordOf, recordsOf, THE_COPYS } from "./look-ups";

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
    const meeting = await beginWith(info, copy, context.loaders, context.loaders.meeting, uuid);
    return meeting && Object.assign(new Briefing(), { meeting });
  }

  @FieldResolver(() => Deal, {
    nullable: true,
    description: "The deal that the meeting is about, where that is certain.",
  })
  @LooksUp<MeetingRow>(({ id }, reads) => lookUpDeal(id, reads))
  deal(@Root() { meeting }: Briefing, @Ctx() context: OperationContext): Promise<DealRow | null> {
    return dealOf(context, meeting.id);
  }

  @FieldResolver(() => [Deal], {
    complexity: asMany(50),
    description: "Other deals that attendees take part in or that could be meant; open ones first, at most 50.",
  })
  @LooksUp<MeetingRow>(({ id }, { otherDeals }) => otherDeals(id))
  async otherDeals(@Root() { meeting }: Briefing, @Ctx() context: OperationContext): Promise<DealRow[]> {
    return context.loaders.otherDeals.load(meeting.id);
  }

  @FieldResolver(() => [Person], {
    complexity: asMany(A_DEPARTMENT),
    description: "The attendees that are known persons.",
  })
  @LooksUp<MeetingRow>(({ id }, reads) => lookUpPersons(id, reads))
  async persons(@Root() { meeting }: Briefing, @Ctx() context: OperationContext): Promise<PersonRow[]> {
    return personsOf(context, meeting.id);
  }

  @FieldResolver(() => [Organization], {
    complexity: asMany(A_DEPARTMENT),
    description: "The organizations for which the attendees come.",
  })
  @LooksUp<MeetingRow>(({ id }, reads) => lookUpOrganizations(id, reads))
  async organizations(@Root() { meeting }: Briefing, @Ctx() context: OperationContext): Promise<OrganizationRow[]> {
    return organizationsOf(context, meeting.id);
  }

  @FieldResolver(() => Date, {
    nullable: true,
    description:
      "The oldest watermark of what the briefing shows: up to then it is known to be complete; null while a list was never read to its end, pipelines and stages aside.",
  })
  @LooksUp<MeetingRow>((_meeting, { state }) => void state())
  async asOf(@Ctx() { loaders }: OperationContext): Promise<Date | null> {
    const state = await loaders.state.load(THE_COPYS);
    return state && asOf(state.lists);
  }

  @FieldResolver(() => [DataGap], {
    description: "What it lacks, so that nothing missing looks like nothing there.",
  })
  @LooksUp<MeetingRow>(({ id }, reads) => void lookUpGaps(id, reads))
  gaps(@Root() { meeting }: Briefing, @Ctx() context: OperationContext): Promise<GapSummary[]> {
    return gapsAround(context, meeting.id);
  }

  @FieldResolver(() => [Interaction], {
    description:
      "Newest first: with the attendees and about the meeting's deal, or until one is certain all that could be meant. An attendee's activities and notes that name no deal, or another, are among them; they count for the silence of the deal that they name, and mails for that of each deal of their person.",
  })
  @LooksUp<MeetingRow, Sized>(({ id }, reads, { first }) => lookUpTimeline(id, reads, nestedSize(first ?? 10)))
  timeline(
    @Root() { meeting }: Briefing,
    @First(10) first: number | null,
    @Ctx() context: OperationContext,
  ): Promise<InteractionRow[]> {
    return timelineAround(context, meeting.id, nestedSize(first ?? 10));
  }

  @FieldResolver(() => [DealChange], {
    description:
      "What has changed in the deal since the meeting before this one began, or without one in the last 30 days; newest first. The history " +
      "begins with the connection. Empty where no deal is certain.",
  })
  async changes(
    @Root() { meeting }: Briefing,
    @First(20) first: number | null,
    @Ctx() context: OperationContext,
  ): Promise<DealChange[]> {
    const { loaders, services } = context;
    const deal = await dealOf(context, meeting.id);
    if (!deal) return [];
    const since = newsSince(await loaders.previousMeeting.load(meeting.id), services.clock());
    return inWords(await loaders.changes.load({ dealId: deal.crmId, first: nestedSize(first ?? 20), since }), loaders);
  }

  @FieldResolver(() => Meeting, {
    nullable: true,
    description: "The last meeting before this one that was about the same deal, was not cancelled and has begun.",
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
    description:
      "The matched person's organization, else the one that the domain of the address tells. null also where the CRM shows it no more, or not to the authorizing user.",
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
  @LooksUp<MeetingMatchRow>(({ meetingId }, { candidates, deal }) => void deal(candidates(meetingId).dealId))
  async candidates(
    @Root() { meetingId }: MeetingMatch,
    @Ctx() { loaders }: OperationContext,
  ): Promise<DealCandidate[]> {
    const found = await loaders.candidates.load(meetingId);
    const deals = await Promise.all(found.map(({ dealId }) => loaders.deal.load(dealId)));
    const shown = found.flatMap(({ reason }, index) => (deals[index] ? [{ deal: deals[index], reason }] : []));
    return shown.slice(0, MOST_CANDIDATES);
  }

  @FieldResolver(() => [Person], {
    complexity: asMany(A_DEPARTMENT),
    description: "The attendees that are known persons.",
  })
  @LooksUp<MeetingMatchRow>(({ meetingId }, reads) => lookUpPersons(meetingId, reads))
  async persons(@Root() { meetingId }: MeetingMatch, @Ctx() context: OperationContext): Promise<PersonRow[]> {
    return personsOf(context, meetingId);
  }

  @FieldResolver(() => [Organization], {
    complexity: asMany(A_DEPARTMENT),
    description: "The organizations for which the attendees come.",
  })
  @LooksUp<MeetingMatchRow>(({ meetingId }, reads) => lookUpOrganizations(meetingId, reads))
  organizations(@Root() { meetingId }: MeetingMatch, @Ctx() context: OperationContext): Promise<OrganizationRow[]> {
    return organizationsOf(context, meetingId);
  }
}
