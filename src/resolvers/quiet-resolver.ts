import {
  Arg,
  Args,
  Ctx,
  FieldResolver,
  ID,
  Int,
  Mutation,
  Resolver,
  Root,
  Subscription,
  UseMiddleware,
} from "type-graphql";
import { judge, type LastInteraction, lastInteraction, nothingKnown } from "../briefing/quiet/judge";
import { flippedDeal } from "../briefing/quiet/verdict";
import type { DealRef, SnoozeRefusal } from "../briefing/snoozing";
import { SILENCE_CHANGED } from "../database/notifications";
import type { DealRow } from "../entities/deal";
import type { Outcome } from "../platform/errors";
import { Briefing } from "../schema/briefing";
import { Activity } from "../schema/context-records";
import { Node } from "../schema/node";
import { Interaction, QuietReason, QuietSignal, Snooze, SnoozeArgs } from "../schema/quiet";
import { Deal, DealResult, DealSuccess, Person } from "../schema/records";
import type { Refusal } from "../schema/refusal";
import type { EventContext, OperationContext } from "./context";
import { dealEdge, deals, personEdge, userEdge } from "./edges";
import { nestedSize } from "./errors";
import { crmIdIn } from "./global-id";
import { refuseInvalidInput } from "./invalid-input";
import { presentActivity, presentDeal, presentMeeting, presentNote, presentRefusal, presentStage } from "./present";
import { presentInteraction, presentQuiet } from "./present-quiet";

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
  const [deal] = await deals(context, [outcome.value]);
  return Object.assign(new DealSuccess(), { deal });
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
    @Arg("dealId", () => ID) dealId: string,
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
  async silenceChanged(@Root() row: DealRow, @Ctx() context: EventContext): Promise<Deal> {
    return presentDeal(row, (await context.connection())?.companyDomain ?? null);
  }

  @FieldResolver(() => Snooze, { nullable: true, description: "null while it is not snoozed." })
  snooze(@Root() { snoozed }: Deal, @Ctx() { services }: OperationContext): Snooze | null {
    return snoozed && snoozed.endsAt > services.clock() ? snoozed : null;
  }

  @FieldResolver(() => QuietSignal, { description: "Whether it has gone quiet, and why." })
  async quiet(@Root() { links }: Deal, @Ctx() { loaders, services }: OperationContext): Promise<QuietSignal> {
    const found = await loaders.quietFacts.load(links.deal);
    return presentQuiet(found ? judge(found.facts, found.copy, found.now) : nothingKnown(services.clock()));
  }

  @FieldResolver(() => Interaction, {
    nullable: true,
    description: "The latest meeting, activity, mail or note of a person; null where none is known.",
  })
  async lastInteraction(@Root() { links }: Deal, @Ctx() { loaders }: OperationContext): Promise<Interaction | null> {
    const found = await loaders.quietFacts.load(links.deal);
    const last = found && lastInteraction(found.facts, found.now);
    if (!last) return null;
    const activityId = last.kind === "ACTIVITY" ? last.crmId : null;
    const personId = await personOf(last, loaders);
    return presentInteraction({ kind: last.kind, at: new Date(last.at), activityId, personId });
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

@Resolver(() => QuietReason)
export class QuietReasonResolver {
  @FieldResolver(() => [Node], { description: "The records that show it, as far as they are readable." })
  async evidence(@Root() { shownBy }: QuietReason, @Ctx() context: OperationContext): Promise<Node[]> {
    const found = await Promise.all(shownBy.map((evidence) => nodeOf(context, evidence)));
    return found.filter((node) => node !== null);
  }
}

async function nodeOf(context: OperationContext, evidence: QuietReason["shownBy"][number]): Promise<Node | null> {
  const { loaders } = context;
  const shown = async <Row>(load: Promise<Row | null>, present: (row: Row) => Node) => {
    const row = await load;
    return row && present(row);
  };
  switch (evidence.type) {
    case "Deal":
      return dealEdge(context, evidence.crmId);
    case "Person":
      return personEdge(context, evidence.crmId);
    case "CrmUser":
      return userEdge(context, evidence.crmId);
    case "Activity":
      return shown(loaders.activity.load(evidence.crmId), presentActivity);
    case "Note":
      return shown(loaders.note.load(evidence.crmId), presentNote);
    case "Stage":
      return shown(loaders.stage.load(evidence.crmId), presentStage);
    case "Meeting":
      return shown(loaders.meeting.load(evidence.meetingId), presentMeeting);
  }
}

@Resolver(() => Interaction)
export class InteractionResolver {
  @FieldResolver(() => Person, { nullable: true, description: "The buyer; null where unknown or not readable." })
  person(@Root() { links }: Interaction, @Ctx() context: OperationContext): Promise<Person | null> {
    return personEdge(context, links.person);
  }

  @FieldResolver(() => Activity, { nullable: true })
  async activity(@Root() { links }: Interaction, @Ctx() { loaders }: OperationContext): Promise<Activity | null> {
    const row = links.activity === null ? null : await loaders.activity.load(links.activity);
    return row && presentActivity(row);
  }
}

@Resolver(() => Briefing)
export class TimelineResolver {
  @FieldResolver(() => [Interaction], {
    description: "The latest interactions with the attendees and about the meeting's deal, newest first.",
  })
  async timeline(
    @Root() { meeting }: Briefing,
    @Arg("first", () => Int, { nullable: true, defaultValue: 10 }) first: number | null,
    @Ctx() { loaders }: OperationContext,
  ): Promise<Interaction[]> {
    const found = await loaders.timeline.load({ id: meeting.meetingId, first: nestedSize(first ?? 10) });
    return found.map(presentInteraction);
  }
}
