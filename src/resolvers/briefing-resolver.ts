import { Arg, Ctx, FieldResolver, ID, Query, Resolver, Root } from "type-graphql";
import { readAsOf, readGapsOfBriefing, readMeeting } from "../briefing/briefings";
import { Briefing } from "../schema/briefing";
import { asMany } from "../schema/complexity";
import { Deal, Organization, Person } from "../schema/records";
import { DataGap } from "../schema/sync";
import type { OperationContext } from "./context";
import { dealEdge, deals, loadAll, personEdge } from "./edges";
import { matchedDealId, matchedOrganizations, matchedPersonIds, meetingIdIn } from "./meeting-resolver";
import { presentGap, presentMeeting } from "./present";

@Resolver(() => Briefing)
export class BriefingResolver {
  @Query(() => Briefing, {
    nullable: true,
    description: "null for a meeting that this tenant has not, and while no CRM is connected.",
  })
  async briefing(@Arg("meetingId", () => ID) id: string, @Ctx() context: OperationContext): Promise<Briefing | null> {
    const [meeting, copy] = await Promise.all([
      readMeeting(context.scope, { id: meetingIdIn(id) ?? "" }),
      context.copy(),
    ]);
    if (!meeting || !copy) return null;
    return Object.assign(new Briefing(), { meeting: presentMeeting(meeting) });
  }

  @FieldResolver(() => Deal, {
    nullable: true,
    description: "The deal that the meeting is about, where that is certain.",
  })
  async deal(@Root() { meeting }: Briefing, @Ctx() context: OperationContext): Promise<Deal | null> {
    return dealEdge(context, await matchedDealId(context, meeting.meetingId));
  }

  @FieldResolver(() => [Deal], {
    complexity: asMany(50),
    description: "Other deals of the attendees, open ones first; at most 50.",
  })
  async otherDeals(@Root() { meeting }: Briefing, @Ctx() context: OperationContext): Promise<Deal[]> {
    return deals(context, await context.loaders.otherDeals.load(meeting.meetingId));
  }

  @FieldResolver(() => [Person], { complexity: asMany(100), description: "The attendees that are known persons." })
  async persons(@Root() { meeting }: Briefing, @Ctx() context: OperationContext): Promise<Person[]> {
    return loadAll((id) => personEdge(context, id), await matchedPersonIds(context, meeting.meetingId));
  }

  @FieldResolver(() => [Organization], {
    complexity: asMany(100),
    description: "The companies for which the attendees come.",
  })
  async organizations(@Root() { meeting }: Briefing, @Ctx() context: OperationContext): Promise<Organization[]> {
    return matchedOrganizations(context, meeting.meetingId);
  }

  @FieldResolver(() => Date, {
    nullable: true,
    description:
      "The oldest watermark of what the briefing shows: up to then it is known to be complete; null while a list was never read.",
  })
  async asOf(@Ctx() context: OperationContext): Promise<Date | null> {
    const copy = await context.copy();
    return copy && readAsOf(copy);
  }

  @FieldResolver(() => [DataGap], {
    description: "What could not be read, so that nothing missing looks like nothing there.",
  })
  async gaps(@Root() { meeting }: Briefing, @Ctx() context: OperationContext): Promise<DataGap[]> {
    const copy = await context.copy();
    if (!copy) return [];
    return (await readGapsOfBriefing(copy, meeting.meetingId, context.services.clock())).map(presentGap);
  }
}
