import { Arg, Ctx, FieldResolver, ID, Query, Resolver, Root } from "type-graphql";
import type { OrganizationRow, PersonRow } from "../entities/contact";
import type { ActivityRow, NoteHead } from "../entities/context-record";
import type { CrmUserRow, PipelineRow, StageRow } from "../entities/crm-company";
import type { DealRow } from "../entities/deal";
import { asMany } from "../schema/base";
import { Activity, CrmUser, Note, Pipeline, Stage } from "../schema/context-records";
import { Deal, type Money, Organization, Person } from "../schema/records";
import type { OperationContext } from "./context";
import { crmIdIn, crmUrl } from "./global-id";
import { First, nestedSize } from "./inputs";
import { recordOf } from "./loaders";

@Resolver(() => Deal)
export class DealResolver {
  @Query(() => Deal, { nullable: true, description: "null for unknown, foreign and never-matched ids alike." })
  async deal(
    @Arg("id", () => ID, { description: "Its global id." }) id: string,
    @Ctx() { copy, loaders }: OperationContext,
  ): Promise<DealRow | null> {
    const seen = await copy();
    return seen && recordOf(loaders.deal, crmIdIn(id, "Deal", seen.copyId));
  }

  @FieldResolver()
  value(@Root() { value: amount, currency }: DealRow): Money | null {
    return amount !== null && currency !== null ? { amount, currency } : null;
  }

  @FieldResolver()
  crmUrl(@Root() { crmId }: DealRow, @Ctx() { connection }: OperationContext): Promise<string | null> {
    return crmUrl(connection, "deal", crmId);
  }

  @FieldResolver(() => Stage, {
    nullable: true,
    description: "null while the stage's own fetch is missing; see Connection.sync.gaps.",
  })
  stage(@Root() { stageId }: DealRow, @Ctx() { loaders }: OperationContext): Promise<StageRow | null> {
    return recordOf(loaders.stage, stageId);
  }

  @FieldResolver(() => Pipeline, { nullable: true, description: "null while the pipeline's own fetch is missing." })
  pipeline(@Root() { pipelineId }: DealRow, @Ctx() { loaders }: OperationContext): Promise<PipelineRow | null> {
    return recordOf(loaders.pipeline, pipelineId);
  }

  @FieldResolver(() => CrmUser, {
    nullable: true,
    description: "The CRM user who owns it; null where the CRM names none that is known.",
  })
  owner(@Root() { ownerId }: DealRow, @Ctx() { loaders }: OperationContext): Promise<CrmUserRow | null> {
    return recordOf(loaders.user, ownerId);
  }

  @FieldResolver(() => Organization, {
    nullable: true,
    description: "The company it is with; null where none is readable.",
  })
  organization(
    @Root() { organizationId }: DealRow,
    @Ctx() { loaders }: OperationContext,
  ): Promise<OrganizationRow | null> {
    return recordOf(loaders.organization, organizationId);
  }

  @FieldResolver(() => Person, { nullable: true, description: "Its contact person; null where none is readable." })
  person(@Root() { personId }: DealRow, @Ctx() { loaders }: OperationContext): Promise<PersonRow | null> {
    return recordOf(loaders.person, personId);
  }

  @FieldResolver(() => [Person], {
    complexity: asMany(100),
    description: "Those who are matched to a recorded meeting; by name, the first 100.",
  })
  participants(@Root() { crmId }: DealRow, @Ctx() { loaders }: OperationContext): Promise<PersonRow[]> {
    return loaders.participants.load({ id: crmId, first: 0 });
  }

  @FieldResolver(() => [Activity], { description: "Done activities, newest first." })
  recentActivities(
    @Root() { crmId }: DealRow,
    @First(5) first: number | null,
    @Ctx() { loaders }: OperationContext,
  ): Promise<ActivityRow[]> {
    return loaders.recentActivities.DEAL.load({ id: crmId, first: nestedSize(first ?? 5) });
  }

  @FieldResolver(() => Activity, { nullable: true, description: "The earliest activity that is still to come." })
  async nextActivity(@Root() { crmId }: DealRow, @Ctx() { loaders }: OperationContext): Promise<ActivityRow | null> {
    const [next = null] = await loaders.nextActivity.load({ id: crmId, first: 1 });
    return next;
  }

  @FieldResolver(() => [Note], { description: "Newest first." })
  recentNotes(
    @Root() { crmId }: DealRow,
    @First(5) first: number | null,
    @Ctx() { loaders }: OperationContext,
  ): Promise<NoteHead[]> {
    return loaders.recentNotes.DEAL.load({ id: crmId, first: nestedSize(first ?? 5) });
  }
}
