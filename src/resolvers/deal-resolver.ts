import { Arg, Ctx, FieldResolver, ID, Int, Query, Resolver, Root } from "type-graphql";
import { asMany } from "../schema/complexity";
import { Activity, Note } from "../schema/context-records";
import { CrmUser, Pipeline, Stage } from "../schema/crm-setup";
import { Deal, Organization, Person } from "../schema/records";
import type { OperationContext } from "./context";
import { dealEdge, organizationEdge, personEdge, persons, userEdge } from "./edges";
import { nestedSize } from "./errors";
import { crmIdIn } from "./global-id";
import { presentActivity, presentNote, presentPipeline, presentStage } from "./present";

@Resolver(() => Deal)
export class DealResolver {
  @Query(() => Deal, { nullable: true, description: "null for unknown, foreign and never-matched ids alike." })
  async deal(@Arg("id", () => ID) id: string, @Ctx() context: OperationContext): Promise<Deal | null> {
    const copy = await context.copy();
    return copy && dealEdge(context, crmIdIn(id, "Deal", copy.copyId));
  }

  @FieldResolver(() => Stage, {
    nullable: true,
    description: "null while the stage's own fetch is missing; see Connection.sync.gaps.",
  })
  async stage(@Root() { links }: Deal, @Ctx() { loaders }: OperationContext): Promise<Stage | null> {
    const row = links.stage === null ? null : await loaders.stage.load(links.stage);
    return row && presentStage(row);
  }

  @FieldResolver(() => Pipeline, { nullable: true })
  async pipeline(@Root() { links }: Deal, @Ctx() { loaders }: OperationContext): Promise<Pipeline | null> {
    const row = links.pipeline === null ? null : await loaders.pipeline.load(links.pipeline);
    return row && presentPipeline(row);
  }

  @FieldResolver(() => CrmUser, { nullable: true })
  owner(@Root() { links }: Deal, @Ctx() context: OperationContext): Promise<CrmUser | null> {
    return userEdge(context, links.owner);
  }

  @FieldResolver(() => Organization, { nullable: true })
  organization(@Root() { links }: Deal, @Ctx() context: OperationContext): Promise<Organization | null> {
    return organizationEdge(context, links.organization);
  }

  @FieldResolver(() => Person, { nullable: true })
  person(@Root() { links }: Deal, @Ctx() context: OperationContext): Promise<Person | null> {
    return personEdge(context, links.person);
  }

  @FieldResolver(() => [Person], {
    complexity: asMany(100),
    description: "Those who are matched to a recorded meeting; by name, the first 100.",
  })
  async participants(@Root() { links }: Deal, @Ctx() context: OperationContext): Promise<Person[]> {
    return persons(context, await context.loaders.participants.load({ id: links.deal, first: 0 }));
  }

  @FieldResolver(() => [Activity], { description: "Done activities, newest first." })
  async recentActivities(
    @Root() { links }: Deal,
    @Arg("first", () => Int, { nullable: true, defaultValue: 5 }) first: number | null,
    @Ctx() { loaders }: OperationContext,
  ): Promise<Activity[]> {
    const found = await loaders.recentActivities.DEAL.load({ id: links.deal, first: nestedSize(first) });
    return found.map(presentActivity);
  }

  @FieldResolver(() => Activity, { nullable: true, description: "The earliest activity that is still to come." })
  async nextActivity(@Root() { links }: Deal, @Ctx() { loaders }: OperationContext): Promise<Activity | null> {
    const [next] = await loaders.nextActivity.load({ id: links.deal, first: 1 });
    return next ? presentActivity(next) : null;
  }

  @FieldResolver(() => [Note], { description: "Newest first." })
  async recentNotes(
    @Root() { links }: Deal,
    @Arg("first", () => Int, { nullable: true, defaultValue: 5 }) first: number | null,
    @Ctx() { loaders }: OperationContext,
  ): Promise<Note[]> {
    return (await loaders.recentNotes.DEAL.load({ id: links.deal, first: nestedSize(first) })).map(presentNote);
  }
}
