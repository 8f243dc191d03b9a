import {
  Arg,
  Ctx,
  FieldResolver,
  ID,
  Mutation,
  Query,
  Resolver,
  Root,
  Subscription,
  UseMiddleware,
} from "type-graphql";
import { readMeeting } from "../briefing/briefings";
import type { ChoiceRefusal as MeetingRefusal } from "../briefing/choose-deal";
import { NOT_CONNECTED } from "../briefing/matching/match";
import { MEETING_MATCHED } from "../database/notifications";
import type { MeetingAttendeeRow, MeetingMatchRow, MeetingRow } from "../entities/meeting";
import type { Outcome } from "../platform/errors";
import { Briefing, DealCandidate } from "../schema/briefing";
import { asMany } from "../schema/complexity";
import { CrmUser } from "../schema/crm-setup";
import {
  Attendee,
  DeleteMeetingResult,
  Meeting,
  MeetingDeleted,
  MeetingMatch,
  MeetingResult,
  MeetingSuccess,
  PersonMatch,
  RecordMeetingInput,
} from "../schema/meeting";
import { Deal, Organization, Person } from "../schema/records";
import type { Refusal } from "../schema/refusal";
import type { EventContext, OperationContext } from "./context";
import { dealEdge, loadAll, organizationEdge, personEdge } from "./edges";
import { badInput } from "./errors";
import { crmIdIn, uuidIn } from "./global-id";
import { Input, refusalOfInput, refuseInvalidInput } from "./invalid-input";
import { presentAttendee, presentMatch, presentMeeting, presentRefusal, presentUser } from "./present";

const CONNECTION_CHANGED = "The CRM connection has changed since; the meeting is matched again after the next sync.";

/** A match holds for the copy that it was made on. @returns why it does not hold now; null where it does */
async function outdatedBecause(context: OperationContext, match: MeetingMatchRow | undefined): Promise<string | null> {
  const copyId = (await context.copy())?.copyId ?? null;
  if (match?.copyId === copyId) return null;
  return copyId === null ? NOT_CONNECTED : CONNECTION_CHANGED;
}

/** A choice among more is none; an info@ address may stand at thousands of persons. */
const MOST_CANDIDATES = 50;
/** Attendees that a meeting is reckoned with: a town hall has 500, and a page of a hundred town halls nobody. */
const A_DEPARTMENT = 100;

const DEAL_GONE = "The deal that the meeting was matched to is gone from the CRM, or no longer visible there.";

/** A meeting of long ago is not matched again when a sync removes its deal, and it is matched to none all the same. */
async function withoutGoneDeal({ loaders }: OperationContext, match: MeetingMatchRow): Promise<MeetingMatchRow> {
  if (match.dealId === null || (await loaders.deal.load(match.dealId))) return match;
  const left = await Promise.all(
    match.candidates.slice(0, MOST_CANDIDATES).map(({ dealId }) => loaders.deal.load(dealId)),
  );
  const status = left.some((deal) => deal !== null) ? "NEEDS_CHOICE" : "NONE";
  return { ...match, status, rule: null, dealId: null, reason: DEAL_GONE };
}

export const meetingIdIn = (id: string): string | null => uuidIn(id, "Meeting");

/** Meetings of one mutation; more are recorded with more mutations. */
const MOST_RECORDED = 100;

/** As it is kept: without the blanks around each text. */
const trimmed = ({ externalId, title, startsAt, endsAt, ownerEmail, attendees }: RecordMeetingInput) => ({
  ...{ externalId: externalId.trim(), title: title.trim(), startsAt, endsAt: endsAt ?? null },
  ownerEmail: ownerEmail.trim(),
  attendees: attendees.map(({ email, name }) => ({ email: email.trim(), name: name?.trim() || null })),
});

const success = (row: MeetingRow) => Object.assign(new MeetingSuccess(), { meeting: presentMeeting(row) });

/** The answer to a mutation that has changed the meeting, or was refused. */
function settled(context: OperationContext, outcome: Outcome<MeetingRow, MeetingRefusal>): MeetingSuccess | Refusal {
  context.renew();
  return outcome.ok ? success(outcome.value) : presentRefusal(outcome);
}

function present(meetings: ReadonlyMap<string, MeetingRow>, externalId: string): MeetingRow {
  const row = meetings.get(externalId);
  if (!row) throw new Error(`meeting ${externalId} was recorded and is not there`);
  return row;
}

@Resolver(() => Meeting)
export class MeetingResolver {
  @Query(() => Meeting, { nullable: true, description: "By exactly one of its ids; null where this tenant has none." })
  async meeting(
    @Arg("id", () => ID, { nullable: true }) id: string | undefined,
    @Arg("externalId", () => String, { nullable: true }) externalId: string | undefined,
    @Ctx() { scope }: OperationContext,
  ): Promise<Meeting | null> {
    if ((id == null) === (externalId == null)) throw badInput("Give either id or externalId.");
    const row = await readMeeting(scope, id == null ? { externalId: externalId ?? "" } : { id: meetingIdIn(id) ?? "" });
    return row && presentMeeting(row);
  }

