import { type GraphQLObjectType, getNamedType, isObjectType } from "graphql";
import { buildGraphQLSchema } from "../../src/resolvers/graphql-schema";
import { countStatements, type StatementCounter } from "../support/statements";
import { dataOf, recordMeeting } from "../support/stories";
import { useService } from "../support/world";

// Planted and seen red: a look-up by a property that its rows have not; a skipped field that is read all the same; what the
// variables of an earlier query said is taken for what those of a later one say; a list of one size shown as one of another;
// fields of another type looked up by rows that are none of it; ids gathered each once, for which PostgreSQL sorts the page; a
// statement of more reads than PostgreSQL's functions take.

const { world, simulator, database, service } = useService({ deals: 30, connected: ["acme"] });
let counter: StatementCounter;
/** By the root field that finds it. */
let ids: Record<"deal" | "person" | "organization" | "briefing", string>;

beforeAll(async () => {
  const { singleDeal, severalDeals } = simulator.company.stories;
  // The newest first, whatever their ids.
  for (let hour = 1; hour <= 6; hour += 1)
    await recordMeeting(service, [severalDeals.email], {
      startsAt: new Date(Date.now() - hour * 3_600_000).toISOString(),
    });
  const { id: briefing } = await recordMeeting(service, [singleDeal.email]);
  counter = await countStatements(database.url);
  world.cleanup(counter.close);
  const { deals, persons, organizations } = dataOf(
    await service.ask<Record<"deals" | "persons" | "organizations", { nodes: [{ id: string }] }>>(
      "{ deals { nodes { id } } persons { nodes { id } } organizations { nodes { id } } }",
    ),
  );
  const [deal, person, organization] = [deals, persons, organizations].map(({ nodes }) => nodes[0].id);
  if (!deal || !person || !organization) throw new Error("nothing is matched");
  ids = { deal, person, organization, briefing };
});

const schema = buildGraphQLSchema();
const argumentOf = (root: keyof typeof ids) => `(${root === "briefing" ? "meetingId" : "id"}: "${ids[root]}")`;

/** The fields of a type that are looked up ahead, or that hold such ones, each with all of those within it. */
function lookingUp(type: GraphQLObjectType, depth: number): string[] {
  return Object.values(type.getFields()).flatMap((field) => {
    const [named, isAhead] = [getNamedType(field.type), typeof field.extensions.ahead === "function"];
    if (!isObjectType(named)) return isAhead ? [field.name] : [];
    const within = depth > 0 ? lookingUp(named, depth - 1) : [];
    if (!isAhead && (field.resolve || within.length === 0)) return [];
    return [`${field.name} { ${["__typename", ...within].join(" ")} }`];
  });
}

const ROOTS = ["deal", "person", "organization", "briefing", "deals", "persons", "organizations", "meetings"] as const;
const isId = (root: string): root is keyof typeof ids => root in ids;

test.each(ROOTS)("whatever of a %s is looked up ahead is found, and what hangs on that", async (root) => {
  const found = schema.getQueryType()?.getFields()[root];
  const type = found && getNamedType(found.type);
  const page = isObjectType(type) ? getNamedType(type.getFields().nodes?.type) : undefined;
  const row = page ?? type;
  if (!isObjectType(row)) throw new Error(`${root} is no record`);
  const fields = lookingUp(row, 1);
  expect(fields.length).toBeGreaterThan(0);
  const ask = (field: string) => {
    const of = isId(root) ? argumentOf(root) : "(first: 2)";
    return service.ask<Record<string, Page>>(
      `{ ${root}${of} { ${page ? `nodes { id ${field} } pageInfo { endCursor }` : field} } }`,
    );
  };
  /** Whatever else is asked, a page has the same records in the same order. */
  const shown = ({ nodes, pageInfo }: Page = {}) => ({ ids: nodes?.map(({ id }) => id), ...pageInfo });
  const plain = await ask("__typename");
  if (page) expect(plain.data[root]?.nodes).toHaveLength(2);
  for (const field of fields) {
    const { data, errors } = await ask(field);
    expect([field, errors, shown(data[root])]).toEqual([field, undefined, shown(plain.data[root])]);
  }
});

interface Page {
  nodes?: { id: string }[];
  pageInfo?: { endCursor: string };
}

const OTHERS =
  "... on Deal { stage { name } } ... on Activity { deal { title } } ... on Note { html } ... on Meeting { match { status } }";

