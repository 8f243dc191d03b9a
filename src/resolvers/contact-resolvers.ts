import { Arg, Ctx, FieldResolver, ID, Int, Query, Resolver, Root } from "type-graphql";
import { Activity, CrmUser, Note } from "../schema/context-records";
import { Deal, Organization, Person } from "../schema/records";
import type { OperationContext } from "./context";
import { deals, organizationEdge, personEdge, persons, userEdge } from "./edges";
import { nestedSize } from "./errors";
import { crmIdIn } from "./global-id";
import { presentActivity, presentNote } from "./present";

@Resolver(() => Person)
export class PersonResolver {
  @Query(() => Person, { nullable: true, description: "null for unknown, foreign and never-matched ids alike." })
  async person(
    @Arg("id", () => ID, { description: "Its global id." }) id: string,
    @Ctx() context: OperationContext,
  ): Promise<Person | null> {
    const copy = await context.copy();
    return copy && personEdge(context, crmIdIn(id, "Person", copy.copyId));
  }

  @FieldResolver(() => Organization, {
    nullable: true,
    description: "The person's company; null where none is readable.",
  })
  organization(@Root() { links }: Person, @Ctx() context: OperationContext): Promise<Organization | null> {
    return organizationEdge(context, links.organization);
  }

  @FieldResolver(() => CrmUser, {
    nullable: true,
    description: "The CRM user who owns it; null where the CRM names none that is known.",
  })
  owner(@Root() { links }: Person, @Ctx() context: OperationContext): Promise<CrmUser | null> {
    return userEdge(context, links.owner);
  }

  @FieldResolver(() => [Deal], { description: "The person's own and those taken part in; newest change first." })
  async openDeals(
    @Root() { links }: Person,
    @Arg("first", () => Int, { nullable: true, defaultValue: 5, description: "How many at most, from 1 to 50." }) first:
      | number
      | null,
    @Ctx() context: OperationContext,
  ): Promise<Deal[]> {
    const key = { id: links.person, first: nestedSize(first) };
    return deals(context, await context.loaders.openDealsOf.PERSON.load(key));
  }

  @FieldResolver(() => [Activity], { description: "Done activities, newest first." })
  async recentActivities(
    @Root() { links }: Person,
    @Arg("first", () => Int, { nullable: true, defaultValue: 5, description: "How many at most, from 1 to 50." }) first:
      | number
      | null,
    @Ctx() { loaders }: OperationContext,
  ): Promise<Activity[]> {
    const found = await loaders.recentActivities.PERSON.load({ id: links.person, first: nestedSize(first) });
    return found.map(presentActivity);
  }

  @FieldResolver(() => [Note], { description: "Newest first." })
  async recentNotes(
    @Root() { links }: Person,
    @Arg("first", () => Int, { nullable: true, defaultValue: 5, description: "How many at most, from 1 to 50." }) first:
      | number
      | null,
    @Ctx() { loaders }: OperationContext,
  ): Promise<Note[]> {
    return (await loaders.recentNotes.PERSON.load({ id: links.person, first: nestedSize(first) })).map(presentNote);
  }
}

@Resolver(() => Organization)
export class OrganizationResolver {
  @Query(() => Organization, { nullable: true, description: "null for unknown, foreign and never-matched ids alike." })
  async organization(
    @Arg("id", () => ID, { description: "Its global id." }) id: string,
    @Ctx() context: OperationContext,
  ): Promise<Organization | null> {
    const copy = await context.copy();
    return copy && organizationEdge(context, crmIdIn(id, "Organization", copy.copyId));
  }

  @FieldResolver(() => CrmUser, {
    nullable: true,
    description: "The CRM user who owns it; null where the CRM names none that is known.",
  })
  owner(@Root() { links }: Organization, @Ctx() context: OperationContext): Promise<CrmUser | null> {
    return userEdge(context, links.owner);
  }

  @FieldResolver(() => [Person], { description: "Those who are matched to a recorded meeting; by name." })
  async persons(
    @Root() { links }: Organization,
    @Arg("first", () => Int, { nullable: true, defaultValue: 20, description: "How many at most, from 1 to 50." })
    first: number | null,
    @Ctx() context: OperationContext,
  ): Promise<Person[]> {
    const key = { id: links.organization, first: nestedSize(first ?? 20) };
    return persons(context, await context.loaders.personsOf.load(key));
  }

  @FieldResolver(() => [Deal], { description: "Newest change first." })
  async openDeals(
    @Root() { links }: Organization,
    @Arg("first", () => Int, { nullable: true, defaultValue: 5, description: "How many at most, from 1 to 50." }) first:
      | number
      | null,
    @Ctx() context: OperationContext,
  ): Promise<Deal[]> {
    const key = { id: links.organization, first: nestedSize(first) };
    return deals(context, await context.loaders.openDealsOf.ORGANIZATION.load(key));
  }

  @FieldResolver(() => [Activity], { description: "Done activities, newest first." })
  async recentActivities(
    @Root() { links }: Organization,
    @Arg("first", () => Int, { nullable: true, defaultValue: 5, description: "How many at most, from 1 to 50." }) first:
      | number
      | null,
    @Ctx() { loaders }: OperationContext,
  ): Promise<Activity[]> {
    const key = { id: links.organization, first: nestedSize(first) };
    return (await loaders.recentActivities.ORGANIZATION.load(key)).map(presentActivity);
  }

  @FieldResolver(() => [Note], { description: "Newest first." })
  async recentNotes(
    @Root() { links }: Organization,
    @Arg("first", () => Int, { nullable: true, defaultValue: 5, description: "How many at most, from 1 to 50." }) first:
      | number
      | null,
    @Ctx() { loaders }: OperationContext,
  ): Promise<Note[]> {
    const key = { id: links.organization, first: nestedSize(first) };
    return (await loaders.recentNotes.ORGANIZATION.load(key)).map(presentNote);
  }
}
