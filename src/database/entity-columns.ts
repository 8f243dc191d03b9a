import type { EntityMetadata } from "typeorm";

/** What the rows of an entity's table are read by. */
export interface EntityColumns {
  /** The property of a column, and of what {@link asText} names. */
  properties: ReadonlyMap<string, string>;
  instants: ReadonlySet<string>;
  decimals: readonly string[];
}

/** What the text of a decimal is selected as beside it, where the decimal itself would come as a float. */
export const asText = (decimal: string) => `${decimal} as text`;

const known = new WeakMap<EntityMetadata, EntityColumns>();

export function columnsOf(metadata: EntityMetadata): EntityColumns {
  const found = known.get(metadata);
  if (found) return found;
  const named = (type: string) =>
    metadata.columns.filter((column) => column.type === type).map(({ databaseName }) => databaseName);
  const properties = new Map(metadata.columns.map(({ databaseName, propertyName }) => [databaseName, propertyName]));
  const decimals = named("numeric");
  for (const name of decimals) properties.set(asText(name), properties.get(name) ?? name);
  const columns = { properties, instants: new Set(named("timestamptz")), decimals };
  known.set(metadata, columns);
  return columns;
}