test.each([
  ["a person", "person", "name"],
  ["an organization", "organization", "name"],
] as const)("what is asked of other types within %s is passed by", async (_what, root, own) => {
  const query = `{ ${root}${argumentOf(root)} { ${own} ... on Node { ${OTHERS} } } }`;
  const plain = dataOf(await service.ask(`{ ${root}${argumentOf(root)} { ${own} } }`));
  expect(await service.ask(query)).toMatchObject({ data: plain });
});

test("and so it is within the records of a briefing, and of a list", async () => {
  const query = `{ briefing${argumentOf("briefing")} { persons { name ... on Node { ${OTHERS} } } }
    persons(first: 2) { nodes { name ... on Node { ${OTHERS} } } } }`;
  expect((await service.ask(query)).errors).toBeUndefined();
});

const PERSON = `{ name organization { name owner { name } } owner { name } openDeals { title stage { name } owner { name } }
  recentActivities { subject owner { name } } recentNotes { text author { name } ours } }`;
const DEAL = `{ title stage { name pipeline { name } } pipeline { name } owner { name } organization { name owner { name } persons { name }
  recentActivities { subject } } person ${PERSON} participants { name owner { name } } recentActivities { subject owner { name }
  person { name } organization { name } deal { title } } nextActivity { subject } recentNotes { text ours author { name } } quiet { verdict } }`;

test("records that a query names one by one are answered as each by itself, however many", async () => {
  const [small, whole] = [
    "{ title stage { name } pipeline { name } owner { name } organization { name owner { name } } }",
    DEAL,
  ];
  for (const [times, asked] of [
    [28, small],
    [6, whole],
  ] as const) {
    const { deal } = dataOf(await service.ask<{ deal: object }>(`{ deal${argumentOf("deal")} ${asked} }`));
    const many = Array.from({ length: times }, (_, index) => `a${index}: deal${argumentOf("deal")} ${asked}`);
    const answer = await service.ask<Record<string, object>>(`{ ${many.join(" ")} }`);
    expect([times, answer.errors]).toEqual([times, undefined]);
    expect(new Set(Object.values(answer.data).map((one) => JSON.stringify(one)))).toEqual(
      new Set([JSON.stringify(deal)]),
    );
  }
});

test("nothing is read of what the variables leave out, whatever they said the time before", async () => {
  const api = await world.startService({ roles: ["api"], config: { databaseUrl: counter.url } });
  const query = `query ($notes: Boolean!, $stage: Boolean!) { deal${argumentOf("deal")} { title
    recentNotes @include(if: $notes) { id } ... on Deal @skip(if: $stage) { stage { name } } } }`;
  for (const [notes, stage] of [
    [true, false],
    [false, true],
    [true, true],
    [false, false],
  ]) {
    const sent = (await counter.during(async () => dataOf(await api.ask(query, { notes, stage })))).join();
    expect([notes, stage, /FROM note\b/.test(sent), /FROM stage\b/.test(sent)]).toEqual([notes, stage, notes, !stage]);
  }
});

test("one field twice, with other sizes and within one another, gives each place its own", async () => {
  type Sized = { nodes: { id: string; openDeals: object[] }[] };
  const { persons } = dataOf(await service.ask<{ persons: Sized }>("{ persons { nodes { id openDeals { id } } } }"));
  const several = persons.nodes.find(({ openDeals }) => openDeals.length > 1)?.id ?? "";
  const query = `{ person(id: "${several}") { one: openDeals(first: 1) { id } all: openDeals(first: 50) { id person { id
    one: openDeals(first: 1) { id } all: openDeals(first: 50) { id } } organization { openDeals(first: 1) { id } } } organization { openDeals(first: 50) { id } } } }`;
  type Deals = { id: string }[];
  interface Found {
    one: Deals;
    all: (Deals[number] & { person: Found | null; organization: { openDeals: Deals } | null })[];
    organization: { openDeals: Deals } | null;
  }
  const { person } = dataOf(await service.ask<{ person: Found }>(query));
  expect(person.all.length).toBeGreaterThan(1);
  expect(person.one.map(({ id }) => id)).toEqual([person.all[0]?.id]);
  for (const deal of person.all) {
    const own = dataOf(
      await service.ask<{ deal: object }>(
        `{ deal(id: "${deal.id}") { id person { id one: openDeals(first: 1) { id } all: openDeals(first: 50) { id } } organization { openDeals(first: 1) { id } } } }`,
      ),
    );
    expect(own.deal).toEqual(deal);
  }
});