  @Mutation(() => MeetingResult, { description: "Records or replaces a meeting (by externalId) and matches it." })
  @UseMiddleware(refuseInvalidInput)
  async recordMeeting(
    @Input(() => RecordMeetingInput) input: RecordMeetingInput,
    @Ctx() context: OperationContext,
  ): Promise<MeetingSuccess | Refusal> {
    const recorded = await context.services.meetings.record(context.actor, trimmed(input));
    context.renew();
    return success(recorded);
  }

  @Mutation(() => [MeetingResult], {
    complexity: asMany(MOST_RECORDED),
    description:
      "At most 100; each is recorded or refused for itself, in their order. Of two with one externalId the later holds.",
  })
  async recordMeetings(
    @Arg("inputs", () => [RecordMeetingInput]) inputs: RecordMeetingInput[],
    @Ctx() context: OperationContext,
  ): Promise<(MeetingSuccess | Refusal)[]> {
    if (inputs.length > MOST_RECORDED) throw badInput(`inputs must have at most ${MOST_RECORDED} entries.`);
    const refusals = await Promise.all(inputs.map((input, index) => refusalOfInput(input, `inputs.${index}`)));
    const usable = inputs.filter((_, index) => refusals[index] === null).map(trimmed);
    const recorded = usable.length > 0 ? await context.services.meetings.recordAll(context.actor, usable) : [];
    context.renew();
    const meetings = new Map(recorded.map((row) => [row.externalId, row]));
    return inputs.map((input, index) => refusals[index] ?? success(present(meetings, input.externalId.trim())));
  }

  @Mutation(() => MeetingResult, {
    description:
      "It did not or will not take place: it counts as no contact and grants no reading. Recording it again revives it.",
  })
  async cancelMeeting(
    @Arg("meetingId", () => ID) meetingId: string,
    @Ctx() context: OperationContext,
  ): Promise<MeetingSuccess | Refusal> {
    return settled(context, await context.services.meetings.cancel(context.actor, meetingIdIn(meetingId)));
  }

  @Mutation(() => DeleteMeetingResult, {
    description:
      "Erases the meeting, its attendees and its matches; receipts of writes stay. Unknown and foreign ids answer alike: MeetingDeleted.",
  })
  async deleteMeeting(
    @Arg("meetingId", () => ID) meetingId: string,
    @Ctx() context: OperationContext,
  ): Promise<MeetingDeleted | Refusal> {
    await context.services.meetings.delete(context.actor, meetingIdIn(meetingId));
    context.renew();
    return Object.assign(new MeetingDeleted(), { id: meetingId });
  }

  @Mutation(() => MeetingResult, {
    description:
      "Settles NEEDS_CHOICE, or corrects a match. The deal must be one of the candidates. No later match takes another deal instead.",
  })
  async chooseDeal(
    @Arg("meetingId", () => ID) meetingId: string,
    @Arg("dealId", () => ID) dealId: string,
    @Ctx() context: OperationContext,
  ): Promise<MeetingSuccess | Refusal> {
    const copyId = (await context.copy())?.copyId ?? null;
    const crmId = copyId === null ? null : crmIdIn(dealId, "Deal", copyId);
    const chosen = await context.services.meetings.choose(context.actor, {
      meetingId: meetingIdIn(meetingId),
      deal: copyId === null || crmId === null ? null : { copyId, crmId },
    });
    return settled(context, chosen);
  }

  @Mutation(() => MeetingResult, { description: "Takes the choice back: the rules decide again." })
  async unchooseDeal(
    @Arg("meetingId", () => ID) meetingId: string,
    @Ctx() context: OperationContext,
  ): Promise<MeetingSuccess | Refusal> {
    return settled(context, await context.services.meetings.unchoose(context.actor, meetingIdIn(meetingId)));
  }

  @Subscription(() => Meeting, {
    description:
      "A meeting whose match has changed, once for each change; waits for the first. Those of a copy that is new are told as a whole by connectionStatusChanged.",
    subscribe: ({ context }: { context: EventContext }) =>
      context.changesOf(MEETING_MATCHED, (reads, id) => reads.loaders.meeting.load(id)),
  })
  meetingMatched(@Root() row: MeetingRow): Meeting {
    return presentMeeting(row);
  }

  @FieldResolver(() => CrmUser, { nullable: true, description: "The CRM user with the owner's e-mail address." })
  async owner(@Root() { ownerEmail }: Meeting, @Ctx() { loaders }: OperationContext): Promise<CrmUser | null> {
    const row = await loaders.userByEmail.load(ownerEmail);
    return row && presentUser(row);
  }

