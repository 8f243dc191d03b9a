import { Ctx, FieldResolver, Resolver, Root } from "type-graphql";
import type { ShownNote } from "../briefing/notes";
import type { OrganizationRow, PersonRow } from "../entities/contact";
import type { ActivityRow, NoteHead } from "../entities/context-record";
import type { CrmUserRow, PipelineRow, StageRow } from "../entities/crm-company";
import type { DealRow } from "../entities/deal";
import { asMany, LARGE_VALUE } from "../schema/base";
import { Activity, CrmUser, Note, Pipeline, Stage } from "../schema/context-records";
import { Deal, Organization, Person } from "../schema/records";
import type { EventContext, OperationContext } from "./context";
import { crmUrl } from "./global-id";
import { recordOf } from "./loaders";

@Resolver(() => Stage)
export class StageResolver {
  @FieldResolver(() => Pipeline, { nullable: true, description: "null while the pipeline's own fetch is missing." })
  pipeline(@Root() { pipelineId }: StageRow, @Ctx() { loaders }: OperationContext): Promise<PipelineRow | null> {
    return recordOf(loaders.pipeline, pipelineId);
  }
}

@Resolver(() => Pipeline)
export class PipelineResolver {
  @FieldResolver(() => [Stage], { complexity: asMany(50), description: "In their order; the first 100." })
  stages(@Root() { crmId }: PipelineRow, @Ctx() { loaders }: EventContext): Promise<StageRow[]> {
    return loaders.stagesOf.load(crmId);
  }
}

@Resolver(() => Activity)
export class ActivityResolver {
  @FieldResolver(() => CrmUser, {
    nullable: true,
    description: "The CRM user who owns it; null where the CRM names none that is known.",
  })
  owner(@Root() { ownerId }: ActivityRow, @Ctx() { loaders }: OperationContext): Promise<CrmUserRow | null> {
    return recordOf(loaders.user, ownerId);
  }

  @FieldResolver(() => Deal, { nullable: true, description: "null where none is readable." })
  deal(@Root() { dealId }: ActivityRow, @Ctx() { loaders }: OperationContext): Promise<DealRow | null> {
    return recordOf(loaders.deal, dealId);
  }

  @FieldResolver(() => Person, { nullable: true, description: "null where none is readable." })
  person(@Root() { personId }: ActivityRow, @Ctx() { loaders }: OperationContext): Promise<PersonRow | null> {
    return recordOf(loaders.person, personId);
  }

  @FieldResolver(() => Organization, { nullable: true, description: "null where none is readable." })
  organization(
    @Root() { organizationId }: ActivityRow,
    @Ctx() { loaders }: OperationContext,
  ): Promise<OrganizationRow | null> {
    return recordOf(loaders.organization, organizationId);
  }
}

/** One that a sync has removed since it was found has nothing to show. */
const GONE: ShownNote = { html: "", text: "", cut: true };

const shownOf = async ({ crmId }: NoteHead, { loaders }: OperationContext): Promise<ShownNote> =>
  (await loaders.shownNote.load(crmId)) ?? GONE;

@Resolver(() => Note)
export class NoteResolver {
  @FieldResolver(() => String, { complexity: LARGE_VALUE, description: "Sanitized HTML, safe to show." })
  async html(@Root() note: NoteHead, @Ctx() context: OperationContext): Promise<string> {
    return (await shownOf(note, context)).html;
  }

  @FieldResolver(() => String, { complexity: LARGE_VALUE, description: "The same without markup." })
  async text(@Root() note: NoteHead, @Ctx() context: OperationContext): Promise<string> {
    return (await shownOf(note, context)).text;
  }

  @FieldResolver(() => Boolean, {
    description:
      "True where html and text are less than the CRM's note: it is longer than is kept, denser in markup than is shown, or one of so many that only its beginning fits into the answer.",
  })
  async truncated(@Root() note: NoteHead, @Ctx() context: OperationContext): Promise<boolean> {
    return (await shownOf(note, context)).cut;
  }

  @FieldResolver(() => String, { nullable: true, description: "The record that it hangs on, in the CRM." })
  async crmUrl(
    @Root() { dealId, personId, organizationId }: NoteHead,
    @Ctx() { connection }: OperationContext,
  ): Promise<string | null> {
    // A note has no page of its own: it stands on the record that it hangs on.
    if (dealId) return crmUrl(connection, "deal", dealId);
    if (personId) return crmUrl(connection, "person", personId);
    return organizationId === null ? null : crmUrl(connection, "organization", organizationId);
  }

  @FieldResolver(() => CrmUser, { nullable: true, description: "The CRM user who wrote it." })
  author(@Root() { authorId }: NoteHead, @Ctx() { loaders }: OperationContext): Promise<CrmUserRow | null> {
    return recordOf(loaders.user, authorId);
  }
}
