import type { ComplexityEstimatorArgs } from "graphql-query-complexity";

/**
 * What a field costs, in objects of the answer; declared where the field is, where it is not what its type says already: a
 * page counts as its `first`, any other list as ten, a value as nothing.
 */

type Inner = Pick<ComplexityEstimatorArgs, "childComplexity">;

/** A list that may hold this many. */
export const asMany =
  (most: number) =>
  ({ childComplexity }: Inner): number =>
    most * (1 + childComplexity);

/** Text of a note may have 100 KB; a record's custom fields are large as well. */
export const LARGE_VALUE = 4;

/** A list that is read from the CRM while the caller waits. */
export const LIVE = (inner: Inner): number => 5_000 + asMany(10)(inner);

/** Judges all deals of the tenant: one in an operation. */
export const OF_ALL_DEALS = ({ childComplexity }: Inner): number => 30_000 + childComplexity;