  @FieldResolver(() => [Attendee], {
    complexity: asMany(A_DEPARTMENT),
    description: "In the order in which they were recorded.",
  })
  async attendees(@Root() { meetingId }: Meeting, @Ctx() context: OperationContext): Promise<Attendee[]> {
    const [found, [match]] = await Promise.all([
      context.loaders.attendees.load(meetingId),
      context.loaders.match.load(meetingId),
    ]);
    const outdated = await outdatedBecause(context, match);
    return found.map((row) => presentAttendee(row, outdated));
  }

  @FieldResolver(() => MeetingMatch, { description: "Which deal it is about, and why." })
  async match(@Root() { meetingId }: Meeting, @Ctx() context: OperationContext): Promise<MeetingMatch> {
    const [row] = await context.loaders.match.load(meetingId);
    if (!row) throw new Error(`meeting ${meetingId} was stored without its match`);
    const outdated = await outdatedBecause(context, row);
    return presentMatch(outdated ? row : await withoutGoneDeal(context, row), outdated);
  }

  @FieldResolver(() => Briefing, { nullable: true, description: "null while no CRM is connected." })
  async briefing(@Root() meeting: Meeting, @Ctx() context: OperationContext): Promise<Briefing | null> {
    return (await context.copy()) && Object.assign(new Briefing(), { meeting });
  }
}

@Resolver(() => PersonMatch)
export class PersonMatchResolver {
  @FieldResolver(() => Person, { nullable: true })
  person(@Root() { links }: PersonMatch, @Ctx() context: OperationContext): Promise<Person | null> {
    return personEdge(context, links.person);
  }

  @FieldResolver(() => Organization, {
    nullable: true,
    description: "The matched person's company, else the one that the domain of the address tells.",
  })
  organization(@Root() { links }: PersonMatch, @Ctx() context: OperationContext): Promise<Organization | null> {
    return organizationEdge(context, links.organization);
  }

  @FieldResolver(() => [Person], {
    complexity: asMany(MOST_CANDIDATES),
    description: "Where several persons could be meant: those, at most 50.",
  })
  candidates(@Root() { links }: PersonMatch, @Ctx() context: OperationContext): Promise<Person[]> {
    return loadAll((id) => personEdge(context, id), links.candidates.slice(0, MOST_CANDIDATES));
  }
}

@Resolver(() => MeetingMatch)
export class MeetingMatchResolver {
  @FieldResolver(() => Deal, {
    nullable: true,
    description: "The deal that the meeting is about; null until one is certain or chosen.",
  })
  deal(@Root() { links }: MeetingMatch, @Ctx() context: OperationContext): Promise<Deal | null> {
    return dealEdge(context, links.deal);
  }

  @FieldResolver(() => [DealCandidate], {
    complexity: asMany(MOST_CANDIDATES),
    description:
      "The deals that could be meant, at most 50, the matched one among them; a user may choose another of them.",
  })
  async candidates(@Root() { links }: MeetingMatch, @Ctx() context: OperationContext): Promise<DealCandidate[]> {
    const found = await Promise.all(
      links.candidates
        .slice(0, MOST_CANDIDATES)
        .map(async ({ deal: id, reason }) => ({ deal: await dealEdge(context, id), reason })),
    );
    return found.flatMap(({ deal, reason }) => (deal ? [{ deal, reason }] : []));
  }

  @FieldResolver(() => [Person], {
    complexity: asMany(A_DEPARTMENT),
    description: "The attendees that are known persons.",
  })
  async persons(@Root() { links }: MeetingMatch, @Ctx() context: OperationContext): Promise<Person[]> {
    return loadAll((id) => personEdge(context, id), await matchedPersonIds(context, links.meeting));
  }

  @FieldResolver(() => [Organization], {
    complexity: asMany(A_DEPARTMENT),
    description: "The companies for which the attendees come.",
  })
  organizations(@Root() { links }: MeetingMatch, @Ctx() context: OperationContext): Promise<Organization[]> {
    return matchedOrganizations(context, links.meeting);
  }
}

export const matchedPersonIds = (context: OperationContext, meetingId: string): Promise<number[]> =>
  idsOfAttendees(context, meetingId, ({ personId }) => personId);

export async function matchedOrganizations(context: OperationContext, meetingId: string): Promise<Organization[]> {
  const ids = await idsOfAttendees(context, meetingId, ({ organizationId }) => organizationId);
  return loadAll((id) => organizationEdge(context, id), ids);
}

async function idsOfAttendees(
  context: OperationContext,
  meetingId: string,
  idOf: (attendee: MeetingAttendeeRow) => number | null,
): Promise<number[]> {
  const [match] = await context.loaders.match.load(meetingId);
  if (await outdatedBecause(context, match)) return [];
  const attendees = await context.loaders.attendees.load(meetingId);
  return [...new Set(attendees.map(idOf).filter((id) => id !== null))];
}

export async function matchedDealId(context: OperationContext, meetingId: string): Promise<number | null> {
  const [match] = await context.loaders.match.load(meetingId);
  return match && !(await outdatedBecause(context, match)) ? match.dealId : null;
}
