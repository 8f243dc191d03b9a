import type { GraphQLResolveInfo } from "graphql";
import {
  Arg,
  Ctx,
  FieldResolver,
  ID,
  Info,
  Mutation,
  Query,
  Resolver,
  Root,
  Subscription,
  UseMiddleware,
} from "type-graphql";
import { attendeeShown, matchOfDeleted, matchShown, readMeeting, withoutGoneDeal } from "../briefing/meeting-rows";
import type { ChoiceRefusal as MeetingRefusal } from "../briefing/meetings";
import { MEETING_MATCHED } from "../database/between-processes";
import type { CrmUserRow } from "../entities/crm-company";
import type { MeetingRow } from "../entities/meeting";
import type { Outcome } from "../platform/errors";
import { A_DEPARTMENT, asMany } from "../schema/base";
import { CrmUser } from "../schema/crm";
import {
  Attendee,
  DeleteMeetingResult,
  Meeting,
  MeetingDeleted,
  MeetingMatch,
  MeetingResult,
  MeetingSuccess,
  RecordMeetingInput,
} from "../schema/meeting";
import { Briefing } from "../schema/records";
import type { Refusal } from "../schema/refusal";
import { outdatedBecause } from "./around-meeting";
import type { EventContext, OperationContext } from "./context";
import { badInput, Input, presentRefusal, recordIn, refusalOfInput, refuseInvalidInput, uuidIn } from "./inputs";
import { LooksUp } from "./look-up-plan";
import { beginWithRead } from "./look-ups";

/** Meetings of one mutation; more are recorded with more mutations. */
const MOST_RECORDED = 100;

/** As it is kept: without the blanks around each text. */
const trimmed = ({ externalId, title, startsAt, endsAt, ownerEmail, attendees }: RecordMeetingInput) => ({
  externalId: externalId.trim(),
  title: title.trim(),
  startsAt,
  endsAt: endsAt ?? null,
  ownerEmail: ownerEmail.trim(),
  attendees: attendees.map(({ email, name }) => ({ email: email.trim(), name: name?.trim() || null })),
});

