import { Ctx, FieldResolver, Resolver, Root } from "type-graphql";
import type { ShownNote } from "../briefing/notes";
import { asMany, LARGE_VALUE } from "../schema/complexity";
import { Activity, Note } from "../schema/context-records";
import { CrmUser, Pipeline, Stage } from "../schema/crm-setup";
import { Deal, Organization, Person } from "../schema/records";
import type { EventContext, OperationContext } from "./context";
import { dealEdge, organizationEdge, personEdge, userEdge } from "./edges";
import { crmUrlOfNote, presentPipeline, presentStage } from "./present";

@Resolver(() => Stage)
export class StageResolver {
  @FieldResolver(() => Pipeline, { nullable: true })
  async pipeline(@Root() { pipelineId }: Stage, @Ctx() { loaders }: OperationContext): Promise<Pipeline | null> {
    const row = pipelineId === null ? null : await loaders.pipeline.load(pipelineId);
    return row && presentPipeline(row);
  }
}

@Resolver(() => Pipeline)
export class PipelineResolver {
  @FieldResolver(() => [Stage], { complexity: asMany(50), description: "In their order; the first 100." })
  async stages(@Root() { pipelineCrmId }: Pipeline, @Ctx() { loaders }: EventContext): Promise<Stage[]> {
    return (await loaders.stagesOf.load(pipelineCrmId)).map(presentStage);
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

/** One that a sync has removed since it was found has nothing to show. */
const GONE: ShownNote = { html: "", text: "", cut: true };

const shownOf = async ({ links }: Note, { loaders }: OperationContext): Promise<ShownNote> =>
  (await loaders.shownNote.load(links.note)) ?? GONE;

@Resolver(() => Note)
export class NoteResolver {
  @FieldResolver(() => String, { complexity: LARGE_VALUE, description: "Sanitized HTML, safe to show." })
  async html(@Root() note: Note, @Ctx() context: OperationContext): Promise<string> {
    return (await shownOf(note, context)).html;
  }

  @FieldResolver(() => String, { complexity: LARGE_VALUE, description: "The same without markup." })
  async text(@Root() note: Note, @Ctx() context: OperationContext): Promise<string> {
    return (await shownOf(note, context)).text;
  }

  @FieldResolver(() => Boolean, {
    description:
      "True where html and text are less than the CRM's note: it is longer than is kept, denser in markup than is shown, or one of so many that only its beginning fits into the answer.",
  })
  async truncated(@Root() note: Note, @Ctx() context: OperationContext): Promise<boolean> {
    return (await shownOf(note, context)).cut;
  }

  @FieldResolver(() => String, { nullable: true, description: "The record that it hangs on, in the CRM." })
  async crmUrl(@Root() { links }: Note, @Ctx() { connection }: OperationContext): Promise<string | null> {
    return crmUrlOfNote((await connection())?.companyDomain ?? null, links);
  }

  @FieldResolver(() => CrmUser, { nullable: true })
  author(@Root() { links }: Note, @Ctx() context: OperationContext): Promise<CrmUser | null> {
    return userEdge(context, links.author);
  }
}
