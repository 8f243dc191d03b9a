import { tokenFor } from "../support/actors";
import { post } from "../support/http";
import { subscribe } from "../support/sockets";
import { useService } from "../support/world";

const { service } = useService({ deals: 10, roles: ["api"], config: { compileQueriesAtUse: 2 } });

interface Answer {
  data?: object | null;
  errors?: { message: string; extensions: { code: string } }[];
  extensions?: { cost?: Record<string, unknown> };
}

async function ask(query: string, variables: object = {}, headers: Record<string, string> = {}): Promise<Answer> {
  const authorization = `Bearer ${await tokenFor()}`;
  const { body } = await post(`${service.url}/graphql`, { query, variables }, { authorization, ...headers });
  return body as Answer;
}

const asked = { "x-operation-cost": "1" };
const NESTED = `query ($n: Int) { deal(id: "x") { organization { persons(first: $n) { name openDeals(first: $n) {
  title recentNotes(first: $n) { id } } } } } }`;

test.each<[string, object, Record<string, unknown>]>([
  ["{ viewer { userId } }", {}, { objects: 1, depth: 2, aliases: 0, dearest: null }],
  ["{ one: viewer { userId } two: viewer { userId } }", {}, { objects: 2, depth: 2, aliases: 2, dearest: null }],
  [
    NESTED,
    { n: 4 },
    { objects: 2 + 4 * (1 + 4 * (1 + 4)), depth: 6, dearest: "deal.organization.persons.openDeals.recentNotes" },
  ],
  [
    "{ deals(first: 20) { nodes { title stage { name } } } meetings(first: 2) { nodes { id } } }",
    {},
    { objects: 20 * 3 + 2 * 2 + 0, dearest: "deals.nodes" },
  ],
  ["{ ...Some } fragment Some on Query { deals(first: 7) { totalCount } }", {}, { objects: 7, dearest: "deals" }],
  // Seen red: null counted as ten, where twenty come.
  [NESTED, { n: null }, { objects: 2 + 20 * (1 + 5 * (1 + 5)) }],
  ["{ __schema { types { name } } }", {}, { objects: 0, dearest: null }],
])("the cost of %s with %j is told where it is asked for", async (query, variables, cost) => {
  const bounds = { mostObjects: 50_000, mostDepth: 12, mostAliases: 30, heavyAbove: 10_000 };
  // The third time it runs as compiled code.
  for (let time = 1; time <= 3; time += 1) {
    const answer = await ask(query, variables, asked);
    expect([answer.errors, answer.extensions]).toEqual([
      undefined,
      { cost: expect.objectContaining({ ...bounds, ...cost }) },
    ]);
  }
  expect(await ask(query, variables)).not.toHaveProperty("extensions");
});

test("what is refused is refused by the number that is told, and the refusal names what makes most of it", async () => {
  const objects = 2 + 50 * (1 + 50 * (1 + 50));
  const { data, errors, extensions } = await ask(NESTED, { n: 50 }, asked);
  expect(data).toBeUndefined();
  expect(errors).toEqual([
    {
      message: `The operation may answer with ${objects} objects; at most 50000 are allowed. Most of it is deal.organization.persons.openDeals.recentNotes. Ask for less at once: shorter lists (first), fewer nested lists, or several operations.`,
      extensions: { code: "OPERATION_TOO_COSTLY" },
    },
  ]);
  expect(extensions?.cost).toMatchObject({ objects, mostObjects: 50_000 });
});

test("the largest that is told to be allowed is allowed, and the next is not", async () => {
  const told = await Promise.all([35, 36, 37].map((n) => ask(NESTED, { n }, asked)));
  for (const { errors, extensions } of told) {
    const { objects, mostObjects } = extensions?.cost ?? {};
    expect(Number(objects) > Number(mostObjects)).toBe(errors !== undefined);
  }
  expect(told.map(({ errors }) => errors?.[0]?.extensions.code)).toEqual([
    undefined,
    undefined,
    "OPERATION_TOO_COSTLY",
  ]);
});

test("a subscription that would cost too much is told which field makes it so", async () => {
  const query =
    "subscription { connectionStatusChanged { users { name } pipelines { stages { name } } sync { gaps { message } } visibility { deals } } }";
  const { closed, end } = await subscribe(service.url, query);
  expect((await closed).reason).toContain("Most of it is connectionStatusChanged.visibility");
  await end();
});
