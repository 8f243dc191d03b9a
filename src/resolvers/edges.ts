import type { DealRow } from "../entities/deal";
import type { PersonRow } from "../entities/person";
import type { CrmUser } from "../schema/context-records";
import type { Deal, Organization, Person } from "../schema/records";
import type { OperationContext } from "./context";
import { presentDeal, presentOrganization, presentPerson, presentUser } from "./present";

/** From a CRM id to what is shown of it: null where there is none, or none that this tenant may read. */
export async function userEdge({ loaders }: OperationContext, id: number | null): Promise<CrmUser | null> {
  const row = id === null ? null : await loaders.user.load(id);
  return row && presentUser(row);
}

export async function dealEdge(context: OperationContext, id: number | null): Promise<Deal | null> {
  const row = id === null ? null : await context.loaders.deal.load(id);
  return row && presentDeal(row, await domainOf(context));
}

export async function personEdge(context: OperationContext, id: number | null): Promise<Person | null> {
  const row = id === null ? null : await context.loaders.person.load(id);
  return row && presentPerson(row, await domainOf(context));
}

export async function organizationEdge(context: OperationContext, id: number | null): Promise<Organization | null> {
  const row = id === null ? null : await context.loaders.organization.load(id);
  return row && presentOrganization(row, await domainOf(context));
}

const domainOf = async (context: OperationContext) => (await context.connection())?.companyDomain ?? null;

export async function deals(context: OperationContext, rows: readonly DealRow[]): Promise<Deal[]> {
  const domain = await domainOf(context);
  return rows.map((row) => presentDeal(row, domain));
}

export async function persons(context: OperationContext, rows: readonly PersonRow[]): Promise<Person[]> {
  const domain = await domainOf(context);
  return rows.map((row) => presentPerson(row, domain));
}

/** Those of a list of ids that this tenant may read, in the order given. */
export async function loadAll<T>(load: (id: number) => Promise<T | null>, ids: readonly number[]): Promise<T[]> {
  const found = await Promise.all(ids.map(load));
  return found.filter((record) => record !== null);
}
