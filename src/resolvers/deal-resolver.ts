import type { GraphQLResolveInfo } from "graphql";
import { Arg, Ctx, FieldResolver, ID, Info, Query, Resolver, Root } from "type-graphql";
import { inWords } from "../briefing/journal";
import type { QuietSignal as Signal } from "../briefing/quiet/facts";
import { judge, type LastInteraction, lastInteraction, nothingKnown } from "../briefing/quiet/judge";
import { holdsAt } from "../briefing/snoozing";
import type { InteractionRow } from "../briefing/timeline";
import type { CrmUserRow, PipelineRow, StageRow } from "../entities/crm-company";
import type { DealRow } from "../entities/deal";
import type { ActivityRow, NoteHead, OrganizationRow, PersonRow } from "../entities/records";
import { asMany } from "../schema/base";
import { Activity, CrmUser, Note, Pipeline, Stage } from "../schema/crm";
import { Interaction, QuietSignal, Snooze } from "../schema/quiet";
import { Deal, DealChange, type Money, Organization, Person } from "../schema/records";
import type { OperationContext } from "./context";
import { crmUrl, First, nestedSize } from "./inputs";
import { LooksUp, type Sized } from "./look-up-plan";
import { beginWithRecord, recordOf, recordsOf } from "./look-ups";

/** More take part in no deal that people keep; what a client gets must be bounded. */
const MOST_PARTICIPANTS = 100;

@Resolver(() => Deal)
export class DealResolver {
  @Query(() => Deal, { nullable: true, description: "null for unknown, foreign and never-matched ids alike." })
  async deal(
    @Arg("id", () => ID, { description: "Its global id." }) id: string,
    @Ctx() context: OperationContext,
    @Info() info: GraphQLResolveInfo,
  ): Promise<DealRow | null> {
    return beginWithRecord(info, context, context.loaders.deal, id, "Deal");
  }

  @FieldResolver()
  value(@Root() { value: amount, currency }: DealRow): Money | null {
    return amount !== null && currency !== null ? { amount, currency } : null;
  }

  /** One that was opened again may have it still. */
  @FieldResolver(() => Date, { nullable: true, description: "When it was won; null unless it is." })
  wonAt(@Root() { status, wonTime }: DealRow): Date | null {
    return status === "won" ? wonTime : null;
  }

  @FieldResolver(() => Date, { nullable: true, description: "When it was lost; null unless it is." })
  lostAt(@Root() { status, lostTime }: DealRow): Date | null {
    return status === "lost" ? lostTime : null;
  }

  @FieldResolver()
  crmUrl(@Root() { crmId }: DealRow, @Ctx() { connection }: OperationContext): Promise<string | null> {
    return crmUrl(connection, "deal", crmId);
  }

  @FieldResolver(() => Stage, {
    nullable: true,
    description: "null while the stage's own fetch is missing; see Connection.sync.gaps.",
  })
  @LooksUp<DealRow>(({ stageId }, { stage }) => stage(stageId))
  stage(@Root() { stageId }: DealRow, @Ctx() { loaders }: OperationContext): Promise<StageRow | null> {
    return recordOf(loaders.stage, stageId);
  }

  @FieldResolver(() => Pipeline, { nullable: true, description: "null while the pipeline's own fetch is missing." })
  @LooksUp<DealRow>(({ pipelineId }, { pipeline }) => pipeline(pipelineId))
  pipeline(@Root() { pipelineId }: DealRow, @Ctx() { loaders }: OperationContext): Promise<PipelineRow | null> {
    return recordOf(loaders.pipeline, pipelineId);
  }

  @FieldResolver(() => CrmUser, {
    nullable: true,
    description: "The CRM user who owns it; null where the CRM names none that is known.",
  })
  @LooksUp<DealRow>(({ ownerId }, { user }) => user(ownerId))
  owner(@Root() { ownerId }: DealRow, @Ctx() { loaders }: OperationContext): Promise<CrmUserRow | null> {
    return recordOf(loaders.user, ownerId);
  }

  @FieldResolver(() => Organization, {
    nullable: true,
    description: "The organization it is with; null where none is readable.",
  })
  @LooksUp<DealRow>(({ organizationId }, { organization }) => organization(organizationId))
  organization(
    @Root() { organizationId }: DealRow,
    @Ctx() { loaders }: OperationContext,
  ): Promise<OrganizationRow | null> {
    return recordOf(loaders.organization, organizationId);
  }

  @FieldResolver(() => Person, { nullable: true, description: "Its contact person; null where none is readable." })
  @LooksUp<DealRow>(({ personId }, { person }) => person(personId))
  person(@Root() { personId }: DealRow, @Ctx() { loaders }: OperationContext): Promise<PersonRow | null> {
    return recordOf(loaders.person, personId);
  }

  @FieldResolver(() => [Person], {
    complexity: asMany(100),
    description: "Those who are matched to a recorded meeting; by name, the first 100.",
  })
  @LooksUp<DealRow>(({ crmId }, { participantIds, person }) => person(participantIds(crmId).personId))
  participants(@Root() { crmId }: DealRow, @Ctx() { loaders }: OperationContext): Promise<PersonRow[]> {
    return participantsOf(loaders, crmId);
  }

