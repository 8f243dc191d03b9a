import { LRUCache } from "lru-cache";
import type { DataSource, EntityManager, EntityMetadata, ObjectLiteral, ObjectType } from "typeorm";
import type { Secret } from "../platform/keyring";
import { ACROSS_TENANTS_ROLE } from "./application-role";
import { reachOf } from "./cluster";
import { appliedMigrations, type DatabaseOptions, whileOpen } from "./data-source";
import { heldUpAtDeadline, isNodeAway, NoTablesError } from "./errors";
import { JointReads } from "./joint-reads";
import { entityOf, type Row, rowLayoutOf, type Shape } from "./rows";
import { prepared } from "./session";
import { SESSION_SHARES, SessionTurns } from "./session-limits";
import { type SessionParts, Sessions } from "./sessions";

/** TypeORM's calls on a single table; each is one statement. */
type Typed = Pick<
  EntityManager,
  "findBy" | "findOne" | "findOneBy" | "findOneByOrFail" | "existsBy" | "insert" | "update" | "delete" | "upsert"
>;

/**
 * What code may do with one tenant's data. Whatever holds a scope got it from {@link Database}, for this tenant.
 * Outside a transaction each statement stands alone.
 */
export interface TenantScope {
  readonly tenantId: number;
  /**
   * The rows of a statement, whose columns the shape says: it is both their type and what they are compared with. An
   * operation's read with a shape travels with what else is read at the same moment, as one statement.
   */
  readonly rows: {
    <T>(sql: string, parameters: readonly unknown[], shape: Shape<T>): Promise<T[]>;
    (sql: string, parameters?: readonly unknown[]): Promise<Row[]>;
  };
  /** `rows` of a statement that finds them by keys, whatever the values, and names its columns: planned once in a session, on one server. */
  readonly keyed: TenantScope["rows"];
  /** Rows of an entity's table (`SELECT t.*`) as that entity's properties, joined likewise. Other columns keep their names, and need a shape. */
  readonly entities: {
    <T extends ObjectLiteral>(entity: ObjectType<T>, sql: string, parameters: readonly unknown[]): Promise<T[]>;
    <T extends ObjectLiteral, Extra>(
      entity: ObjectType<T>,
      sql: string,
      parameters: readonly unknown[],
      extra: Shape<Extra>,
    ): Promise<(T & Extra)[]>;
  };
  /** The same for a statement on a single table that TypeORM can write. */
  readonly typed: <T>(call: (orm: Typed) => Promise<T>) => Promise<T>;
  /** What is known of an entity's table, or by the table's name, for statements that are the same for several. */
  readonly metadata: (entity: ObjectType<ObjectLiteral> | string) => EntityMetadata;
  /** Begun within a transaction, it is that one. */
  readonly transaction: <T>(work: (scope: TenantScope) => Promise<T>) => Promise<T>;
  /** A piece of work, and the read that it begins with, from whose rows others of its statement may take ids; null: it travels alone. */
  readonly within: JointReads["within"];
  /** Done once the transaction of this scope is committed, and never where it failed; at once where there is none. */
  readonly afterCommit: (work: () => void) => void;
}

/** A synced copy within its tenant: the two lead the key of every synced row. */
export interface CopyScope extends TenantScope {
  readonly copyId: number;
}

/**
 * Tenants whose ids a process remembers, for ten minutes or until it listens anew: a standby or backup that takes over may not know them.
 * Not by `max`, for which room is made at once: 40 ms and 4 MB of each process.
 */
const KNOWN = { maxSize: 100_000, sizeCalculation: () => 1, ttl: 600_000, noUpdateTTL: true };

/**
 * The only way to tenant data: everything that reads or writes it takes a scope, and scopes are made here. A scope's
 * sessions are set to its tenant, and PostgreSQL shows and takes no other tenant's rows in them (decision 0042).
 */
export class Database {
  readonly #ids = new LRUCache<string, Promise<number>>(KNOWN);
  readonly #parts: SessionParts;
  readonly #ofNobody: Sessions;
  readonly #acrossTenants: Sessions;

  /** @param options `observe` takes note of each statement; `reach`: see {@link reachOf}; `turns`: who gets a session */
  constructor(dataSource: DataSource, options: Partial<Omit<SessionParts, "dataSource">> = {}) {
    const turns = new SessionTurns(SESSION_SHARES);
    this.#parts = { dataSource, turns, observe: (_text, run) => run(), reach: "session", ...options };
    this.#ofNobody = new Sessions(this.#parts, null);
    this.#acrossTenants = new Sessions(this.#parts, null, undefined, ACROSS_TENANTS_ROLE);
  }

