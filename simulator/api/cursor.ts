import type { Place, Sort } from "../model/views";
import { invalid } from "./answer";

/** A cursor is the position of the last record given: it belongs to the order it was made in. */
export function cursorAt(place: Place, sort: Sort): string {
  const position = { field: sort.field, fieldValue: place.value, sortDirection: sort.direction, id: place.id };
  return Buffer.from(JSON.stringify(position)).toString("base64url");
}

export function placeOf(cursor: string, sort: Sort): Place {
  const position = decoded(cursor);
  const value = position?.fieldValue;
  const isPlace = (typeof value === "string" || typeof value === "number") && Number.isInteger(position?.id);
  if (!isPlace || position?.field !== sort.field || position.sortDirection !== sort.direction) {
    throw invalid("cursor: is not a cursor of this list and order");
  }
  return { value, id: Number(position.id) };
}

function decoded(cursor: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
    return typeof value === "object" ? (value as Record<string, unknown> | null) : null;
  } catch {
    return null;
  }
}
