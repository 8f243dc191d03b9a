import type { EntityManager, ObjectLiteral, ObjectType } from "typeorm";
import { columnsOf } from "./entity-columns";

/** The rows of one statement. TypeORM answers UPDATE and DELETE with a pair of rows and count; here it is rows alike. */
export async function rows<T>(manager: EntityManager, sql: string, parameters: unknown[] = []): Promise<T[]> {
  const result: unknown = await manager.query(sql, parameters);
  if (!Array.isArray(result)) return [];
  const isPair = result.length === 2 && Array.isArray(result[0]) && typeof result[1] === "number";
  return (isPair ? result[0] : result) as T[];
}

/**
 * Rows as JSON text for `jsonb_to_recordset`. PostgreSQL's jsonb refuses NUL and half surrogate pairs, which a CRM's
 * text may hold: they become the replacement character rather than failing a whole page.
 */
export function jsonRows(values: readonly unknown[]): string {
  const json = JSON.stringify(values);
  if (!json.includes("\\u0000") && !json.includes("\\ud")) return json;
  return json.replace(/(?<!\\)((?:\\\\)*)\\u(?:0000|d[89a-f][0-9a-f]{2})/g, "$1\ufffd");
}

/** Rows of an entity's table (`SELECT t.*`) as that entity's properties; other selected columns keep their names. */
export async function entityRows<T extends ObjectLiteral, Extra = unknown>(
  manager: EntityManager,
  entity: ObjectType<T>,
  sql: string,
  parameters: unknown[],
): Promise<(T & Extra)[]> {
  const { properties } = columnsOf(manager.connection.getMetadata(entity));
  const found = await rows<Record<string, unknown>>(manager, sql, parameters);
  return found.map((row) => {
    const properly: Record<string, unknown> = {};
    for (const name in row) properly[properties.get(name) ?? name] = row[name];
    return properly as T & Extra;
  });
}