  @FieldResolver(() => [Activity], { description: "Done activities, newest first." })
  @LooksUp<DealRow, Sized>(({ crmId }, { activitiesOfDeal }, { first }) =>
    activitiesOfDeal(crmId, nestedSize(first ?? 5)),
  )
  recentActivities(
    @Root() { crmId }: DealRow,
    @First(5) first: number | null,
    @Ctx() { loaders }: OperationContext,
  ): Promise<ActivityRow[]> {
    return loaders.activitiesOfDeal.load(crmId, nestedSize(first ?? 5));
  }

  @FieldResolver(() => Activity, { nullable: true, description: "The earliest activity that is still to come." })
  @LooksUp<DealRow>(({ crmId }, { nextActivity }) => nextActivity(crmId, 1))
  async nextActivity(@Root() { crmId }: DealRow, @Ctx() { loaders }: OperationContext): Promise<ActivityRow | null> {
    const [next = null] = await loaders.nextActivity.load(crmId, 1);
    return next;
  }

  @FieldResolver(() => [Note], { description: "Newest first." })
  @LooksUp<DealRow, Sized>(({ crmId }, { notesOfDeal }, { first }) => notesOfDeal(crmId, nestedSize(first ?? 5)))
  recentNotes(
    @Root() { crmId }: DealRow,
    @First(5) first: number | null,
    @Ctx() { loaders }: OperationContext,
  ): Promise<NoteHead[]> {
    return loaders.notesOfDeal.load(crmId, nestedSize(first ?? 5));
  }

  @FieldResolver(() => [DealChange], {
    description:
      "What the syncs saw change, newest first. The history begins with the connection, or with the first sync that showed " +
      "the deal, and goes back 400 days.",
  })
  async changes(
    @Root() { crmId }: DealRow,
    @First(20) first: number | null,
    @Arg("since", () => Date, { nullable: true, description: "What was seen then or later." }) since: Date | undefined,
    @Ctx() { loaders }: OperationContext,
  ): Promise<DealChange[]> {
    const entries = await loaders.changes.load({ dealId: crmId, first: nestedSize(first ?? 20), since: since ?? null });
    return inWords(entries, loaders);
  }

  @FieldResolver(() => Snooze, { nullable: true, description: "null while it is not snoozed." })
  snooze(@Root() deal: DealRow, @Ctx() { services }: OperationContext): DealRow | null {
    return holdsAt(deal, services.clock()) ? deal : null;
  }

  @FieldResolver(() => QuietSignal, { description: "Whether it has gone quiet, and why." })
  @LooksUp<DealRow>(({ crmId }, { quietFacts }) => void quietFacts(crmId))
  async quiet(@Root() { crmId }: DealRow, @Ctx() { loaders, services }: OperationContext): Promise<Signal> {
    const found = await loaders.quietFacts.load(crmId);
    return found ? judge(found.facts, found.copy, found.now) : nothingKnown(services.clock());
  }

  @FieldResolver(() => Interaction, {
    nullable: true,
    description:
      "The latest meeting, done activity, mail, or note that this service did not write; null where none is known.",
  })
  @LooksUp<DealRow>(({ crmId }, { quietFacts }) => void quietFacts(crmId))
  async lastInteraction(
    @Root() { crmId }: DealRow,
    @Ctx() { loaders }: OperationContext,
  ): Promise<InteractionRow | null> {
    const found = await loaders.quietFacts.load(crmId);
    const last = found && lastInteraction(found);
    if (!last) return null;
    const activityId = last.kind === "ACTIVITY" ? last.crmId : null;
    const personId = await personOf(last, loaders);
    const day = last.day === null ? null : new Date(last.day);
    return { kind: last.kind, at: new Date(last.at), day, activityId, personId };
  }
}

/** By name; whoever is in no meeting is not shown. */
async function participantsOf(
  { participantIds, person }: OperationContext["loaders"],
  dealId: number,
): Promise<PersonRow[]> {
  const ids = (await participantIds.load(dealId)).map(({ personId }) => personId);
  const found = await recordsOf(person, ids);
  return found
    .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.crmId - b.crmId))
    .slice(0, MOST_PARTICIPANTS);
}

/** The person that a contact was with, as far as the CRM says. */
async function personOf(
  { kind, crmId, meetingId }: LastInteraction,
  { activity, note, attendees }: OperationContext["loaders"],
): Promise<number | null> {
  if (meetingId !== null) {
    const ids = (await attendees.load(meetingId)).map(({ side, personId }) => (side === "BUYER" ? personId : null));
    return ids.find((id) => id !== null) ?? null;
  }
  const isRecord = crmId !== null && (kind === "ACTIVITY" || kind === "NOTE");
  return isRecord ? ((await { ACTIVITY: activity, NOTE: note }[kind].load(crmId))?.personId ?? null) : crmId;
}
