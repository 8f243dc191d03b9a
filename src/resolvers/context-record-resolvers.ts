import { Ctx, FieldResolver, Resolver, Root } from "type-graphql";
import { plainText } from "../briefing/note-content";
import { safeHtml } from "../platform/safe-html";
import { Activity, Note } from "../schema/context-records";
import { CrmUser, Pipeline, Stage } from "../schema/crm-setup";
import { Deal, Organization, Person } from "../schema/records";
import type { OperationContext } from "./context";
import { dealEdge, organizationEdge, personEdge, userEdge } from "./edges";
import { presentPipeline } from "./present";

@Resolver(() => Stage)
export class StageResolver {
  @FieldResolver(() => Pipeline, { nullable: true })
  async pipeline(@Root() { pipelineId }: Stage, @Ctx() { loaders }: OperationContext): Promise<Pipeline | null> {
    const row = pipelineId === null ? null : await loaders.pipeline.load(pipelineId);
    return row && presentPipeline(row);
  }
}

@Resolver(() => Activity)
export class ActivityResolver {
  @FieldResolver(() => CrmUser, { nullable: true })
  owner(@Root() { links }: Activity, @Ctx() context: OperationContext): Promise<CrmUser | null> {
    return userEdge(context, links.owner);
  }

  @FieldResolver(() => Deal, { nullable: true })
  deal(@Root() { links }: Activity, @Ctx() context: OperationContext): Promise<Deal | null> {
    return dealEdge(context, links.deal);
  }

  @FieldResolver(() => Person, { nullable: true })
  person(@Root() { links }: Activity, @Ctx() context: OperationContext): Promise<Person | null> {
    return personEdge(context, links.person);
  }

  @FieldResolver(() => Organization, { nullable: true })
  organization(@Root() { links }: Activity, @Ctx() context: OperationContext): Promise<Organization | null> {
    return organizationEdge(context, links.organization);
  }
}

@Resolver(() => Note)
export class NoteResolver {
  @FieldResolver(() => String, { description: "Sanitized HTML, safe to show." })
  html(@Root() { content }: Note): string {
    return safeHtml(content);
  }

  @FieldResolver(() => String, { description: "The same without markup." })
  text(@Root() { content }: Note): string {
    return plainText(content);
  }

  @FieldResolver(() => CrmUser, { nullable: true })
  author(@Root() { links }: Note, @Ctx() context: OperationContext): Promise<CrmUser | null> {
    return userEdge(context, links.author);
  }
}
