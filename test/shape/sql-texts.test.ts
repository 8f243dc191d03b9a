import { readFileSync } from "node:fs";
import { join } from "node:path";
import { UP } from "../../src/database/migrations/0001-initial";
import { isNode, type Node, nodesOf, parse, sourceFiles } from "../support/syntax";

/** Every statement that touches a tenant's table says whose rows it means: so it goes to one shard, and to no other. */

const OF_TENANTS = [...UP.matchAll(/^CREATE TABLE (\w+) \(\n {2}tenant_id /gm)].map(([, table]) => table);

/** Work that begins with no tenant, through `acrossTenants`; each gives the tenants of what it finds, or counts. */
const ACROSS_TENANTS = [
  ["database/upsert.ts", "SELECT DISTINCT tenant_id"],
  // Says of rows of that, and of one tenant's, which go.
  ["sync/run-history.ts", "t.finished_at IS NOT NULL"],
  ["briefing/quiet/boundaries.ts", "SELECT s.holds_from AS at"],
  ["briefing/quiet/boundaries.ts", 'SELECT tenant_id AS "tenantId"'],
  // Of both of them.
  ["briefing/quiet/boundaries.ts", "s.generation = coalesce((SELECT j.generation"],
  ["briefing/quiet/rejudging.ts", "WITH rejudged"],
  ["connections/grants.ts", "WITH idle"],
  ["connections/disconnecting.ts", 'SELECT c.tenant_id AS "tenantId"'],
  ["connections/copies.ts", "WITH retired"],
  ["connections/credentials.ts", "SELECT tenant_id FROM credential"],
  ["sync/schedule.ts", "WITH late"],
  ["sync/schedule.ts", "WITH due"],
  ["sync/schedule-rows.ts", "WITH soon"],
  // What the one above and the look-ups of one tenant share.
  ["sync/schedule-rows.ts", "m.refreshed_at IS NULL"],
  ["sync/schedule-rows.ts", "SELECT extract(epoch FROM now() - min(l.watermark + CASE"],
  ["writeback/look-ups.ts", "SELECT (SELECT count(*)"],
  ["writeback/look-ups.ts", "WITH unknown"],
  ["writeback/look-ups.ts", "SELECT tenant_id"],
  ["writeback/look-ups.ts", "SELECT DISTINCT tenant_id"],
  // The join of the two above, which a look-up of one tenant shares.
  ["writeback/look-ups.ts", "JOIN connection c"],
  ["operator/checks.ts", "SELECT"],
  ["operator/checks.ts", "SELECT EXISTS (SELECT 1 FROM connection)"],
] as const;

/** The literals of a file as SQL would see them: a constant of the same file stands for itself, the rest as `${source}`. */
class Texts {
  readonly all: string[] = [];
  readonly #source: Buffer;
  readonly #base: number;
  readonly #constants = new Map<string, Node>();

  constructor(path: string) {
    this.#source = Buffer.from(readFileSync(path, "utf8").trimEnd());
    const module = parse(this.#source.toString());
    // The parser counts bytes on from the file before, and its module ends with the last token.
    this.#base = module.span.end - this.#source.length;
    const nodes = [...nodesOf(module.body)];
    for (const { type, id, init } of nodes) {
      if (type === "VariableDeclarator" && isNode(id) && id.type === "Identifier" && isNode(init))
        this.#constants.set(String(id.value), init);
    }
    for (const node of nodes) {
      if (node.type === "TemplateLiteral" || node.type === "StringLiteral") this.all.push(this.#textOf(node));
    }
  }

  #textOf(node: Node, depth = 0): string {
    if (node.type === "StringLiteral") return String(node.value);
    if (node.type === "Identifier" && depth < 5) {
      const constant = this.#constants.get(String(node.value));
      if (constant && ["StringLiteral", "TemplateLiteral"].includes(constant.type))
        return this.#textOf(constant, depth + 1);
    }
    if (node.type !== "TemplateLiteral") return `\${${this.#sourceOf(node)}}`;
    const quasis = node.quasis as { cooked: string }[];
    const expressions = node.expressions as Node[];
    return quasis
      .map(({ cooked }, index) => {
        const expression = expressions[index];
        return cooked + (expression ? this.#textOf(expression, depth) : "");
      })
      .join("");
  }

  #sourceOf({ span }: Node): string {
    return this.#source.subarray(span.start - this.#base, span.end - this.#base).toString();
  }
}

const TABLE =
  /\b(FROM|JOIN|UPDATE|INTO)\s+(\w+|\$\{[^}]*\})(?:\s+(?:AS\s+)?(?!(?:WHERE|SET|ON|ORDER|GROUP|LIMIT|CROSS|LEFT|JOIN|USING|FOR|UNION|SELECT|VALUES|AS)\b)([a-z_]\w*))?/g;

/** A table by a name that only the running code knows; rows that say their tenant themselves are none. */
const DYNAMIC = /^\$\{(?!rowsOf|rowsById).*(table|entity)/i;

/** The tables of a text for which it does not say, by its value, whose rows it means; each once for each time it is read. */
function unbound(text: string): string[] {
  const found = [...text.matchAll(TABLE)].filter(
    ([, , table = ""]) => OF_TENANTS.includes(table) || DYNAMIC.test(table),
  );
  const read = new Map<string, string[]>();
  const missing: string[] = [];
  for (const { 0: whole, 1: verb, 3: alias = "", index } of found) {
    if (verb === "INTO") missing.push(...(/^[^(]*\(tenant_id\b/.test(text.slice(index)) ? [] : [whole]));
    else read.set(alias, [...(read.get(alias) ?? []), whole]);
  }
  for (const [alias, tables] of read) {
    const said = text.match(new RegExp(`(?<![.\\w])${alias && `${alias}\\.`}tenant_id = \\$\\d`, "g")) ?? [];
    if (said.length < tables.length) missing.push(...tables);
  }
  return missing;
}

const isAcross = (file: string, text: string) =>
  ACROSS_TENANTS.some(([path, begins]) => path === file && text.trim().startsWith(begins));

const files = sourceFiles().filter((file) => !file.startsWith("database/migrations"));

test("each text that touches a tenant's table names tenant_id for it", () => {
  expect(OF_TENANTS.length).toBeGreaterThan(20);
  const offenders = files.flatMap((file) =>
    new Texts(join("src", file)).all
      .filter((text) => !isAcross(file, text))
      .flatMap((text) =>
        unbound(text).map((table) => `${file}: ${table} in ${text.replace(/\s+/g, " ").slice(0, 120)}`),
      ),
  );
  expect(offenders).toEqual([]);
});

test("what is inserted by a SELECT carries ON CONFLICT or RETURNING: without one, Citus copies rows past the policies", () => {
  const inserts = files
    .flatMap((file) => new Texts(join("src", file)).all)
    .filter((text) => /INSERT INTO[^;]*SELECT/s.test(text));
  expect(inserts.length).toBeGreaterThan(8);
  expect(inserts.filter((text) => !/ON CONFLICT|RETURNING/.test(text.slice(text.lastIndexOf("INSERT"))))).toEqual([]);
});

test("no change stands before an INSERT of rows of tenants' tables: on Citus the nodes would not find its table", () => {
  const before = /^\s*WITH\b.*\b(?:DELETE FROM|UPDATE|INSERT INTO)\b.*\)\s*INSERT INTO\b(.*)/s;
  const refused = files
    .flatMap((file) => new Texts(join("src", file)).all)
    .filter((text) =>
      [...(before.exec(text)?.[1] ?? "").matchAll(TABLE)].some(([, , table = ""]) => OF_TENANTS.includes(table)),
    );
  expect(refused).toEqual([]);
});

test("what ON CONFLICT does hangs on no clock, no arithmetic of instants and, after a SELECT, no parameter: Citus refuses these", () => {
  const conflicts = files
    .flatMap((file) => new Texts(join("src", file)).all)
    .filter((text) => text.includes("ON CONFLICT"));
  expect(conflicts.length).toBeGreaterThan(8);
  const refused = conflicts.filter((text) => {
    const [does = ""] = text.replace(/.*\bON CONFLICT\b/s, "").split(/\bRETURNING\b|\)\s+SELECT\b/);
    if (/\b(interval|make_interval|now|random|to_char|date_trunc)\b/i.test(does)) return true;
    return /\$\d/.test(does) && !/\bVALUES\b.*\bON CONFLICT\b/s.test(text);
  });
  expect(refused).toEqual([]);
});

/** The text without the queries in it, whose WHERE would be taken for its own; other parentheses become braces. */
function withoutQueries(text: string): string {
  const flat = text
    .replace(/\$\{[^}]*\}/g, "")
    .replace(/\(([^()]*)\)/g, (_, inner: string) => (/^\s*SELECT\b/.test(inner) ? "" : `{${inner}}`));
  return flat === text ? text : withoutQueries(flat);
}

// Seen red: a slice of what a query found, behind its WHERE.
test("an UPDATE sets nothing to a part of an array: Citus ends all its sessions over it", () => {
  const updates = files
    .flatMap((file) => new Texts(join("src", file)).all)
    .flatMap((text) => withoutQueries(text).match(/\bUPDATE\b[^;]*?\bSET\b.*?(?=\bWHERE\b|$)/gs) ?? []);
  expect(updates.length).toBeGreaterThan(20);
  const values = updates.map((text) => text.replace(/'[^']*'|\$\{[^}]*\}|::\w+\[\]|\bARRAY\[/g, ""));
  expect(values.filter((text) => /\[[^\]]*\]/.test(text))).toEqual([]);
});

// Seen red: the time of a receipt that a clock far ahead had stamped.
test("nothing is set to a CASE or COALESCE that looks at the clock: Citus refuses it", () => {
  const texts = files.flatMap((file) => new Texts(join("src", file)).all);
  const set = texts.flatMap((text) => text.match(/[\w}] = (?:CASE\b.*?\bEND\b|coalesce\([^)]*\))/gis) ?? []);
  expect(set.length).toBeGreaterThan(8);
  expect(set.filter((text) => /\b(now|\w+_timestamp)\(|\bcurrent_/i.test(text))).toEqual([]);
});

