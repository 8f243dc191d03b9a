import { GraphQLError } from "graphql";

/** The document or its variables cannot be used as they are: the client's mistake, said clearly. */
export function badInput(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: "BAD_USER_INPUT" } });
}

const MAX_PAGE = 100;
const MAX_NESTED = 50;

/** `first` of a page; null is the client's way of not saying. @throws GraphQLError BAD_USER_INPUT */
export const pageSize = (first: number | null) => within(first ?? 20, MAX_PAGE);

/** `first` of a list inside a record: bounded more tightly, because it is multiplied by its parents. */
export const nestedSize = (first: number | null) => within(first ?? 5, MAX_NESTED);

function within(first: number, most: number): number {
  if (first < 1 || first > most) throw badInput(`first must be from 1 to ${most}.`);
  return first;
}
