import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isNode, type Node, nodesOf, parse, sourceFiles } from "../support/syntax";

/** The database is asked through a scope's `rows`, `keyed`, `entities`, `typed` and `transaction`, or across tenants; and nothing of a library is changed for it. */

const MOST_FILES = 18;
const LONGEST_FILE = 250;

const named = (node: unknown): string => (isNode(node) ? String(node.value ?? "") : "");
const isFunction = (node: unknown): boolean => {
  if (!isNode(node)) return false;
  if (node.type === "ParenthesisExpression") return isFunction(node.expression);
  if (node.type === "ArrowFunctionExpression" || node.type === "FunctionExpression") return true;
  return node.type === "CallExpression" && memberOf(node.callee)?.name === "bind";
};

function memberOf(node: unknown): { object: Node; name: string } | null {
  if (!isNode(node) || node.type !== "MemberExpression" || !isNode(node.object)) return null;
  return { object: node.object, name: named(node.property) };
}

/** Ways to change what an object of somebody else does, while the program runs. */
const FORGING = new Set(["create", "defineProperty", "defineProperties", "setPrototypeOf"]);

function replacing(source: string): string[] {
  const found: string[] = [];
  for (const node of nodesOf(parse(source).body)) {
    if (node.type === "AssignmentExpression") {
      const target = memberOf(node.left);
      if (target && target.object.type !== "ThisExpression" && isFunction(node.right)) found.push(`${target.name} =`);
    }
    if (memberOf(node)?.name === "prototype") found.push("prototype");
    if (node.type !== "CallExpression") continue;
    const called = memberOf(node.callee);
    const holder = called && named(called.object);
    if ((holder === "Object" || holder === "Reflect") && FORGING.has(called?.name ?? ""))
      found.push(`${holder}.${called?.name}`);
    if (holder === "Object" && called?.name === "assign" && givesFunctions(node)) found.push("Object.assign");
  }
  return found;
}

/** Functions put into an object that was there before. */
function givesFunctions({ arguments: given }: Node): boolean {
  const [target, ...parts] = (given as { expression: Node }[]).map(({ expression }) => expression);
  if (!target || target.type === "ObjectExpression") return false;
  return parts.some(({ properties }) =>
    (Array.isArray(properties) ? properties : []).some(
      (property: Node) => property.type === "MethodProperty" || isFunction(property.value),
    ),
  );
}

test("methods of libraries replaced at run time: 0", () => {
  const found = sourceFiles().flatMap((file) =>
    replacing(readFileSync(join("src", file), "utf8")).map((what) => `${file}: ${what}`),
  );
  expect(found).toEqual([]);
});

test.each([
  "runner.query = async (text) => observe(text);",
  "runner.release = release.bind(other);",
  "dataSource.createQueryRunner = function () {};",
  "const bound = Object.create(dataSource, { createQueryRunner: { value: make } });",
  "Object.defineProperty(client, 'query', { value: ask });",
  "Pool.prototype.connect = connect;",
  "Object.setPrototypeOf(runner, mine);",
  "Object.assign(runner, { query: async () => [] });",
  "Object.assign(runner, { async query() {} });",
])("a replaced method is found: %s", (source) => {
  expect(replacing(source)).not.toEqual([]);
});

/** What makes a session, or a statement of TypeORM's that is not one of the typed calls. */
const OTHER_WAYS = new Set(["DataSource", "EntityManager", "QueryRunner", "Repository", "Client", "Pool"]);
const ASKING = new Set(["query", "createQueryBuilder", "createQueryRunner", "getRepository"]);
/** Of TypeORM, outside the entities: its types, and what typed calls are said with. */
const SPOKEN = new Set(["ObjectLiteral", "ObjectType", "Any", "LessThan", "LessThanOrEqual"]);

function otherWays(source: string, isEntity = false): string[] {
  const found: string[] = [];
  for (const node of nodesOf(parse(source).body)) {
    if (node.type === "ImportDeclaration") {
      const from = named(node.source);
      const names = (node.specifiers as Node[]).map(({ local }) => named(local));
      if (/^(pg|pg-.*|graphile-worker)(\/|$)/.test(from)) found.push(`import of ${from}`);
      const isForeign = (name: string) => (isEntity ? OTHER_WAYS.has(name) : !SPOKEN.has(name));
      if (/^typeorm(\/|$)/.test(from)) found.push(...names.filter(isForeign).map((name) => `${name} of TypeORM`));
    }
    const called = node.type === "CallExpression" ? memberOf(node.callee) : null;
    if (called && ASKING.has(called.name)) found.push(`.${called.name}()`);
  }
  return found;
}

test("outside the database's folder nothing asks in another way than a scope's, or across tenants", () => {
  const found = sourceFiles()
    .filter((file) => !file.startsWith("database/"))
    .flatMap((file) =>
      otherWays(readFileSync(join("src", file), "utf8"), file.startsWith("entities/")).map(
        (what) => `${file}: ${what}`,
      ),
    );
  expect(found).toEqual([]);
});

test.each([
  'import { Client } from "pg";',
  'import { DataSource } from "typeorm";',
  'import type { EntityManager } from "typeorm";',
  'import { PostgresQueryRunner } from "typeorm/driver/postgres/PostgresQueryRunner";',
  'await dataSource.query("SELECT 1");',
  'orm.createQueryBuilder(DealRow, "d").getMany();',
])("another way to ask is found: %s", (source) => {
  expect(otherWays(source)).not.toEqual([]);
});

/** Where a test opens one otherwise than `opened` and `openOn` do. */
const OPENED_OTHERWISE = [
  "faults/database-shut.test.ts", // an INSERT that its session does not reach
  "specification/list-pages.test.ts", // one server only
  "specification/tenancy.test.ts", // says its reach
  "support/database.ts",
  "unit/crm-stopped.test.ts", // a server that is not there
];

test("tests ask as the service does on the server that they run on: of a cluster, a lone server's session sees no row", () => {
  const files = readdirSync("test", { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
  const found = files.filter((file) => /\bnew Database\(\w/.test(readFileSync(join("test", file), "utf8")));
  expect(found.sort()).toEqual(OPENED_OTHERWISE);
});

test("the database's folder stays one that is read in an hour", () => {
  const files = sourceFiles().filter((file) => file.startsWith("database/"));
  expect(files.length).toBeLessThanOrEqual(MOST_FILES);
  // A migration is a list of tables.
  const read = files.filter((file) => !file.startsWith("database/migrations/"));
  const lengths = read.map((file) => ({ file, lines: readFileSync(join("src", file), "utf8").split("\n").length }));
  expect(lengths.filter(({ lines }) => lines > LONGEST_FILE)).toEqual([]);
});
