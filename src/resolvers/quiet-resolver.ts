import { Arg, Ctx, FieldResolver, Int, Resolver, Root } from "type-graphql";
import { judge, nothingKnown } from "../briefing/quiet/judge";
import { type LastInteraction, lastInteraction } from "../briefing/quiet/last-interaction";
import { Briefing } from "../schema/briefing";
import { Activity } from "../schema/context-records";
import { Node } from "../schema/node";
import { Interaction, QuietReason, QuietSignal } from "../schema/quiet";
import { Deal, Person } from "../schema/records";
import type { OperationContext } from "./context";
import { dealEdge, personEdge, userEdge } from "./edges";
import { nestedSize } from "./errors";
import { presentActivity, presentMeeting, presentNote, presentStage } from "./present";
import { presentInteraction, presentQuiet } from "./present-quiet";

@Resolver(() => Deal)
export class DealQuietResolver {
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
