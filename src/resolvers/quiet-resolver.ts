import { Arg, Args, Ctx, FieldResolver, ID, Mutation, Resolver, Root, Subscription, UseMiddleware } from "type-graphql";
import type { Evidence, QuietReason as Reason, QuietSignal as Signal } from "../briefing/quiet/facts";
import { isSilent } from "../briefing/quiet/facts";
import { judge, type LastInteraction, lastInteraction, nothingKnown } from "../briefing/quiet/judge";
import { flippedDeal } from "../briefing/quiet/verdict";
import type { InteractionRow } from "../briefing/records";
import type { DealRef, SnoozeRefusal } from "../briefing/snoozing";
import { holdsAt } from "../briefing/snoozing";
import { SILENCE_CHANGED } from "../database/notifications";
import type { ActivityRow } from "../entities/activity";
import type { DealRow } from "../entities/deal";
import type { PersonRow } from "../entities/person";
import type { Outcome } from "../platform/errors";
import { Node } from "../schema/base";
import { Activity } from "../schema/context-records";
import { Interaction, QuietReason, QuietSignal, Snooze, SnoozeArgs } from "../schema/quiet";
import { Briefing, Deal, DealResult, DealSuccess, Person } from "../schema/records";
import type { Refusal } from "../schema/refusal";
import type { EventContext, OperationContext } from "./context";
import { crmIdIn } from "./global-id";
import { First, nestedSize, presentRefusal, refuseInvalidInput } from "./inputs";
import { recordOf } from "./loaders";
import { asNode } from "./node-resolver";

/** The deal of a global id, as far as it is one of the copy that the tenant sees. */
async function dealIn(context: OperationContext, id: string): Promise<DealRef> {
  const copyId = (await context.copy())?.copyId ?? null;
  const crmId = copyId === null ? null : crmIdIn(id, "Deal", copyId);
  return copyId === null || crmId === null ? null : { copyId, crmId };
}

async function settled(
  context: OperationContext,
  outcome: Outcome<DealRow, SnoozeRefusal>,
): Promise<DealSuccess | Refusal> {
  context.renew();
  if (!outcome.ok) return presentRefusal(outcome);
  return Object.assign(new DealSuccess(), { deal: outcome.value });
}

@Resolver(() => Deal)
export class DealQuietResolver {
  @Mutation(() => DealResult, {
    description:
      "Says why an open deal is quiet, and until when. Any user of the tenant may; said again, the newest counts. It ends " +
      "at its date or with the buyer's next contact, and is never written to the CRM.",
  })
  @UseMiddleware(refuseInvalidInput)
  async snoozeDeal(
    @Args(() => SnoozeArgs, { validate: true }) { dealId, until, reason }: SnoozeArgs,
    @Ctx() context: OperationContext,
  ): Promise<DealSuccess | Refusal> {
    const { services, actor } = context;
    const input = { until, reason: reason.trim() };
    return settled(context, await services.snoozing.snooze(actor, await dealIn(context, dealId), input));
  }

  @Mutation(() => DealResult, { description: "Ends a deal's snooze; succeeds where there is none." })
  async wakeDeal(
    @Arg("dealId", () => ID, { description: "The global id of the deal." }) dealId: string,
    @Ctx() context: OperationContext,
  ): Promise<DealSuccess | Refusal> {
    const { services, actor } = context;
    return settled(context, await services.snoozing.wake(actor, await dealIn(context, dealId)));
  }

  @Subscription(() => Deal, {
    description:
      "A deal whose verdict has changed, by a sync, a meeting or time alone; once for each change, and it waits for the " +
      "first. First judgements and changes of settings are told once, by connectionStatusChanged.",
    subscribe: ({ context }: { context: EventContext }) =>
      context.changesOf(SILENCE_CHANGED, (reads, told) => reads.loaders.deal.load(flippedDeal(told))),
  })
  silenceChanged(@Root() row: DealRow): DealRow {
    return row;
  }

