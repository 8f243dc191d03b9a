import { Arg, Ctx, FieldResolver, ID, Query, Resolver, Root } from "type-graphql";
import { readAsOf, readGapsOfBriefing, readMeeting } from "../briefing/meeting-rows";
import type { OrganizationRow, PersonRow } from "../entities/contact";
import type { DealRow } from "../entities/deal";
import type { GapSummary } from "../entities/sync-run";
import { asMany } from "../schema/base";
import { Briefing, Deal, Organization, Person } from "../schema/records";
import { DataGap } from "../schema/sync";
import type { OperationContext } from "./context";
import { recordOf, recordsOf } from "./loaders";
import { matchedDealId, matchedOrganizations, matchedPersonIds, meetingIdIn } from "./meeting-resolver";

@Resolver(() => Briefing)
export class BriefingResolver {
  @Query(() => Briefing, {
    nullable: true,
    description: "null for a meeting that this tenant has not, and while no CRM is connected.",
  })
  async briefing(
    @Arg("meetingId", () => ID, { description: "The global id of a recorded meeting." }) id: string,
    @Ctx() context: OperationContext,
  ): Promise<Briefing | null> {
    const [meeting, copy] = await Promise.all([
      readMeeting(context.scope, { id: meetingIdIn(id) ?? "" }),
      context.copy(),
    ]);
    if (!meeting || !copy) return null;
    return Object.assign(new Briefing(), { meeting });
  }

  @FieldResolver(() => Deal, {
    nullable: true,
    description: "The deal that the meeting is about, where that is certain.",
  })
  async deal(@Root() { meeting }: Briefing, @Ctx() context: OperationContext): Promise<DealRow | null> {
    return recordOf(context.loaders.deal, await matchedDealId(context, meeting.id));
  }

  @FieldResolver(() => [Deal], {
    complexity: asMany(50),
    description: "Other deals of the attendees, open ones first; at most 50.",
  })
  async otherDeals(@Root() { meeting }: Briefing, @Ctx() context: OperationContext): Promise<DealRow[]> {
    return context.loaders.otherDeals.load(meeting.id);
  }

  @FieldResolver(() => [Person], { complexity: asMany(100), description: "The attendees that are known persons." })
  async persons(@Root() { meeting }: Briefing, @Ctx() context: OperationContext): Promise<PersonRow[]> {
    return recordsOf(context.loaders.person, await matchedPersonIds(context, meeting.id));
  }

  @FieldResolver(() => [Organization], {
    complexity: asMany(100),
    description: "The companies for which the attendees come.",
  })
  async organizations(@Root() { meeting }: Briefing, @Ctx() context: OperationContext): Promise<OrganizationRow[]> {
    return matchedOrganizations(context, meeting.id);
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
  async gaps(@Root() { meeting }: Briefing, @Ctx() context: OperationContext): Promise<GapSummary[]> {
    const copy = await context.copy();
    if (!copy) return [];
    return readGapsOfBriefing(copy, meeting.id, context.services.clock());
  }
}
