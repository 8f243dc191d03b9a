import { between, PAGE_DEFAULT, pageLimit, type Query, type Rules } from "./query";

export const pageRules: Rules = { start: between(0, 100_000_000), limit: pageLimit };

export interface Page<T> {
  items: readonly T[];
  pagination: { start: number; limit: number; more_items_in_collection: boolean; next_start?: number };
}

/** `next_start` is there only when more follows. */
export function pageOf<T>(all: readonly T[], query: Query): Page<T> {
  const start = Number(query.start ?? 0);
  const limit = Number(query.limit ?? PAGE_DEFAULT);
  const isMore = start + limit < all.length;
  const next = isMore ? { next_start: start + limit } : {};
  return {
    items: all.slice(start, start + limit),
    pagination: { start, limit, more_items_in_collection: isMore, ...next },
  };
}