/** A condition of values alone: `AND $4`, `AND NOT $4`, `AND $4::int > 0`. */
const OF_VALUES =
  /\b(?:WHERE|AND)\s+(?:NOT\s+)?\{?\$\d+(?:::\w+)?(?:\s*[-+<>=]+\s*(?:\$\d+(?:::\w+)?|\d+))*\s*(?=\bAND\b|\bRETURNING\b|\}|$)/;

const CHANGES = /\b(?:UPDATE (?!SET\b)|DELETE FROM |INSERT INTO )\w.*?(?=\b(?:UPDATE|DELETE|INSERT|SELECT)\b|$)/gs;

/** Whether a text changes more than one table, and its values alone may say that one of them stays as it is. */
function isEmptied(text: string): boolean {
  // What another file gives as the first part is a change as well.
  const flat = withoutQueries(text.replace(/\bWITH \$\{\w+\}/, "WITH given AS (DELETE FROM given)"));
  const changes = flat.match(CHANGES) ?? [];
  if (changes.length < 2) return false;
  const others = changes.filter((change) => !change.startsWith("INSERT"));
  return others.some((change) => OF_VALUES.test(change.replace(/BETWEEN \$\d+ AND/g, "")));
}

// Seen red: the counts of a piece that changed nothing. Its request was never counted.
test("where a statement changes two tables, no values of it alone say that one stays as it is: Citus then does nothing of it, or fails", () => {
  const texts = files.flatMap((file) => new Texts(join("src", file)).all);
  expect(texts.filter(isEmptied)).toEqual([]);
  const counted = `WITH \${COUNTED} UPDATE sync_run SET b = b + $6`;
  for (const [ends, is] of [
    ["WHERE tenant_id = $1 AND $6::int + $8::int > 0 AND NOT EXISTS (SELECT 1)", true],
    ["WHERE $6 AND tenant_id = $1", true],
    ["WHERE tenant_id = $1 AND NOT $6::boolean RETURNING 1", true],
    ["WHERE tenant_id = $1 AND a > $6 AND b = ANY ($3) AND (c BETWEEN $4 AND $6)", false],
  ] as const)
    expect([ends, isEmptied(`${counted} ${ends}`)]).toEqual([ends, is]);
});

test("a text that forgets its tenant is found, however it is written", () => {
  const forgotten = [
    "SELECT 1 FROM deal WHERE copy_id = $1",
    "SELECT 1 FROM deal d JOIN person p ON p.crm_id = d.person_id WHERE d.tenant_id = $1",
    "SELECT 1 FROM deal d JOIN person p ON p.tenant_id = d.tenant_id WHERE d.tenant_id = $1",
    "SELECT 1 FROM deal d WHERE d.tenant_id = $1 UNION SELECT 1 FROM note d WHERE d.copy_id = $2",
    "SELECT 1 FROM deal WHERE tenant_id = $1 AND EXISTS (SELECT 1 FROM note WHERE deal_id = crm_id)",
    `DELETE FROM \${table} WHERE copy_id = $1`,
    "INSERT INTO note (copy_id, crm_id) VALUES ($1, $2)",
    "UPDATE deal SET title = $1 WHERE crm_id = $2",
  ];
  for (const text of forgotten) expect([text, unbound(text)]).not.toEqual([text, []]);
});
