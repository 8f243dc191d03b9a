import type { GraphQLResolveInfo } from "graphql";
import { Arg, Ctx, FieldResolver, ID, Info, Query, Resolver, Root } from "type-graphql";
import type { CrmUserRow } from "../entities/crm-company";
import type { DealRow } from "../entities/deal";
import type { ActivityRow, NoteHead, OrganizationRow, PersonRow } from "../entities/records";
import { Activity, CrmUser, Note } from "../schema/crm";
import { Deal, Organization, Person } from "../schema/records";
import type { OperationContext } from "./context";
import { crmUrl, First, nestedSize } from "./inputs";
import { LooksUp, type Sized } from "./look-up-plan";
import { beginWithRecord, recordOf } from "./look-ups";

@Resolver(() => Person)
export class PersonResolver {
  @Query(() => Person, { nullable: true, description: "null for unknown, foreign and never-matched ids alike." })
  async person(
    @Arg("id", () => ID, { description: "Its global id." }) id: string,
    @Ctx() context: OperationContext,
    @Info() info: GraphQLResolveInfo,
  ): Promise<PersonRow | null> {
    return beginWithRecord(info, context, context.loaders.person, id, "Person");
  }

  @FieldResolver()
  crmUrl(@Root() { crmId }: PersonRow, @Ctx() { connection }: OperationContext): Promise<string | null> {
    return crmUrl(connection, "person", crmId);
  }

  @FieldResolver(() => Organization, {
    nullable: true,
    description: "The person's organization; null where none is readable.",
  })
  @LooksUp<PersonRow>(({ organizationId }, { organization }) => organization(organizationId))
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
  @LooksUp<PersonRow>(({ ownerId }, { user }) => user(ownerId))
  owner(@Root() { ownerId }: PersonRow, @Ctx() { loaders }: OperationContext): Promise<CrmUserRow | null> {
    return recordOf(loaders.user, ownerId);
  }

  @FieldResolver(() => [Deal], { description: "The person's own and those taken part in; newest change first." })
  @LooksUp<PersonRow, Sized>(({ crmId }, { openDealsOfPerson }, { first }) =>
    openDealsOfPerson(crmId, nestedSize(first ?? 5)),
  )
  async openDeals(
    @Root() { crmId }: PersonRow,
    @First(5) first: number | null,
    @Ctx() { loaders }: OperationContext,
  ): Promise<DealRow[]> {
    return loaders.openDealsOfPerson.load(crmId, nestedSize(first ?? 5));
  }

  @FieldResolver(() => [Activity], { description: "Done activities, newest first." })
  @LooksUp<PersonRow, Sized>(({ crmId }, { activitiesOfPerson }, { first }) =>
    activitiesOfPerson(crmId, nestedSize(first ?? 5)),
  )
  async recentActivities(
    @Root() { crmId }: PersonRow,
    @First(5) first: number | null,
    @Ctx() { loaders }: OperationContext,
  ): Promise<ActivityRow[]> {
    return loaders.activitiesOfPerson.load(crmId, nestedSize(first ?? 5));
  }

  @FieldResolver(() => [Note], { description: "Newest first." })
  @LooksUp<PersonRow, Sized>(({ crmId }, { notesOfPerson }, { first }) => notesOfPerson(crmId, nestedSize(first ?? 5)))
  async recentNotes(
    @Root() { crmId }: PersonRow,
    @First(5) first: number | null,
    @Ctx() { loaders }: OperationContext,
  ): Promise<NoteHead[]> {
    return loaders.notesOfPerson.load(crmId, nestedSize(first ?? 5));
  }
}

@Resolver(() => Organization)
export class OrganizationResolver {
  @Query(() => Organization, { nullable: true, description: "null for unknown, foreign and never-matched ids alike." })
  async organization(
    @Arg("id", () => ID, { description: "Its global id." }) id: string,
    @Ctx() context: OperationContext,
    @Info() info: GraphQLResolveInfo,
  ): Promise<OrganizationRow | null> {
    return beginWithRecord(info, context, context.loaders.organization, id, "Organization");
  }

  @FieldResolver()
  crmUrl(@Root() { crmId }: OrganizationRow, @Ctx() { connection }: OperationContext): Promise<string | null> {
    return crmUrl(connection, "organization", crmId);
  }

  @FieldResolver(() => CrmUser, {
    nullable: true,
    description: "The CRM user who owns it; null where the CRM names none that is known.",
  })
  @LooksUp<OrganizationRow>(({ ownerId }, { user }) => user(ownerId))
  owner(@Root() { ownerId }: OrganizationRow, @Ctx() { loaders }: OperationContext): Promise<CrmUserRow | null> {
    return recordOf(loaders.user, ownerId);
  }

  @FieldResolver(() => [Person], { description: "Those who are matched to a recorded meeting; by name." })
  @LooksUp<OrganizationRow, Sized>(({ crmId }, { personsOf }, { first }) => personsOf(crmId, nestedSize(first ?? 20)))
  async persons(
    @Root() { crmId }: OrganizationRow,
    @First(20) first: number | null,
    @Ctx() { loaders }: OperationContext,
  ): Promise<PersonRow[]> {
    return loaders.personsOf.load(crmId, nestedSize(first ?? 20));
  }

  @FieldResolver(() => [Deal], { description: "Newest change first." })
  @LooksUp<OrganizationRow, Sized>(({ crmId }, { openDealsOfOrganization }, { first }) =>
    openDealsOfOrganization(crmId, nestedSize(first ?? 5)),
  )
  async openDeals(
    @Root() { crmId }: OrganizationRow,
    @First(5) first: number | null,
    @Ctx() { loaders }: OperationContext,
  ): Promise<DealRow[]> {
    return loaders.openDealsOfOrganization.load(crmId, nestedSize(first ?? 5));
  }

  @FieldResolver(() => [Activity], { description: "Done activities, newest first." })
  @LooksUp<OrganizationRow, Sized>(({ crmId }, { activitiesOfOrganization }, { first }) =>
    activitiesOfOrganization(crmId, nestedSize(first ?? 5)),
  )
  async recentActivities(
    @Root() { crmId }: OrganizationRow,
    @First(5) first: number | null,
    @Ctx() { loaders }: OperationContext,
  ): Promise<ActivityRow[]> {
    return loaders.activitiesOfOrganization.load(crmId, nestedSize(first ?? 5));
  }

  @FieldResolver(() => [Note], { description: "Newest first." })
  @LooksUp<OrganizationRow, Sized>(({ crmId }, { notesOfOrganization }, { first }) =>
    notesOfOrganization(crmId, nestedSize(first ?? 5)),
  )
  async recentNotes(
    @Root() { crmId }: OrganizationRow,
    @First(5) first: number | null,
    @Ctx() { loaders }: OperationContext,
  ): Promise<NoteHead[]> {
    return loaders.notesOfOrganization.load(crmId, nestedSize(first ?? 5));
  }
}
