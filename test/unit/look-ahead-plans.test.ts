import "reflect-metadata";
import { execute, type GraphQLResolveInfo, type GraphQLSchema, getOperationAST, parse } from "graphql";
import { buildGraphQLSchema } from "../../src/resolvers/graphql-schema";
import { type PlanStep, planOf } from "../../src/resolvers/look-up-plan";
import { refusalOfSize } from "../../src/server/limits";
import { sizeOf } from "../../src/server/operation-size";

// Planted and seen red: a fragment is followed as often as it is spread, or from every record that leads to it; more than is read
// ahead is planned to its end; a look-up stands before one whose rows name its ids.

/** Records that lead to each other in many ways: each level's fragments spread the next level's. */
function ladder(levels: number, sizeAt: (level: number) => number): string {
  const fragments = Array.from({ length: levels }, (_, level) => {
    const [isLast, next] = [level === levels - 1, level + 1];
    const deals = isLast ? "" : `openDeals(first: 1) { ...D${next} }`;
    const deeper = isLast ? "" : `organization { ...O${next} }`;
    const activities = `recentActivities(first: ${sizeAt(next)}) { person { ...P${next} } organization { ...O${next} } deal { ...D${next} } }`;
    return `fragment D${level} on Deal { person { ...P${next} } ${deeper} ${activities} }
      fragment P${level} on Person { organization { ...O${next} } ${deals} ${activities} }
      fragment O${level} on Organization { persons(first: 1) { ...P${next} } ${deals} ${activities} }`;
  });
  const ends = ["Deal", "Person", "Organization"].map((type) => `fragment ${type[0]}${levels} on ${type} { id }`);
  return `{ organization(id: "x") { ...O0 } } ${[...fragments, ...ends].join(" ")}`;
}

/** What an allowed document looks up, and how often a fragment was followed for that. */
async function planned(schema: GraphQLSchema, text: string): Promise<{ steps: readonly PlanStep[]; followed: number }> {
  const document = parse(text);
  const operation = getOperationAST(document);
  const field = schema.getQueryType()?.getFields().organization;
  if (!operation || !field) throw new Error("no operation");
  expect(refusalOfSize(sizeOf(schema, document, operation, {}), 50_000)).toBeNull();
  let [steps, followed]: [readonly PlanStep[], number] = [[], 0];
  const counted = Object.create(schema, {
    getType: {
      value: (name: string) => {
        followed += 1;
        return schema.getType(name);
      },
    },
  });
  field.resolve = (_source, _args, _context, info: GraphQLResolveInfo) => {
    steps = planOf({ ...info, schema: counted });
    return null;
  };
  await execute({ schema, document, contextValue: {} });
  return { steps, followed };
}

test("what leads to a record in many ways is looked up once, each behind those whose rows name its ids", async () => {
  const { steps, followed } = await planned(
    buildGraphQLSchema(),
    ladder(4, (level) => level),
  );
  expect(steps.length).toBeGreaterThan(40);
  expect(followed).toBeLessThan(300);
  for (const [place, step] of steps.entries()) {
    const behind = step.by.flatMap(({ of }) => (of === "begin" ? [] : [steps.indexOf(of)]));
    expect(behind.every((before) => before >= 0 && before < place)).toBe(true);
  }
});

test("of what is more than is read ahead nothing is planned, and not to its end", async () => {
  const { steps, followed } = await planned(
    buildGraphQLSchema(),
    ladder(5, (level) => (level < 4 ? level : 1)),
  );
  expect(steps.length).toBe(0);
  expect(followed).toBeLessThan(300);
});
