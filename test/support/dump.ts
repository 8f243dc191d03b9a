import type { TestDatabase } from "./database";

export interface DumpedRow {
  table: string;
  /** The row as JSON, and after it each bytea column with its printable bytes as they are. */
  text: string;
}

interface Column {
  table: string;
  bytea: string[];
}

const TABLES = `
  SELECT format('%I.%I', n.nspname, c.relname) AS table,
    coalesce(array_agg(quote_ident(a.attname)) FILTER (WHERE a.atttypid = 'bytea'::regtype), '{}')::text[] AS bytea
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  WHERE n.nspname IN ('public', 'graphile_worker') AND c.relkind = 'r'
  GROUP BY 1 ORDER BY 1`;

/** Every row of every table, the job queue's too, in an order that depends on the rows alone. */
export async function dumpDatabase(database: Pick<TestDatabase, "query">): Promise<DumpedRow[]> {
  const tables = await database.query<Column>(TABLES);
  const selects = tables.map(({ table, bytea }) => {
    const texts = ["to_jsonb(t)::text", ...bytea.map((column) => `encode(t.${column}, 'escape')`)];
    return `SELECT '${table}' AS "table", concat_ws(' ', ${texts.join(", ")}) AS text FROM ${table} t`;
  });
  return database.query<DumpedRow>(`${selects.join(" UNION ALL ")} ORDER BY 1, 2`);
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