const success = (row: MeetingRow) => Object.assign(new MeetingSuccess(), { meeting: row });

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
    @Arg("id", () => ID, { nullable: true, description: "Its global id." }) id: string | undefined,
    @Arg("externalId", () => String, { nullable: true, description: "The id that it was recorded with." }) externalId:
      | string
      | undefined,
    @Ctx() context: OperationContext,
    @Info() info: GraphQLResolveInfo,
  ): Promise<MeetingRow | null> {
    if ((id == null) === (externalId == null)) throw badInput("Give either id or externalId.");
    const key = id == null ? { externalId: externalId ?? "" } : { id: uuidIn(id, "Meeting") };
    const copy = await context.copy();
    if (!copy) return readMeeting(context.scope, key);
    return beginWithRead(info, copy, context.loaders, () => readMeeting(copy, key));
  }

  @Mutation(() => MeetingResult, { description: "Records or replaces a meeting (by externalId) and matches it." })
  @UseMiddleware(refuseInvalidInput)
  async recordMeeting(
    @Input(() => RecordMeetingInput, "The whole meeting; recorded again, it is replaced.") input: RecordMeetingInput,
    @Ctx() context: OperationContext,
  ): Promise<MeetingSuccess | Refusal> {
    const recorded = await context.services.meetings.record(context.actor, trimmed(input));
    context.renew();
    return success(recorded);
  }

  @Mutation(() => [MeetingResult], {
    complexity: asMany(MOST_RECORDED),
    description:
      "At most 100; each is recorded or refused for itself, in their order. Of two with one externalId the later holds. What is no `DateTime` at all, as an instant without a zone, is no input: the whole operation is answered 400, and none is recorded.",
  })
  async recordMeetings(
    @Arg("inputs", () => [RecordMeetingInput], { description: "What is recorded." }) inputs: RecordMeetingInput[],
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
    @Arg("meetingId", () => ID, { description: "The global id of the meeting." }) meetingId: string,
    @Ctx() context: OperationContext,
  ): Promise<MeetingSuccess | Refusal> {
    return settled(context, await context.services.meetings.cancel(context.actor, uuidIn(meetingId, "Meeting")));
  }

  @Mutation(() => DeleteMeetingResult, {
    description:
      "Erases the meeting, its attendees and its matches; receipts of writes stay. Unknown and foreign ids answer alike: MeetingDeleted.",
  })
  async deleteMeeting(
    @Arg("meetingId", () => ID, { description: "The global id of the meeting." }) meetingId: string,
    @Ctx() context: OperationContext,
  ): Promise<MeetingDeleted | Refusal> {
    await context.services.meetings.delete(context.actor, uuidIn(meetingId, "Meeting"));
    context.renew();
    return Object.assign(new MeetingDeleted(), { meetingId });
  }

  @Mutation(() => MeetingResult, {
    description:
      "Settles NEEDS_CHOICE, or corrects a match. The deal must be one of the candidates. No later match takes another deal instead.",
  })
  async chooseDeal(
    @Arg("meetingId", () => ID, { description: "The global id of a recorded meeting." }) meetingId: string,
    @Arg("dealId", () => ID, { description: "The global id of one of the meeting's candidates." }) dealId: string,
    @Ctx() context: OperationContext,
  ): Promise<MeetingSuccess | Refusal> {
    const choice = { meetingId: uuidIn(meetingId, "Meeting"), deal: await recordIn(context, dealId, "Deal") };
    return settled(context, await context.services.meetings.choose(context.actor, choice));
  }

  @Mutation(() => MeetingResult, { description: "Takes the choice back: the rules decide again." })
  async unchooseDeal(
    @Arg("meetingId", () => ID, { description: "The global id of the meeting." }) meetingId: string,
    @Ctx() context: OperationContext,
  ): Promise<MeetingSuccess | Refusal> {
    return settled(context, await context.services.meetings.unchoose(context.actor, uuidIn(meetingId, "Meeting")));
  }

  @Subscription(() => Meeting, {
    description:
      "A meeting whose match, begin or end has changed, once for each change; waits for the first. Those of a copy that is new are told as a whole by connectionStatusChanged.",
    subscribe: ({ context }: { context: EventContext }) =>
      context.changesOf(MEETING_MATCHED, (reads, id) => reads.loaders.meeting.load(id)),
  })
  meetingMatched(@Root() row: MeetingRow): MeetingRow {
    return row;
  }

  @FieldResolver(() => CrmUser, { nullable: true, description: "The CRM user with the owner's e-mail address." })
  owner(@Root() { ownerEmail }: MeetingRow, @Ctx() { loaders }: OperationContext): Promise<CrmUserRow | null> {
    return loaders.userByEmail.load(ownerEmail);
  }

  @FieldResolver(() => [Attendee], {
    complexity: asMany(A_DEPARTMENT),
    description: "In the order in which they were recorded.",
  })
  @LooksUp<MeetingRow>(({ id }, { match, attendees }) => {
    match(id);
    return attendees(id);
  })
  async attendees(@Root() { id: meetingId }: MeetingRow, @Ctx() context: OperationContext): Promise<Attendee[]> {
    const [found, match] = await Promise.all([
      context.loaders.attendees.load(meetingId),
      context.loaders.match.load(meetingId),
    ]);
    const outdated = await outdatedBecause(context, match);
    return found.map((row) => attendeeShown(row, outdated));
  }

  @FieldResolver(() => MeetingMatch, { description: "Which deal it is about, and why." })
  @LooksUp<MeetingRow>(({ id }, { match, deal }) => {
    const found = match(id);
    deal(found.dealId);
    return found;
  })
  async match(@Root() { id: meetingId }: MeetingRow, @Ctx() context: OperationContext): Promise<MeetingMatch> {
    const { loaders } = context;
    const row = await loaders.match.load(meetingId);
    if (!row) return matchOfDeleted(meetingId, context.services.clock());
    const outdated = await outdatedBecause(context, row);
    const isThere = async (dealId: number) => (await loaders.deal.load(dealId)) !== null;
    const candidates = () => loaders.candidates.load(meetingId);
    return matchShown(outdated ? row : await withoutGoneDeal(row, isThere, candidates), outdated);
  }

  @FieldResolver(() => Briefing, { nullable: true, description: "null while no CRM is connected." })
  @LooksUp<MeetingRow>((meeting) => meeting)
  async briefing(@Root() meeting: MeetingRow, @Ctx() context: OperationContext): Promise<Briefing | null> {
    return (await context.copy()) && Object.assign(new Briefing(), { meeting });
  }
}
