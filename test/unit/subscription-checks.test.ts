import { buildSchema, GraphQLError } from "graphql";
import { readMessage, SubscriptionChecks, take, takeToken } from "../../src/server/subscriptions";

// Planted and seen red: a document that is kept is not measured again; what is refused is kept as valid; documents kept
// without end; no document kept; variables kept that the operation does not declare; documents as long as a query's.

const schema = buildSchema(`
  type Query { runs(first: Int): [Run!]! }
  type Subscription { runs(first: Int): [Run!]! }
  type Run { state: String }
`);
const make = () => new SubscriptionChecks(schema, true);
const checkedBy = (checks: SubscriptionChecks, query: string, variables?: Record<string, unknown>, open = 1) => {
  const checked = checks.check({ query, variables }, open);
  return "document" in checked ? checked.document : checked.map(({ message }) => message).join();
};
const RUNS = "subscription ($first: Int) { runs(first: $first) { state } }";

test("a document that comes again is parsed once, and measured with its own variables each time", () => {
  const checks = make();
  const document = checkedBy(checks, RUNS, { first: 10 });
  expect(document).toMatchObject({ kind: "Document" });
  expect(checkedBy(checks, RUNS, { first: 2_000 })).toContain("at most 1000 are allowed");
  expect(checkedBy(checks, RUNS, { first: 20 })).toBe(document);
});

test.each([
  ["a document that cannot be parsed", "subscription {", 1, "Syntax Error"],
  ["a query", "{ runs { state } }", 1, "serves subscriptions"],
  ["a field that is not there", "subscription { runs { nothing } }", 1, 'Cannot query field "nothing"'],
  [
    "a document as long as a query may be",
    `subscription { runs { ${"state ".repeat(500)} } }`,
    1,
    "more that 500 tokens",
  ],
  ["one subscription too many", RUNS, 21, "20 subscriptions already"],
])("%s is refused, each time it comes", (_what, query, open, message) => {
  const checks = make();
  for (const _round of [1, 2]) expect(checkedBy(checks, query, {}, open)).toContain(message);
});

test("a variable that is null where none may be is refused, and does not end the socket", () => {
  const query = "subscription ($yes: Boolean = true) { runs { state @include(if: $yes) } }";
  const checked = make().check({ query, variables: { yes: null } }, 1);
  expect("document" in checked || checked.map(({ extensions }) => extensions.code)).toEqual(["BAD_USER_INPUT"]);
});

// Seen red: the library's rule threw, which ended the socket and all of its subscriptions, and by POST was a bug of ours.
test.each([
  ["by a variable", "subscription ($no: Boolean!) { runs @skip(if: $no) { state } }", "GRAPHQL_VALIDATION_FAILED"],
  [
    "by a variable, in a fragment",
    "subscription ($yes: Boolean!) { ...F @include(if: $yes) } fragment F on Subscription { runs { state } }",
    "GRAPHQL_VALIDATION_FAILED",
  ],
  ["always", "subscription { runs @skip(if: true) { state } }", "BAD_USER_INPUT"],
  ["by what is no condition", "subscription { runs @skip { state } }", "GRAPHQL_VALIDATION_FAILED"],
])("a subscription whose own field is skipped %s is refused, each time it comes", (_how, query, code) => {
  const checks = make();
  for (const value of [true, false]) {
    const checked = checks.check({ query, variables: { yes: value, no: value } }, 1);
    expect("document" in checked || checked.map(({ extensions }) => extensions.code)).toEqual([code]);
  }
});

test("what is wrong is what the client may read", () => {
  const checked = make().check({ query: "subscription { runs { nothing } }" }, 1);
  expect("document" in checked || checked.every((error) => error instanceof GraphQLError)).toBe(true);
});

test("the documents that were used last are kept, and no more than so much text", () => {
  const checks = make();
  const long = (of: number) => `${RUNS} # ${of} ${"x".repeat(60_000)}`;
  const [one, two] = [checkedBy(checks, long(1)), checkedBy(checks, long(2))];
  for (const other of [3, 4]) checkedBy(checks, long(other));
  expect(checkedBy(checks, long(1))).toBe(one);
  checkedBy(checks, long(5));
  expect(checkedBy(checks, long(1))).toBe(one);
  expect(checkedBy(checks, long(2))).not.toBe(two);
});

test("of the variables those that the operation declares are kept, and no others", () => {
  const variables = { first: 10, other: ["x"] };
  expect(make().check({ query: RUNS, variables }, 1)).toMatchObject({ variableValues: { first: 10 } });
  const all = [RUNS, "subscription { runs { state } }"].map((query) =>
    make().check({ query, variables: { other: Array(1_000).fill([]) } }, 1),
  );
  expect(all.map((checked) => "document" in checked && checked.variableValues)).toEqual([{}, {}]);
});

test("the library, which keeps messages, has nothing left to keep but the protocol's own members", () => {
  const payload = { query: RUNS, variables: { first: 1 }, extensions: { x: 1 }, other: "x" };
  const message = { id: "1", type: "subscribe", payload, other: "x" };
  const read = readMessage("", message) as typeof message;
  expect(take(read.payload)).toMatchObject({ query: RUNS, other: "x" });
  expect(read).toEqual({ id: "1", type: "subscribe", payload: {} });
  expect(() => readMessage("", { ...message, id: "x".repeat(91) })).toThrow("too long");
  const parameters = { authorization: "Bearer abc", other: "x" };
  expect([takeToken(parameters), parameters]).toEqual(["abc", {}]);
});
