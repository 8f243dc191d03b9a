import { types } from "pg";
import { DataSource, DefaultNamingStrategy, type EntityTarget, type ObjectLiteral, type Table } from "typeorm";
import type { Logger } from "../platform/logger";
import type { Secret } from "../platform/secret";
import { migrations } from "./migrations";
import { SESSION_LIMITS, type SessionLimits, withLimits } from "./session-limits";
import type { SessionShares } from "./session-turns";

const CONNECT_TIMEOUT_MS = 10_000;
/** All but one are shared out by turns (`SESSION_SHARES`); the last is for whether the database answers at all. */
const POOL_SIZE = 20;

/** What operations and jobs may hold of a process's sessions (decision 0058). */
export const SESSION_SHARES: SessionShares = {
  sessions: POOL_SIZE - 1,
  most: { read: 15, work: 12, background: 10 },
  backgroundBeside: 3,
  ofTenant: 6,
  unreadOfTenant: 4,
};

const OID_INT8 = 20;
const OID_INT8_ARRAY = 1016;
const OID_DATE = 1082;

/** snake_case columns, and PostgreSQL's own name for a primary key, so that entities and hand-written SQL agree. */
class SnakeCaseNames extends DefaultNamingStrategy {
  override columnName(propertyName: string, customName: string | undefined): string {
    return customName || propertyName.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  }

  override primaryKeyName(tableOrName: Table | string): string {
    return `${this.getTableName(tableOrName)}_pkey`;
  }
}

export interface DatabaseOptions {
  url: Secret;
  entities: readonly EntityTarget<ObjectLiteral>[];
  logger?: Logger;
  limits?: SessionLimits;
}

/** The one pool of a process. Not yet connected: call `initialize`. */
export function createDataSource({ url, entities, logger, limits = SESSION_LIMITS.work }: DatabaseOptions): DataSource {
  return new DataSource({
    type: "postgres",
    url: withLimits(url, limits).reveal(),
    entities: entities.map((entity) => entity as never),
    migrations,
    migrationsTableName: "migration",
    namingStrategy: new SnakeCaseNames(),
    synchronize: false,
    logging: false,
    installExtensions: false,
    poolSize: POOL_SIZE,
    connectTimeoutMS: CONNECT_TIMEOUT_MS,
    applicationName: "crm-connection",
    poolErrorHandler: (error: unknown) => logger?.warn({ err: error }, "an idle database connection ended"),
    extra: { types: { getTypeParser }, keepAlive: true },
  });
}

/**
 * CRM ids are kept as bigint and are whole numbers that JavaScript holds exactly (the parser of the CRM's records sees
 * to it). A calendar day stays text: as a Date it would move with the time zone of the process.
 */
function getTypeParser(oid: number, format?: "text" | "binary"): (value: string) => unknown {
  if (oid === OID_INT8) return Number;
  if (oid === OID_INT8_ARRAY) return (value) => value.slice(1, -1).split(",").filter(Boolean).map(Number);
  if (oid === OID_DATE) return (value) => value;
  return types.getTypeParser(oid, format as "text");
}
