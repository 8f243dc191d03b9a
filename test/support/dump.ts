import type { TestDatabase } from "./database";

export interface DumpedRow {
  table: string;
  /** The row as JSON, and after it each bytea column with its printable bytes as they are. */
  text: string;
}

interface Column {
  table: string;
  bytea: string[];
  of_tenants: boolean;
}

const TABLES = `
  SELECT format('%I.%I', n.nspname, c.relname) AS table,
    coalesce(array_agg(quote_ident(a.attname)) FILTER (WHERE a.atttypid = 'bytea'::regtype), '{}')::text[] AS bytea,
    bool_or(n.nspname = 'public' AND a.attname = 'tenant_id') AS of_tenants
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  WHERE n.nspname IN ('public', 'graphile_worker') AND c.relkind = 'r'
  GROUP BY 1 ORDER BY 1`;

/** Every row of every table, the job queue's too, in an order that depends on the rows alone. */
export async function dumpDatabase(database: Pick<TestDatabase, "query">): Promise<DumpedRow[]> {
  const tables = await database.query<Column>(TABLES);
  const select = ({ table, bytea, of_tenants }: Column) => {
    const texts = ["to_jsonb(t)::text", ...bytea.map((column) => `encode(t.${column}, 'escape')`)];
    return `SELECT '${table}' AS "table", concat_ws(' ', ${texts.join(", ")}) AS text${of_tenants ? ", tenant_id" : ""} FROM ${table} t`;
  };
  // By themselves, those of tenants are united by the nodes of a cluster; with the others, all go to the coordinator first.
  const united = [true, false].map((isOfTenants) =>
    tables.filter(({ of_tenants }) => of_tenants === isOfTenants).map(select),
  );
  const found = await Promise.all(
    united.map((selects) =>
      database.query<DumpedRow>(`SELECT "table", text FROM (${selects.join(" UNION ALL ")}) rows ORDER BY 1, 2`),
    ),
  );
  return found.flat();
}

/**
 * The same without the audit trail and the tenants' names: what a refusal leaves as it was, apart from the record of the
 * refusal itself, and that its tenant is known from now on.
 */
export async function dumpState(database: Pick<TestDatabase, "query">): Promise<DumpedRow[]> {
  const dump = await dumpDatabase(database);
  return dump.filter(({ table }) => table !== "public.audit_event" && table !== "public.tenant");
}

/**
 * Which of the secrets are in the texts: as they are, inside a URL, in hexadecimal, or inside longer text that was
 * encoded in base64 at any of its three alignments.
 */
export function leaked(secrets: Iterable<string>, texts: Iterable<string>): string[] {
  const all = [...texts].join("\n");
  return [...new Set(secrets)].filter((secret) => formsOf(secret).some((form) => all.includes(form)));
}

function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret);
  const inner = [0, 1, 2].map((shift) => {
    const text = Buffer.concat([Buffer.alloc(shift), bytes])
      .toString("base64")
      .replace(/=+$/, "");
    // The first and last characters also hold bits of what stands before and after.
    return text.slice(shift === 0 ? 0 : shift + 1, -1);
  });
  const inUrls = inner.map((text) => text.replaceAll("+", "-").replaceAll("/", "_"));
  return [secret, encodeURIComponent(secret), bytes.toString("hex"), ...inner, ...inUrls];
}

/** Tables that name a copy and are the tenant's own history: its runs, and which meeting was matched on which copy. */
const HISTORY = ["sync_run", "meeting_match"];

/** How many rows of each table belong to a copy, its own row among them; tables without any are left out. */
export async function rowsOfCopy(
  database: Pick<TestDatabase, "query">,
  copyId: number,
): Promise<Record<string, number>> {
  const tables = await database.query<{ name: string }>(
    `SELECT table_name AS name FROM information_schema.columns
     WHERE table_schema = 'public' AND column_name = 'copy_id' AND table_name <> ALL ($1)`,
    [HISTORY],
  );
  const counts = tables.map(
    ({ name }) => `SELECT '${name}' AS name, count(*)::int AS n FROM ${name} WHERE copy_id = $1`,
  );
  counts.push("SELECT 'synced_copy', count(*)::int FROM synced_copy WHERE id = $1");
  const found = await database.query<{ name: string; n: number }>(counts.join(" UNION ALL "), [copyId]);
  return Object.fromEntries(found.filter(({ n }) => n > 0).map(({ name, n }) => [name, n]));
}
