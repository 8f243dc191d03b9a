import {
  Arg,
  Args,
  Ctx,
  FieldResolver,
  ID,
  Int,
  Mutation,
  Query,
  Resolver,
  Root,
  Subscription,
  UseMiddleware,
} from "type-graphql";
import {
  type Evidence,
  isSilent,
  type QuietReason as Reason,
  type QuietSignal as Signal,
} from "../briefing/quiet/facts";
import { MOST_PREVIEWED } from "../briefing/quiet/preview";
import type { WishedSettings } from "../briefing/quiet/quiet-settings";
import { flippedDeal } from "../briefing/quiet/verdict";
import { type SnoozeRefusal } from "../briefing/snoozing";
import type { InteractionRow } from "../briefing/timeline";
import { SILENCE_CHANGED } from "../database/between-processes";
import type { CopyScope } from "../database/database";
import type { PipelineRow, StageRow } from "../entities/crm-company";
import type { DealRow } from "../entities/deal";
import type { ActivityRow, PersonRow } from "../entities/records";
import type { OwnThreshold } from "../entities/tenant";
import { zoneNamed } from "../platform/clock";
import type { Outcome } from "../platform/errors";
import { Node, OF_ALL_DEALS } from "../schema/base";
import { Activity } from "../schema/crm";
import { Interaction, QuietReason, QuietSignal, SnoozeArgs } from "../schema/quiet";
import {
  QuietPreview,
  QuietPreviewResult,
  QuietSettings,
  QuietSettingsInput,
  QuietSettingsResult,
  QuietSettingsSuccess,
  QuietThreshold,
} from "../schema/quiet-settings";
import { Deal, DealResult, DealSuccess, Person } from "../schema/records";
import type { Refusal } from "../schema/refusal";
import type { EventContext, OperationContext } from "./context";
import { crmIdIn, Input, nestedSize, presentRefusal, recordIn, refuseInvalidInput } from "./inputs";
import { LooksUp } from "./look-up-plan";
import { recordOf, recordsOf } from "./look-ups";
import { asNode, shownSettings } from "./root-resolvers";

async function settled(context: OperationContext, outcome: Outcome<DealRow, SnoozeRefusal>) {
  context.renew();
  if (!outcome.ok) return presentRefusal(outcome);
  return Object.assign(new DealSuccess(), { deal: outcome.value });
}

@Resolver()
export class SnoozingResolver {
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
    return settled(context, await services.snoozing.snooze(actor, await recordIn(context, dealId, "Deal"), input));
  }

  @Mutation(() => DealResult, { description: "Ends a deal's snooze; succeeds where there is none." })
  async wakeDeal(
    @Arg("dealId", () => ID, { description: "The global id of the deal." }) dealId: string,
    @Ctx() context: OperationContext,
  ): Promise<DealSuccess | Refusal> {
    const { services, actor } = context;
    return settled(context, await services.snoozing.wake(actor, await recordIn(context, dealId, "Deal")));
  }

  @Subscription(() => Deal, {
    description:
      "A deal whose verdict has changed, by a sync, a meeting or time alone; once for each change, and it waits for the " +
      "first. First judgements, changes of settings, and that a copy is no longer too old to judge by are told once, by " +
      "connectionStatusChanged.",
    subscribe: ({ context }: { context: EventContext }) =>
      context.changesOf(SILENCE_CHANGED, (reads, told) => reads.loaders.deal.load(flippedDeal(told))),
  })
  silenceChanged(@Root() row: DealRow): DealRow {
    return row;
  }
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
  @LooksUp<InteractionRow>(({ personId }, { person }) => person(personId))
  person(@Root() { personId }: InteractionRow, @Ctx() { loaders }: OperationContext): Promise<PersonRow | null> {
    return recordOf(loaders.person, personId);
  }

  @FieldResolver(() => Activity, { nullable: true, description: "The activity, where it was one." })
  @LooksUp<InteractionRow>(({ activityId }, { activity }) => activity(activityId))
  activity(@Root() { activityId }: InteractionRow, @Ctx() { loaders }: OperationContext): Promise<ActivityRow | null> {
    return recordOf(loaders.activity, activityId);
  }
}