  /** @param signal for reads: calls them off, @throws DeadlineError from the one that runs then, and from each that comes later */
  tenant(tenantId: number, signal?: AbortSignal): TenantScope {
    const sessions = new Sessions(this.#parts, tenantId, signal);
    const joint = signal && new JointReads((...read) => sessions.rows(...read), this.#parts.reach === "transaction");
    return scopeOf(tenantId, sessions, joint ?? null);
  }

  /**
   * One statement across tenants, for work that begins with none: finding what is to be done. Whatever is done about it
   * enters by its tenant. Never for an answer to anyone.
   */
  acrossTenants<T>(sql: string, parameters: readonly unknown[], shape: Shape<T>): Promise<T[]>;
  acrossTenants(sql: string, parameters?: readonly unknown[]): Promise<Row[]>;
  acrossTenants<T>(sql: string, parameters: readonly unknown[] = [], shape?: Shape<T>): Promise<T[]> {
    return this.#acrossTenants.alone((session) => session.rows(sql, parameters, shape));
  }

  /** The rows of what is nobody's and every session may see. No tenant's row is in sight. */
  rows<T>(sql: string, shape: Shape<T>): Promise<T[]> {
    return this.#ofNobody.rows(sql, [], shape);
  }

  /** What is known of each entity's table. */
  get tables(): readonly EntityMetadata[] {
    return this.#parts.dataSource.entityMetadatas;
  }

  /** Whether the database answers, and the service has its rights there, in the session that is no tenant's turn; also where it takes no writes. */
  async answers(): Promise<void> {
    await this.#parts.dataSource.query("SELECT 1 FROM tenant LIMIT 1");
  }

  /** The id by which the tenant's rows are kept; given at first sight, and the same for ever. @throws HeldUpError */
  idOf(externalId: string): Promise<number> {
    const known = this.#ids.get(externalId) ?? this.#readId(externalId).catch(heldUpAtDeadline);
    this.#ids.set(externalId, known);
    known.catch(() => this.#ids.delete(externalId));
    return known;
  }

  /** Another database may have taken over. */
  forgetIds = () => this.#ids.clear();

  async #readId(externalId: string): Promise<number> {
    // No operation has begun yet, whose deadline it would have. One that is called off may be made all the same, and is found then.
    const sessions = new Sessions(this.#parts, null, AbortSignal.timeout(KNOWN_WITHIN_MS), ACROSS_TENANTS_ROLE);
    // Looked for first, so that a known tenant costs no write; and last, where another process makes it at this moment.
    for (const sql of [FIND_TENANT, MAKE_TENANT, FIND_TENANT]) {
      const ask = () => sessions.alone((session) => session.rows<{ id: number }>(sql, [externalId], { id: "number" }));
      // A tenant is made on every node. A session finds by failing that a node was away since it last asked it.
      const [tenant] = await ask().catch((error: unknown) => (isNodeAway(error) ? ask() : Promise.reject(error)));
      if (tenant) return tenant.id;
    }
    throw new Error("a tenant that was just made is missing");
  }
}

const KNOWN_WITHIN_MS = 10_000;
const FIND_TENANT = "SELECT id FROM tenant WHERE external_id = $1";
const MAKE_TENANT = "INSERT INTO tenant (external_id) VALUES ($1) ON CONFLICT (external_id) DO NOTHING RETURNING id";

/** How a scope's statements come to a session: each by itself, or all in that of the transaction. */
type Asking = Pick<Sessions, "rows" | "alone">;

function scopeOf(tenantId: number, sessions: Sessions, joint: JointReads | null): TenantScope {
  const { dataSource, reach } = sessions.parts;
  const verbs = verbsOf(sessions, dataSource, joint);
  return {
    ...verbs,
    keyed: verbs.rows,
    tenantId,
    async transaction(work) {
      const after: (() => void)[] = [];
      const done = await sessions.transaction((session) => {
        const asking: Asking = { rows: (...statement) => session.rows(...statement), alone: (ask) => ask(session) };
        const scope: TenantScope = {
          ...verbsOf(asking, dataSource, null),
          keyed: <T>(sql: string, parameters: readonly unknown[] = [], shape?: Shape<T>) =>
            session.rows(sql, parameters, shape, reach === "session" ? prepared.nameOf(sql) : null),
          tenantId,
          transaction: (more) => more(scope),
          afterCommit: (then) => void after.push(then),
        };
        return work(scope);
      });
      for (const then of after) then();
      return done;
    },
    afterCommit: (then) => then(),
  };
}

type Verbs = Pick<TenantScope, "rows" | "entities" | "typed" | "metadata" | "within">;

/** @param joint an operation's reads, which travel together; null: each statement travels alone */
function verbsOf(asking: Asking, dataSource: DataSource, joint: JointReads | null): Verbs {
  const metadata: Verbs["metadata"] = (entity) => dataSource.getMetadata(entity);
  return {
    metadata,
    async rows<T>(sql: string, parameters: readonly unknown[] = [], shape?: Shape<T>) {
      if (!joint || !shape) return asking.rows(sql, parameters, shape);
      return (await joint.rows({ sql, parameters, layout: rowLayoutOf(shape) })) as T[];
    },
    async entities<T extends ObjectLiteral, Extra>(
      entity: ObjectType<T>,
      sql: string,
      parameters: readonly unknown[],
      extra?: Shape<Extra>,
    ) {
      const table = metadata(entity);
      const found = joint
        ? joint.rows({ sql, parameters, layout: rowLayoutOf(extra, table) })
        : asking.rows<Row>(sql, parameters).then((rows) => rows.map((row) => entityOf(row, table)));
      return (await found) as (T & Extra)[];
    },
    within: (work, hear) => joint?.within(work, hear) ?? { done: work(), read: null },
    typed: (call) => asking.alone((session) => call(session.manager)),
  };
}

/** The database without a service behind it, for work that ends. @throws NoTablesError, and what `openDatabase` throws */
export function withDatabase<T>(
  { databaseUrl }: { databaseUrl: Secret | null },
  options: Omit<DatabaseOptions, "url">,
  work: (database: Database, url: Secret) => Promise<T>,
): Promise<T> {
  return whileOpen(databaseUrl, options, async ({ url, dataSource }) => {
    const { names } = await appliedMigrations((sql) => dataSource.query(sql));
    if (names.length === 0)
      throw new NoTablesError("This database has no tables of the service: check DATABASE_URL, or run migrate.");
    return work(new Database(dataSource, { reach: await reachOf(dataSource) }), url);
  });
}
