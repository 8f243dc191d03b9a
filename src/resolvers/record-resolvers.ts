import { Arg, Ctx, FieldResolver, ID, Query, Resolver, Root } from "type-graphql";
import type { CrmUserRow, PipelineRow, StageRow } from "../entities/crm-company";
import type { DealRow } from "../entities/deal";
import type { ActivityRow, NoteHead, OrganizationRow, PersonRow } from "../entities/records";
import { asMany, LARGE_VALUE } from "../schema/base";
import { Activity, CrmUser, Note, Pipeline, Stage } from "../schema/crm";
import { Deal, Organization, Person } from "../schema/records";
import type { EventContext, OperationContext } from "./context";
import { crmIdIn, crmUrl, First, nestedSize } from "./inputs";
import { recordOf } from "./loaders";

@Resolver(() => Person)
export class PersonResolver {
  @Query(() => Person, { nullable: true, description: "null for unknown, foreign and never-matched ids alike." })
  async person(
    @Arg("id", () => ID, { description: "Its global id." }) id: string,
    @Ctx() context: OperationContext,
  ): Promise<PersonRow | null> {
    const copy = await context.copy();
    return copy && recordOf(context.loaders.person, crmIdIn(id, "Person", copy.copyId));
  }

  @FieldResolver()
  crmUrl(@Root() { crmId }: PersonRow, @Ctx() { connection }: OperationContext): Promise<string | null> {
    return crmUrl(connection, "person", crmId);
  }

  @FieldResolver(() => Organization, {
    nullable: true,
    description: "The person's company; null where none is readable.",
  })
  organization(
    @Root() { organizationId }: PersonRow,
    @Ctx() { loaders }: OperationContext,
  ): Promise<OrganizationRow | null> {
    return recordOf(loaders.organization, organizationId);
  }

  @FieldResolver(() => CrmUser, {
    nullable: true,
    description: "The CRM user who owns it; null where the CRM names none that is known.",
  })
  owner(@Root() { ownerId }: PersonRow, @Ctx() { loaders }: OperationContext): Promise<CrmUserRow | null> {
    return recordOf(loaders.user, ownerId);
  }

  @FieldResolver(() => [Deal], { description: "The person's own and those taken part in; newest change first." })
  async openDeals(
    @Root() { crmId }: PersonRow,
    @First(5) first: number | null,
    @Ctx() { loaders }: OperationContext,
  ): Promise<DealRow[]> {
    return loaders.openDealsOf.PERSON.load({ id: crmId, first: nestedSize(first ?? 5) });
  }

  @FieldResolver(() => [Activity], { description: "Done activities, newest first." })
  async recentActivities(
    @Root() { crmId }: PersonRow,
    @First(5) first: number | null,
    @Ctx() { loaders }: OperationContext,
  ): Promise<ActivityRow[]> {
    return loaders.recentActivities.PERSON.load({ id: crmId, first: nestedSize(first ?? 5) });
  }

  @FieldResolver(() => [Note], { description: "Newest first." })
  async recentNotes(
    @Root() { crmId }: PersonRow,
    @First(5) first: number | null,
    @Ctx() { loaders }: OperationContext,
  ): Promise<NoteHead[]> {
    return loaders.recentNotes.PERSON.load({ id: crmId, first: nestedSize(first ?? 5) });
  }
}

@Resolver(() => Organization)
export class OrganizationResolver {
  @Query(() => Organization, { nullable: true, description: "null for unknown, foreign and never-matched ids alike." })
  async organization(
    @Arg("id", () => ID, { description: "Its global id." }) id: string,
    @Ctx() context: OperationContext,
  ): Promise<OrganizationRow | null> {
    const copy = await context.copy();
    return copy && recordOf(context.loaders.organization, crmIdIn(id, "Organization", copy.copyId));
  }

  @FieldResolver()
  crmUrl(@Root() { crmId }: OrganizationRow, @Ctx() { connection }: OperationContext): Promise<string | null> {
    return crmUrl(connection, "organization", crmId);
  }

  @FieldResolver(() => CrmUser, {
    nullable: true,
    description: "The CRM user who owns it; null where the CRM names none that is known.",
  })
  owner(@Root() { ownerId }: OrganizationRow, @Ctx() { loaders }: OperationContext): Promise<CrmUserRow | null> {
    return recordOf(loaders.user, ownerId);
  }

  @FieldResolver(() => [Person], { description: "Those who are matched to a recorded meeting; by name." })
  async persons(
    @Root() { crmId }: OrganizationRow,
    @First(20) first: number | null,
    @Ctx() { loaders }: OperationContext,
  ): Promise<PersonRow[]> {
    return loaders.personsOf.load({ id: crmId, first: nestedSize(first ?? 20) });
  }

  @FieldResolver(() => [Deal], { description: "Newest change first." })
  async openDeals(
    @Root() { crmId }: OrganizationRow,
    @First(5) first: number | null,
    @Ctx() { loaders }: OperationContext,
  ): Promise<DealRow[]> {
    return loaders.openDealsOf.ORGANIZATION.load({ id: crmId, first: nestedSize(first ?? 5) });
  }

  @FieldResolver(() => [Activity], { description: "Done activities, newest first." })
  async recentActivities(
    @Root() { crmId }: OrganizationRow,
    @First(5) first: number | null,
    @Ctx() { loaders }: OperationContext,
  ): Promise<ActivityRow[]> {
    return loaders.recentActivities.ORGANIZATION.load({ id: crmId, first: nestedSize(first ?? 5) });
  }

  @FieldResolver(() => [Note], { description: "Newest first." })
  async recentNotes(
    @Root() { crmId }: OrganizationRow,
    @First(5) first: number | null,
    @Ctx() { loaders }: OperationContext,
  ): Promise<NoteHead[]> {
    return loaders.recentNotes.ORGANIZATION.load({ id: crmId, first: nestedSize(first ?? 5) });
  }
}

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

@Resolver(() => Note)
export class NoteResolver {
  @FieldResolver(() => String, { complexity: LARGE_VALUE, description: "Sanitized HTML, safe to show." })
  async html(@Root() { crmId }: NoteHead, @Ctx() { loaders }: OperationContext): Promise<string> {
    return (await loaders.shownNote.load(crmId)).html;
  }

  @FieldResolver(() => String, { complexity: LARGE_VALUE, description: "The same without markup." })
  async text(@Root() { crmId }: NoteHead, @Ctx() { loaders }: OperationContext): Promise<string> {
    return (await loaders.shownNote.load(crmId)).text;
  }

  @FieldResolver(() => Boolean, {
    description:
      "True where html and text are less than the CRM's note: it is longer than is kept, denser in markup than is shown, or one of so many that only its beginning fits into the answer.",
  })
  async truncated(@Root() { crmId }: NoteHead, @Ctx() { loaders }: OperationContext): Promise<boolean> {
    return (await loaders.shownNote.load(crmId)).cut;
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
