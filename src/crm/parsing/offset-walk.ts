import { idsOfRejected, type Page } from "./page";

/**
 * Where a walk by offset stands, as text: the next offset, and the last id before it. A row that vanishes moves all that
 * follow to the front, past a reader who goes on at the offset; so it begins one row earlier, at the row it had last.
 */
export interface Place {
  start: number;
  /** NaN at the beginning. */
  lastId: number;
}

export function placeOf(cursor: string | null): Place {
  const [start = 0, lastId] = (cursor ?? "").split(":");
  return { start: Math.max(0, Number(start) - 1), lastId: Number(lastId) };
}

/** Whether rows that nobody has read may stand before this page, of a list by ascending id. */
export function hasSkipped({ start, lastId }: Place, page: Page<{ id: number }>): boolean {
  return start > 0 && Math.min(...idsOf(page)) > lastId;
}

/** The page without the row that the one before ended with, and the place after it. */
export function goneOn<T extends { id: number }>({ lastId }: Place, page: Page<T>): Page<T> {
  const last = Math.max(lastId || 0, ...idsOf(page));
  return {
    records: page.records.filter(({ id }) => id !== lastId),
    rejected: page.rejected.filter(({ key }) => key !== String(lastId)),
    next: page.next && `${page.next}:${last}`,
  };
}

export function idsOf({ records, rejected }: Page<{ id: number }>): number[] {
  return [...records.map(({ id }) => id), ...idsOfRejected(rejected)];
}
