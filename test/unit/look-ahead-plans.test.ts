import "reflect-metadata";
import { execute, type GraphQLResolveInfo, getOperationAST, parse } from "graphql";
import type { CopyScope } from "../../src/database/database";
import { buildGraphQLSchema } from "../../src/resolvers/graphql-schema";
import type { Loaders } from "../../src/resolvers/loaders";
import type { LookUp } from "../../src/resolvers/look-ups";
import { beginWith } from "../../src/resolvers/look-ups";
import { refusalOfSize, sizeOf } from "../../src/server/operation-size";

// Planted and seen red: whether one look-up hangs on another is asked along every way between them; a fragment is followed
// as often as it is spread.

const LEVELS = 5;
/** Records that lead to each other in many ways, as deep and as large as a query may be. */
function largest(): string {
  const fragments = Array.from({ length: LEVELS }, (_, level) => {
    const [isLast, next] = [level === LEVELS - 1, level + 1];
    const deals = isLast ? "" : `openDeals(first: 1) { ...D${next} }`;
    const activities = `recentActivities(first: 1) { person { ...P${next} } organization { ...O${next} } deal { ...D${next} } }`;
    return `fragment D${level} on Deal { person { ...P${next} } ${isLast ? "" : `organization { ...O${next} }`} ${activities} }
      fragment P${level} on Person { organization { ...O${next} } ${deals} ${activities} }
      fragment O${level} on Organization { persons(first: 1) { ...P${next} } ${deals} ${activities} }`;
  });
  const ends = ["D", "P", "O"].map(
    (name, kind) => `fragment ${name}${LEVELS} on ${["Deal", "Person", "Organization"][kind]} { id }`,
  );
  return `{ deal(id: "x") { ...D0 } } ${[...fragments, ...ends].join(" ")}`;
}

test("what the largest query looks up is planned in no time that others would notice", async () => {
  const schema = buildGraphQLSchema();
  const document = parse(largest());
  const operation = getOperationAST(document);
  if (!operation) throw new Error("no operation");
  const size = sizeOf(schema, document, operation, {});
  expect([refusalOfSize(size), size.nodes > 9_000]).toEqual([null, true]);
  const field = schema.getQueryType()?.getFields().deal;
  if (!field) throw new Error("no field");
  let tookMs = 0;
  field.resolve = (_source, _args, _context, info: GraphQLResolveInfo) => {
    const lookUp = { ahead: () => ({}) } as unknown as LookUp<number, unknown>;
    const loaders = new Proxy({}, { get: () => lookUp }) as Loaders;
    const at = performance.now();
    beginWith(info, {} as CopyScope, loaders, lookUp, 1);
    tookMs = performance.now() - at;
    return null;
  };
  await execute({ schema, document, contextValue: {} });
  expect(tookMs).toBeGreaterThan(0);
  // Some ms; along every way it took seconds.
  expect(tookMs).toBeLessThan(1_000);
});