@Resolver(() => QuietPreview)
export class QuietSettingsResolver {
  @Query(() => QuietSettings, { description: "How the tenant wants silence to be judged." })
  quietSettings(@Ctx() context: OperationContext): ReturnType<typeof shownSettings> {
    return shownSettings(context);
  }

  @Query(() => QuietPreviewResult, {
    complexity: OF_ALL_DEALS,
    description:
      "What the quiet board would show with these settings, without storing them, against how it is now. For owners and admins.",
  })
  @UseMiddleware(refuseInvalidInput)
  async previewQuietSettings(
    @Input(() => QuietSettingsInput, "The settings to try.") input: QuietSettingsInput,
    @Ctx() context: OperationContext,
  ): Promise<QuietPreview | Refusal> {
    const copy = await context.copy();
    const found = await context.services.quietSettings.preview(context.actor, copy, wishesIn(input, copy));
    return found.ok ? Object.assign(new QuietPreview(), found.value) : presentRefusal(found);
  }

  @Mutation(() => QuietSettingsResult, {
    description:
      "Replaces all settings of silence, for owners and admins. All deals are then judged by them in the background; until that is done every answer counts by the settings before.",
  })
  @UseMiddleware(refuseInvalidInput)
  async setQuietSettings(
    @Input(() => QuietSettingsInput, "All settings, in place of those before.") input: QuietSettingsInput,
    @Ctx() context: OperationContext,
  ): Promise<QuietSettingsSuccess | Refusal> {
    const copy = await context.copy();
    const { actor, services } = context;
    const base = { copyId: copy?.copyId ?? null, version: input.version ?? null };
    const set = await services.quietSettings.set(actor, base, wishesIn(input, copy));
    if (!set.ok) return presentRefusal(set);
    context.renew();
    return Object.assign(new QuietSettingsSuccess(), { settings: await this.quietSettings(context) });
  }

  @FieldResolver(() => [Deal], {
    description: "Those that would change, the most valuable first: currency by currency, as VALUE_DESC orders them.",
  })
  async deals(
    @Root() { dealIds }: QuietPreview,
    @Arg("first", () => Int, { nullable: true, defaultValue: 20, description: `At most ${MOST_PREVIEWED}.` })
    first: number | null,
    @Ctx() context: OperationContext,
  ): Promise<DealRow[]> {
    const shown = dealIds.slice(0, nestedSize(first ?? 20));
    return recordsOf(context.loaders.deal, shown);
  }
}

/** An id that is unknown, another tenant's or of another kind names nothing. */
function wishesIn(input: QuietSettingsInput, copy: CopyScope | null): WishedSettings {
  const idOf = (id: string, type: "Pipeline" | "Stage") => copy && crmIdIn(id, type, copy.copyId);
  const zone = input.timeZone?.trim();
  return {
    timeZone: zone === undefined ? null : zoneNamed(zone),
    businessDays: input.businessDays,
    twoWayTypes: [...new Set(input.twoWayActivityTypes.map((type) => type.trim()))].sort(),
    thresholds: input.thresholds.map(({ pipelineId, stageId, code, days }) => {
      if (stageId != null) return { scope: "STAGE", crmId: idOf(stageId, "Stage"), code, days };
      if (pipelineId != null) return { scope: "PIPELINE", crmId: idOf(pipelineId, "Pipeline"), code, days };
      return { scope: "ALL", crmId: 0, code, days };
    }),
  };
}

@Resolver(() => QuietThreshold)
export class QuietThresholdResolver {
  @FieldResolver()
  pipeline(@Root() { scope, crmId }: OwnThreshold, @Ctx() { loaders }: OperationContext): Promise<PipelineRow | null> {
    return recordOf(loaders.pipeline, scope === "PIPELINE" ? crmId : null);
  }

  @FieldResolver()
  stage(@Root() { scope, crmId }: OwnThreshold, @Ctx() { loaders }: OperationContext): Promise<StageRow | null> {
    return recordOf(loaders.stage, scope === "STAGE" ? crmId : null);
  }
}
