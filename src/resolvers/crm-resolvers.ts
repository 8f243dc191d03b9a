import { Ctx, FieldResolver, Resolver, Root } from "type-graphql";
import type { CrmUserRow, PipelineRow, StageRow } from "../entities/crm-company";
import type { DealRow } from "../entities/deal";
import type { ActivityRow, NoteHead, OrganizationRow, PersonRow } from "../entities/records";
import { asMany, LARGE_VALUE } from "../schema/base";
import { Activity, CrmUser, Note, Pipeline, Stage } from "../schema/crm";
import { Deal, Organization, Person } from "../schema/records";
import type { EventContext, OperationContext } from "./context";
import { crmUrl } from "./inputs";
import { LooksUp } from "./look-up-plan";
import { recordOf } from "./look-ups";

@Resolver(() => Stage)
export class StageResolver {
  @FieldResolver(() => Pipeline, { nullable: true, description: "null while the pipeline's own fetch is missing." })
  @LooksUp<StageRow>(({ pipelineId }, { pipeline }) => pipeline(pipelineId))
  pipeline(@Root() { pipelineId }: StageRow, @Ctx() { loaders }: OperationContext): Promise<PipelineRow | null> {
    return recordOf(loaders.pipeline, pipelineId);
  }
}

@Resolver(() => Pipeline)
export class PipelineResolver {
  @FieldResolver(() => [Stage], { complexity: asMany(50), description: "In their order; the first 100." })
  @LooksUp<PipelineRow>(({ crmId }, { stagesOf }) => stagesOf(crmId))
  stages(@Root() { crmId }: PipelineRow, @Ctx() { loaders }: EventContext): Promise<StageRow[]> {
    return loaders.stagesOf.load(crmId);
  }
}

@Resolver(() => Activity)
export class ActivityResolver {
  @FieldResolver()
  dueDay(@Root() { dueAt, dueHasTime }: ActivityRow): Date | null {
    return dueHasTime ? null : dueAt;
  }

  @FieldResolver(() => CrmUser, {
    nullable: true,
    description: "The CRM user who owns it; null where the CRM names none that is known.",
  })
  @LooksUp<ActivityRow>(({ ownerId }, { user }) => user(ownerId))
  owner(@Root() { ownerId }: ActivityRow, @Ctx() { loaders }: OperationContext): Promise<CrmUserRow | null> {
    return recordOf(loaders.user, ownerId);
  }

  @FieldResolver(() => Deal, { nullable: true, description: "null where none is readable." })
  @LooksUp<ActivityRow>(({ dealId }, { deal }) => deal(dealId))
  deal(@Root() { dealId }: ActivityRow, @Ctx() { loaders }: OperationContext): Promise<DealRow | null> {
    return recordOf(loaders.deal, dealId);
  }

  @FieldResolver(() => Person, { nullable: true, description: "null where none is readable." })
  @LooksUp<ActivityRow>(({ personId }, { person }) => person(personId))
  person(@Root() { personId }: ActivityRow, @Ctx() { loaders }: OperationContext): Promise<PersonRow | null> {
    return recordOf(loaders.person, personId);
  }

  @FieldResolver(() => Organization, { nullable: true, description: "null where none is readable." })
  @LooksUp<ActivityRow>(({ organizationId }, { organization }) => organization(organizationId))
  organization(
    @Root() { organizationId }: ActivityRow,
    @Ctx() { loaders }: OperationContext,
  ): Promise<OrganizationRow | null> {
    return recordOf(loaders.organization, organizationId);
  }
}

const NOTE_URL = "The page of the record that it hangs on; null where the CRM company's domain is not known.";

@Resolver(() => Note)
export class NoteResolver {
  @FieldResolver(() => String, { complexity: LARGE_VALUE, description: "Sanitized HTML, safe to show." })
  @LooksUp<NoteHead>(({ crmId }, { shownNote }) => void shownNote(crmId))
  async html(@Root() { crmId }: NoteHead, @Ctx() { loaders }: OperationContext): Promise<string> {
    return (await loaders.shownNote.load(crmId)).html;
  }

  @FieldResolver(() => String, { complexity: LARGE_VALUE, description: "The same without markup." })
  @LooksUp<NoteHead>(({ crmId }, { shownNote }) => void shownNote(crmId))
  async text(@Root() { crmId }: NoteHead, @Ctx() { loaders }: OperationContext): Promise<string> {
    return (await loaders.shownNote.load(crmId)).text;
  }

  @FieldResolver(() => Boolean, {
    description:
      "True where html and text are less than the CRM's note: it is longer than is kept, denser in markup than is shown, or one of so many that only its beginning fits into the answer.",
  })
  @LooksUp<NoteHead>(({ crmId }, { shownNote }) => void shownNote(crmId))
  async truncated(@Root() { crmId }: NoteHead, @Ctx() { loaders }: OperationContext): Promise<boolean> {
    return (await loaders.shownNote.load(crmId)).cut;
  }

  @FieldResolver(() => String, { nullable: true, description: NOTE_URL })
  async crmUrl(
    @Root() { dealId, personId, organizationId }: NoteHead,
    @Ctx() { connection }: OperationContext,
  ): Promise<string | null> {
    // A note has no page of its own: it stands on the record that it hangs on.
    if (dealId) return crmUrl(connection, "deal", dealId);
    if (personId) return crmUrl(connection, "person", personId);
    return organizationId === null ? null : crmUrl(connection, "organization", organizationId);
  }

  @FieldResolver()
  @LooksUp<NoteHead>(({ crmId }, { ourNotes }) => void ourNotes(crmId))
  async ours(@Root() { crmId }: NoteHead, @Ctx() { loaders }: OperationContext): Promise<boolean> {
    return (await loaders.ourNotes.load(crmId)) !== null;
  }

  @FieldResolver(() => CrmUser, {
    nullable: true,
    description: "The CRM user who wrote it; null where the CRM names none that is known.",
  })
  @LooksUp<NoteHead>(({ authorId }, { user }) => user(authorId))
  author(@Root() { authorId }: NoteHead, @Ctx() { loaders }: OperationContext): Promise<CrmUserRow | null> {
    return recordOf(loaders.user, authorId);
  }
}
