import { Arg, Ctx, FieldResolver, ID, Int, Query, Resolver, Root } from "type-graphql";
import type { OrganizationRow, PersonRow } from "../entities/contact";
import type { ActivityRow, NoteHead } from "../entities/context-record";
import type { CrmUserRow } from "../entities/crm-company";
import type { DealRow } from "../entities/deal";
import { Activity, CrmUser, Note } from "../schema/context-records";
import { Deal, Organization, Person } from "../schema/records";
import type { OperationContext } from "./context";
import { crmIdIn, crmUrl } from "./global-id";
import { First, nestedSize } from "./inputs";
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
    @Arg("first", () => Int, { nullable: true, defaultValue: 5, description: "How many at most, from 1 to 50." }) first:
      | number
      | null,
    @Ctx() context: OperationContext,
  ): Promise<DealRow[]> {
    const key = { id: crmId, first: nestedSize(first ?? 5) };
    return context.loaders.openDealsOf.PERSON.load(key);
  }

  @FieldResolver(() => [Activity], { description: "Done activities, newest first." })
  async recentActivities(
    @Root() { crmId }: PersonRow,
    @Arg("first", () => Int, { nullable: true, defaultValue: 5, description: "How many at most, from 1 to 50." }) first:
      | number
      | null,
    @Ctx() { loaders }: OperationContext,
  ): Promise<ActivityRow[]> {
    return loaders.recentActivities.PERSON.load({ id: crmId, first: nestedSize(first ?? 5) });
  }

  @FieldResolver(() => [Note], { description: "Newest first." })
  async recentNotes(
    @Root() { crmId }: PersonRow,
    @Arg("first", () => Int, { nullable: true, defaultValue: 5, description: "How many at most, from 1 to 50." }) first:
      | number
      | null,
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
    @Ctx() context: OperationContext,
  ): Promise<PersonRow[]> {
    const key = { id: crmId, first: nestedSize(first ?? 20) };
    return context.loaders.personsOf.load(key);
  }

  @FieldResolver(() => [Deal], { description: "Newest change first." })
  async openDeals(
    @Root() { crmId }: OrganizationRow,
    @Arg("first", () => Int, { nullable: true, defaultValue: 5, description: "How many at most, from 1 to 50." }) first:
      | number
      | null,
    @Ctx() context: OperationContext,
  ): Promise<DealRow[]> {
    const key = { id: crmId, first: nestedSize(first ?? 5) };
    return context.loaders.openDealsOf.ORGANIZATION.load(key);
  }

  @FieldResolver(() => [Activity], { description: "Done activities, newest first." })
  async recentActivities(
    @Root() { crmId }: OrganizationRow,
    @Arg("first", () => Int, { nullable: true, defaultValue: 5, description: "How many at most, from 1 to 50." }) first:
      | number
      | null,
    @Ctx() { loaders }: OperationContext,
  ): Promise<ActivityRow[]> {
    const key = { id: crmId, first: nestedSize(first ?? 5) };
    return loaders.recentActivities.ORGANIZATION.load(key);
  }

  @FieldResolver(() => [Note], { description: "Newest first." })
  async recentNotes(
    @Root() { crmId }: OrganizationRow,
    @Arg("first", () => Int, { nullable: true, defaultValue: 5, description: "How many at most, from 1 to 50." }) first:
      | number
      | null,
    @Ctx() { loaders }: OperationContext,
  ): Promise<NoteHead[]> {
    const key = { id: crmId, first: nestedSize(first ?? 5) };
    return loaders.recentNotes.ORGANIZATION.load(key);
  }
}
