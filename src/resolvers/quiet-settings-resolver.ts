import { Arg, Ctx, FieldResolver, Int, Mutation, Query, Resolver, Root, UseMiddleware } from "type-graphql";
import { MOST_PREVIEWED } from "../briefing/quiet/preview";
import { readQuietSettings, type ShownSettings, type WishedSettings } from "../briefing/quiet/quiet-settings";
import type { CopyScope } from "../database/database";
import { zoneNamed } from "../platform/clock";
import { OF_ALL_DEALS } from "../schema/complexity";
import { QuietReasonCode } from "../schema/quiet";
import {
  QuietPreview,
  QuietPreviewResult,
  QuietSettings,
  QuietSettingsInput,
  QuietSettingsResult,
  QuietSettingsSuccess,
  QuietThreshold,
  ThresholdScope,
} from "../schema/quiet-settings";
import { Deal } from "../schema/records";
import type { Refusal } from "../schema/refusal";
import type { OperationContext } from "./context";
import { deals, loadAll } from "./edges";
import { nestedSize } from "./errors";
import { crmIdIn } from "./global-id";
import { Input, refuseInvalidInput } from "./invalid-input";
import { make, presentPipeline, presentRefusal, presentStage } from "./present";

@Resolver(() => QuietPreview)
export class QuietSettingsResolver {
  @Query(() => QuietSettings, { description: "How the tenant wants silence to be judged." })
  async quietSettings(@Ctx() context: OperationContext): Promise<QuietSettings> {
    return present(context, await readQuietSettings(context.scope));
  }

  @Query(() => QuietPreviewResult, {
    complexity: OF_ALL_DEALS,
    description:
      "What the quiet board would show with these settings, without storing them, against how it is now. For owners and admins.",
  })
  @UseMiddleware(refuseInvalidInput)
  async previewQuietSettings(
    @Input(() => QuietSettingsInput) input: QuietSettingsInput,
    @Ctx() context: OperationContext,
  ): Promise<QuietPreview | Refusal> {
    const copy = await context.copy();
    const found = await context.services.quietSettings.preview(context.actor, copy, wishesIn(input, copy));
    return found.ok ? make(QuietPreview, found.value) : presentRefusal(found);
  }

  @Mutation(() => QuietSettingsResult, {
    description:
      "Replaces all settings of silence, for owners and admins. All deals are then judged by them in the background; until that is done every answer counts by the settings before.",
  })
  @UseMiddleware(refuseInvalidInput)
  async setQuietSettings(
    @Input(() => QuietSettingsInput) input: QuietSettingsInput,
    @Ctx() context: OperationContext,
  ): Promise<QuietSettingsSuccess | Refusal> {
    const copy = await context.copy();
    const { actor, services } = context;
    const set = await services.quietSettings.set(actor, copy?.copyId ?? null, wishesIn(input, copy));
    if (!set.ok) return presentRefusal(set);
    context.renew();
    return make(QuietSettingsSuccess, { settings: await this.quietSettings(context) });
  }

  @FieldResolver(() => [Deal], {
    description: "Those that would change, the most valuable first: currency by currency, as VALUE_DESC orders them.",
  })
  async deals(
    @Root() { dealIds }: QuietPreview,
    @Arg("first", () => Int, { nullable: true, defaultValue: 20, description: `At most ${MOST_PREVIEWED}.` })
    first: number | null,
    @Ctx() context: OperationContext,
  ): Promise<Deal[]> {
    const shown = dealIds.slice(0, nestedSize(first ?? 20));
    return deals(context, await loadAll((id) => context.loaders.deal.load(id), shown));
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

async function present({ loaders }: OperationContext, shown: ShownSettings): Promise<QuietSettings> {
  const thresholds = shown.thresholds.map(async ({ scope, crmId, code, days }) => {
    const pipeline = scope === "PIPELINE" ? await loaders.pipeline.load(crmId) : null;
    const stage = scope === "STAGE" ? await loaders.stage.load(crmId) : null;
    return make(QuietThreshold, {
      scope: ThresholdScope[scope],
      pipeline: pipeline && presentPipeline(pipeline),
      stage: stage && presentStage(stage),
      code: QuietReasonCode[code as keyof typeof QuietReasonCode],
      days,
    });
  });
  const { businessDays, twoWayTypes, timeZone, rejudging } = shown;
  return make(QuietSettings, {
    thresholds: await Promise.all(thresholds),
    twoWayActivityTypes: twoWayTypes,
    ...{ businessDays, timeZone, rejudging },
  });
}
