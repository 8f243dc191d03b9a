import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  type DocumentNode,
  type GraphQLError,
  getIntrospectionQuery,
  getOperationAST,
  specifiedRules,
  validate,
  visit,
} from "graphql";
import { buildGraphQLSchema } from "../../src/resolvers/graphql-schema";
import { boundedDocument, keptDocuments, refusalOfVariables, VALIDATION_OPTIONS } from "../../src/server/bounds";
import { isFitting } from "../../src/server/operation-size";
import { SubscriptionChecks } from "../../src/server/subscriptions";
import { HOSTILE_DOCUMENTS, parsed } from "../support/hostile-documents";

// Seen red without the bounds: the work of empty lines (24,000,000), comments, one object and one leaf again and again,
// one alias for two fields; the errors of a directive that is not there (101). Planted: the rule reports and goes on; values that do not fit told one by one.

const schema = buildGraphQLSchema();
/** Names and lines read; the worst document that is validated comes to 103,000. */
const MOST_WORK = 150_000;

/** Validates, and counts what that is: each name that a rule reads, and the lines that are counted to find a place. */
function countedWork(text: string) {
  const document = parsed(text);
  let work = 0;
  const counted = (node: object, key: string, value: string) =>
    Object.defineProperty(node, key, {
      get: () => {
        work += 1;
        return value;
      },
    });
  visit(document, { Name: (node) => void counted(node, "value", node.value) });
  const source = sourceOf(document);
  counted(source, "body", source.body);
  return { errors: validate(schema, document, [...specifiedRules, boundedDocument], VALIDATION_OPTIONS), work };
}

function sourceOf({ loc }: DocumentNode) {
  if (!loc) throw new Error("a document without its text");
  return loc.source;
}

const codes = (errors: readonly GraphQLError[]) => errors.map(({ extensions }) => extensions.code);
const REFUSED = ["DOCUMENT_TOO_COMPLEX"];

test.each(Object.entries(HOSTILE_DOCUMENTS))("%s: bounded work and few errors", (_what, text) => {
  const { errors, work } = countedWork(text);
  expect(work).toBeLessThan(MOST_WORK);
  expect(errors.length).toBeLessThanOrEqual(21);
  expect(JSON.stringify(errors).length).toBeLessThan(100_000);
});

test.each([
  ["2,001 lines", `${"\n".repeat(2_000)}{ viewer { userId } }`],
  ["a name of 201 characters", `query ${"q".repeat(201)} { viewer { userId } }`],
  ["317 fields of one name", `{ ${"viewer { userId } ".repeat(317)} }`],
])("a document with %s is refused with one error, a code and what to do", (_what, text) => {
  const { errors } = countedWork(text);
  expect(codes(errors)).toEqual(REFUSED);
  expect(errors[0]?.message).toContain("send several documents");
});

test.each([
  ["2,000 lines", `${"\n".repeat(1_999)}{ viewer { userId } }`],
  ["a name of 200 characters", `query ${"q".repeat(200)} { viewer { userId } }`],
  [
    "150 objects, each with its type and id",
    `{ ${Array.from({ length: 30 }, (_, i) => `a${i}: deal(id: "1") { __typename id organization { __typename id } owner { __typename id } stage { __typename id } pipeline { __typename id } }`).join(" ")} }`,
  ],
  ["the whole schema asked for", getIntrospectionQuery()],
])("a document with %s is validated", (_what, text) => {
  expect(countedWork(text).errors).toEqual([]);
});

test("every operation of the page is validated", () => {
  const folder = join(__dirname, "../../web/src");
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".graphql"));
  const text = files.map((name) => readFileSync(join(folder, name), "utf8")).join("\n");
  expect(files.length).toBeGreaterThan(3);
  expect(countedWork(text).errors).toEqual([]);
});

test("a subscription is bounded alike", () => {
  const checks = new SubscriptionChecks(schema, true);
  const check = (query: string) => {
    const checked = checks.check({ query }, 1);
    return "document" in checked ? [] : checked;
  };
  const subscription = (selection: string) => `subscription { connectionStatusChanged { ${selection} } }`;
  expect(codes(check(`${"\n".repeat(60_000)}${subscription("nothing")}`))).toEqual(REFUSED);
  expect(codes(check(subscription("state ".repeat(400))))).toEqual(REFUSED);
  expect(codes(check(subscription(`state ${"@nothing ".repeat(200)}`)))).toEqual(REFUSED);
  expect(check(subscription("state"))).toEqual([]);
});

test("values that do not fit are looked into up to the first, though there be thousands", () => {
  const operation = getOperationAST(parsed("query ($f: DealFilter) { deals(filter: $f) { nodes { id } } }"));
  if (!operation) throw new Error("no operation");
  let read = 0;
  function* statuses(one: unknown) {
    for (; read < 1_000; read += 1) yield one;
  }
  expect(isFitting(schema, operation, { f: { status: statuses("NONE_SUCH") } })).toBe(false);
  expect(read).toBe(0);
  expect(isFitting(schema, operation, { f: { status: statuses("OPEN") } })).toBe(true);
  expect(read).toBe(1_000);
});

test("variables are counted with all that is within them, however deep, and no further than the limit", () => {
  const nest = (depth: number) => Array.from({ length: depth }).reduce<unknown>((inner) => [inner], 1);
  const attendee = { email: "someone@buyer.example", name: "Someone" };
  const input = { externalId: "1", title: "", startsAt: "", ownerEmail: "", attendees: Array(500).fill(attendee) };
  expect(refusalOfVariables({})).toBeNull();
  expect(refusalOfVariables({ input })).toBeNull();
  expect(refusalOfVariables({ nested: nest(4_999) })).toBeNull();
  for (const values of [nest(5_000), nest(200_000), Array(5_000).fill({})])
    expect(refusalOfVariables({ values })?.extensions.code).toBe("TOO_MANY_VALUES");
});

test("documents are kept by the length of their text, comments and all", () => {
  const kept = keptDocuments();
  const keep = (name: string, length: number) => kept.set(name, parsed(`{ viewer { userId } } #${"x".repeat(length)}`));
  keep("larger than all", 300_000);
  for (const name of ["first", "second", "third"]) keep(name, 100_000);
  expect([...kept.keys()]).toEqual(["third", "second"]);
});