  @FieldResolver(() => Snooze, { nullable: true, description: "null while it is not snoozed." })
  snooze(@Root() deal: DealRow, @Ctx() { services }: OperationContext): DealRow | null {
    return holdsAt(deal, services.clock()) ? deal : null;
  }

  @FieldResolver(() => QuietSignal, { description: "Whether it has gone quiet, and why." })
  async quiet(@Root() { crmId }: DealRow, @Ctx() { loaders, services }: OperationContext): Promise<Signal> {
    const found = await loaders.quietFacts.load(crmId);
    return found ? judge(found.facts, found.copy, found.now) : nothingKnown(services.clock());
  }

  @FieldResolver(() => Interaction, {
    nullable: true,
    description: "The latest meeting, activity, mail or note of a person; null where none is known.",
  })
  async lastInteraction(
    @Root() { crmId }: DealRow,
    @Ctx() { loaders }: OperationContext,
  ): Promise<InteractionRow | null> {
    const found = await loaders.quietFacts.load(crmId);
    const last = found && lastInteraction(found.facts, found.now);
    if (!last) return null;
    const activityId = last.kind === "ACTIVITY" ? last.crmId : null;
    const personId = await personOf(last, loaders);
    return { kind: last.kind, at: new Date(last.at), activityId, personId };
  }
}

/** Whom a contact was with, as far as the CRM says. */
async function personOf(
  { kind, crmId, meetingId }: LastInteraction,
  { activity, note, attendees }: OperationContext["loaders"],
): Promise<number | null> {
  if (meetingId !== null) {
    const buyers = (await attendees.load(meetingId)).filter(({ side }) => side === "BUYER");
    return buyers.find(({ personId }) => personId !== null)?.personId ?? null;
  }
  if (crmId === null) return null;
  if (kind === "ACTIVITY") return (await activity.load(crmId))?.personId ?? null;
  return kind === "NOTE" ? ((await note.load(crmId))?.personId ?? null) : crmId;
}

@Resolver(() => QuietSignal)
export class QuietSignalResolver {
  @FieldResolver()
  isQuiet(@Root() { verdict }: Signal): boolean {
    return isSilent(verdict);
  }
}

@Resolver(() => QuietReason)
export class QuietReasonResolver {
  @FieldResolver(() => [Node], { description: "The records that show it, as far as they are readable." })
  async evidence(@Root() { evidence: records }: Reason, @Ctx() context: OperationContext): Promise<Node[]> {
    const found = await Promise.all(records.map((evidence) => nodeOf(context, evidence)));
    return found.filter((node) => node !== null);
  }
}

async function nodeOf({ loaders }: OperationContext, evidence: Evidence): Promise<Node | null> {
  const row = await (evidence.type === "Meeting"
    ? loaders.meeting.load(evidence.meetingId)
    : loaders.records[evidence.type].load(evidence.crmId));
  return row && asNode(evidence.type, row);
}

@Resolver(() => Interaction)
export class InteractionResolver {
  @FieldResolver(() => Person, { nullable: true, description: "The buyer; null where unknown or not readable." })
  person(@Root() { personId }: InteractionRow, @Ctx() { loaders }: OperationContext): Promise<PersonRow | null> {
    return recordOf(loaders.person, personId);
  }

  @FieldResolver(() => Activity, { nullable: true, description: "The activity, where it was one." })
  activity(@Root() { activityId }: InteractionRow, @Ctx() { loaders }: OperationContext): Promise<ActivityRow | null> {
    return recordOf(loaders.activity, activityId);
  }
}

@Resolver(() => Briefing)
export class TimelineResolver {
  @FieldResolver(() => [Interaction], {
    description: "The latest interactions with the attendees and about the meeting's deal, newest first.",
  })
  timeline(
    @Root() { meeting }: Briefing,
    @First(10) first: number | null,
    @Ctx() { loaders }: OperationContext,
  ): Promise<InteractionRow[]> {
    return loaders.timeline.load({ id: meeting.id, first: nestedSize(first ?? 10) });
  }
}
