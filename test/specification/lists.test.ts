import { randomUUID } from "node:crypto";
import { Random } from "../../simulator/seed/random";
import { encodeId } from "../../src/resolvers/inputs";
import { judgeAgain } from "../support/copy";
import {
  cents,
  connectAndMatchDeals,
  type DealFacts,
  makeTies,
  matchedDeals,
  money,
  PLAINLY,
} from "../support/listed-deals";
import { connect, dataOf, recordMeeting, syncEnds } from "../support/stories";
import { useService } from "../support/world";

let copyId: number;

/** Syncs only by request: a test that moves deals away and back must not find that a sync has brought them. */
const config = { sync: { intervalMs: 0, reconcileIntervalMs: 0 } };
const { simulator, database, service } = useService({ deals: 120, config });
beforeAll(async () => {
  copyId = await connectAndMatch("acme");
  await makeTies(database, copyId);
});

const connectAndMatch = (tenant: string) => connectAndMatchDeals(service, simulator, database, tenant);

interface Node {
  id: string;
  crmId?: string;
}
interface Page {
  edges: { cursor: string; node: Node }[];
  nodes: Node[];
  pageInfo: { hasNextPage: boolean; hasPreviousPage: boolean; startCursor: string | null; endCursor: string | null };
}
type List = "deals" | "persons" | "organizations" | "meetings" | "syncRuns";

const PAGE = "edges { cursor node { id } } nodes { id } pageInfo { hasNextPage hasPreviousPage startCursor endCursor }";
const ARGUMENTS: Partial<Record<List, string>> = {
  deals: "$filter: DealFilter, $orderBy: DealOrder",
  persons: "$email: String",
};

function ask(list: List, variables: object = {}, tenant = "acme") {
  const own = ARGUMENTS[list] ?? "";
  const pass = own.replaceAll(/\$(\w+): \w+/g, "$1: $$$1");
  const query = `query ($first: Int, $after: String, ${own}) { ${list}(first: $first, after: $after, ${pass}) { ${PAGE} } }`;
  return service.ask<Record<List, Page>>(query, variables, { tenant });
}

const pageOf = async (list: List, variables: object = {}, tenant = "acme") =>
  dataOf(await ask(list, variables, tenant))[list];

/** All ids of a list, page by page; `between` runs after each page. */
async function walk(list: List, variables: object, between = async (_seen: string[]): Promise<void> => undefined) {
  const seen: string[] = [];
  for (let after: string | null = null; ; ) {
    const page: Page = await pageOf(list, { ...variables, after });
    seen.push(...page.nodes.map(({ id }) => id));
    expect(page.edges.map(({ node }) => node)).toEqual(page.nodes);
    const { startCursor, endCursor, hasPreviousPage } = page.pageInfo;
    expect([startCursor, endCursor]).toEqual([page.edges[0]?.cursor ?? null, page.edges.at(-1)?.cursor ?? null]);
    expect(hasPreviousPage).toBe(after !== null);
    if (!page.pageInfo.hasNextPage) return seen;
    after = page.pageInfo.endCursor;
    await between(seen);
  }
}

const dealIds = (deals: readonly DealFacts[]) => deals.map(({ crm_id }) => encodeId("Deal", copyId, crm_id));

const ORDERS = ["UPDATED_AT_DESC", "VALUE_DESC"] as const;

test.each(ORDERS)("deals by %s come page by page as sorted plainly, with ties and without values", async (orderBy) => {
  const plain = dealIds((await matchedDeals(database, copyId)).sort(PLAINLY[orderBy]));
  expect(plain.length).toBeGreaterThan(40);
  for (const first of [1, 7, 100]) expect(await walk("deals", { first, orderBy })).toEqual(plain);
});

test("deals come by their newest change, twenty at a time, where nothing else is said", async () => {
  const plain = dealIds((await matchedDeals(database, copyId)).sort(PLAINLY.UPDATED_AT_DESC)).slice(0, 20);
  const { data } = await service.ask<{ deals: Page }>("{ deals { nodes { id } pageInfo { hasNextPage } } }");
  expect(data.deals).toEqual({ nodes: plain.map((id) => ({ id })), pageInfo: { hasNextPage: true } });
  const said = await pageOf("deals", { first: null, filter: null, orderBy: null });
  expect(said.nodes).toEqual(data.deals.nodes);
});

test("each filter, and all of them together, leave what a plain comparison leaves", async () => {
  const all = (await matchedDeals(database, copyId)).sort(PLAINLY.UPDATED_AT_DESC);
  const one = all.find(({ status }) => status === "won") as DealFacts;
  const ids = {
    pipelineId: encodeId("Pipeline", copyId, one.pipeline_id),
    stageId: encodeId("Stage", copyId, one.stage_id),
    ownerId: encodeId("CrmUser", copyId, one.owner_id),
  };
  const cases: [object, (deal: DealFacts) => boolean][] = [
    [{}, () => true],
    [{ status: null, pipelineId: null, stageId: null, ownerId: null }, () => true],
    [{ status: ["OPEN"] }, ({ status }) => status === "open"],
    [{ status: ["WON", "LOST"] }, ({ status }) => status !== "open"],
    [{ pipelineId: ids.pipelineId }, ({ pipeline_id }) => pipeline_id === one.pipeline_id],
    [{ stageId: ids.stageId }, ({ stage_id }) => stage_id === one.stage_id],
    [{ ownerId: ids.ownerId }, ({ owner_id }) => owner_id === one.owner_id],
    [{ status: ["WON"], ...ids }, (deal) => ["status", "stage_id", "owner_id"].every((key) => same(deal, one, key))],
  ];
  for (const [filter, fits] of cases) {
    const plain = dealIds(all.filter(fits));
    expect(plain.length).toBeGreaterThan(0);
    expect(await walk("deals", { first: 9, filter })).toEqual(plain);
  }
});

test("deals of a currency, from an amount on, are those that a plain comparison leaves, in each order", async () => {
  const all = await matchedDeals(database, copyId);
  const least = 100000000000000000n;
  const fits = ({ value, currency }: DealFacts) => value !== null && currency === "EUR" && cents(value) >= least * 100n;
  for (const orderBy of ORDERS) {
    const plain = all.filter(fits).sort(PLAINLY[orderBy]);
    expect(plain.length).toBeGreaterThan(2);
    const filter = { currency: "EUR", minValue: "100000000000000000.00" };
    expect(await walk("deals", { first: 2, orderBy, filter })).toEqual(dealIds(plain));
  }
  const inSek = all.filter(({ value, currency }) => value !== null && currency === "SEK").sort(PLAINLY.UPDATED_AT_DESC);
  expect(await walk("deals", { filter: { currency: "SEK" } })).toEqual(dealIds(inSek));
  for (const [filter, words] of [
    [{ minValue: "5" }, "filter.minValue needs currency beside it."],
    [{ currency: "eur" }, "filter.currency is not a code of three capital letters."],
    [
      { currency: "EUR", minValue: "much" },
      'A Decimal is a string of at most 20 digits and 10 behind the point, for example "1250.50".',
    ],
  ] as const) {
    const { errors } = await ask("deals", { filter });
    expect(errors?.[0]).toMatchObject({ message: expect.stringContaining(words), ...BAD_INPUT });
  }
});

interface Counted {
  deals: { totalCount: number | null; totals: { amount: string; currency: string }[] | null; nodes: object[] };
}
const COUNTED = `query ($filter: DealFilter, $orderBy: DealOrder, $after: String) {
  deals(first: 2, filter: $filter, orderBy: $orderBy, after: $after) { totalCount totals { amount currency } nodes { id } } }`;

test("a list of deals says how many fit on all its pages, and their sums by currency; above 10,000 it says neither", async () => {
  const all = await matchedDeals(database, copyId);
  const cases: [object, (deal: DealFacts) => boolean][] = [
    [{}, () => true],
    [{ status: ["WON", "LOST"] }, ({ status }) => status !== "open"],
    [{ currency: "JPY" }, (deal) => money(deal) === "JPY"],
    [{ pipelineId: "none" }, () => false],
  ];
  for (const [filter, fits] of cases) {
    const plain = all.filter(fits);
    const codes = [...new Set(plain.map(money))].filter((code) => code !== "~").sort();
    const sums = codes.map((code) =>
      plain.filter((deal) => money(deal) === code).reduce((sum, { value }) => sum + cents(value), 0n),
    );
    const { endCursor: after } = (await pageOf("deals", { first: 1 })).pageInfo;
    for (const variables of [{}, { after }, { orderBy: "QUIET_DAYS_DESC" }]) {
      const { deals } = dataOf(await service.ask<Counted>(COUNTED, { filter, ...variables }));
      expect(deals.totalCount).toBe(plain.length);
      expect(deals.totals?.map(({ currency }) => currency)).toEqual(codes);
      expect(deals.totals?.map(({ amount }) => cents(amount))).toEqual(sums);
    }
  }
  const [some] = all;
  await database.query(
    `INSERT INTO deal_silence SELECT s.* FROM deal_silence b, generate_series(1, 10000) g,
       jsonb_populate_record(b, jsonb_build_object('deal_id', -g)) s WHERE b.copy_id = $1 AND b.deal_id = $2 AND b.is_listed`,
    [copyId, some?.crm_id],
  );
  const { deals } = dataOf(await service.ask<Counted>(COUNTED, {}));
  expect([deals.totalCount, deals.totals, deals.nodes.length > 0]).toEqual([null, null, true]);
  await database.query("DELETE FROM deal_silence WHERE copy_id = $1 AND deal_id < 0", [copyId]);
});

const same = (a: DealFacts, b: DealFacts, key: string) => a[key as keyof DealFacts] === b[key as keyof DealFacts];

test("a filter's id that is unknown, foreign, of another kind or none at all fits no deal, and no answer differs", async () => {
  const other = await connectAndMatch("foreign");
  const pipelineId = (await matchedDeals(database, copyId))[0]?.pipeline_id ?? 0;
  const nobodys = [
    encodeId("Pipeline", copyId, 99_999_999),
    encodeId("Pipeline", other, pipelineId),
    encodeId("Deal", copyId, pipelineId),
    "",
    "nonsense",
  ];
  const answers = await Promise.all(nobodys.map((id) => ask("deals", { filter: { pipelineId: id } })));
  const nothing = {
    ...{ edges: [], nodes: [] },
    pageInfo: { hasNextPage: false, hasPreviousPage: false, startCursor: null, endCursor: null },
  };
  expect(answers.map(({ data }) => data.deals)).toEqual(nobodys.map(() => nothing));
  expect(
    (await pageOf("deals", { filter: { pipelineId: encodeId("Pipeline", copyId, pipelineId) } })).nodes,
  ).not.toEqual([]);
});

test("persons are found by any address of theirs, in whatever spelling, where they are matched", async () => {
  const { stories } = simulator.company;
  await recordMeeting(service, [stories.secondaryAddress.email], { externalId: "by address" });
  const { personId, email } = stories.secondaryAddress;
  for (const spelling of [email, email.toUpperCase(), ` Somebody <${email}> `]) {
    const { nodes } = await pageOf("persons", { email: spelling });
    expect(nodes).toEqual([{ id: encodeId("Person", copyId, personId) }]);
  }
  expect((await pageOf("persons", { email: stories.severalDeals.email })).nodes).toEqual([]);
  expect((await pageOf("persons", { email: "nobody@nowhere.example" })).nodes).toEqual([]);
  for (const bad of ["", "anna", "a@b@c.example"]) {
    const { errors } = await ask("persons", { email: bad });
    expect(errors?.[0]).toMatchObject({ message: expect.stringContaining("email"), ...BAD_INPUT });
  }
});

test("persons and organizations come newest first, and only the matched ones", async () => {
  for (const [list, entity, type] of [
    ["persons", "PERSON", "Person"],
    ["organizations", "ORGANIZATION", "Organization"],
  ] as const) {
    const matched = await database.query<{ crm_id: number }>(
      `SELECT crm_id FROM ${entity} WHERE copy_id = $1 AND crm_id IN (
         SELECT crm_id FROM matched_record WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = 'acme') AND copy_id = $1 AND entity = $2)
       ORDER BY crm_id DESC`,
      [copyId, entity],
    );
    expect(matched.length).toBeGreaterThan(10);
    expect(await walk(list, { first: 4 })).toEqual(matched.map(({ crm_id }) => encodeId(type, copyId, crm_id)));
  }
});

test("no list shows a record that was never matched, or another tenant's", async () => {
  const { severalDeals, singleDeal } = simulator.company.stories;
  await connect(service, simulator, { tenant: "narrow" });
  await syncEnds(service, { tenant: "narrow" });
  await recordMeeting(service, [singleDeal.email], { externalId: "narrow" }, { tenant: "narrow" });
  const crmIds = async (list: "deals" | "persons" | "organizations") => {
    const { data } = await service.ask<Record<string, Page>>(
      `{ ${list}(first: 100) { nodes { crmId } } }`,
      {},
      { tenant: "narrow" },
    );
    return data[list]?.nodes.map(({ crmId }) => Number(crmId));
  };
  expect(await crmIds("deals")).toEqual([singleDeal.dealId]);
  expect(await crmIds("persons")).toEqual([singleDeal.personId]);
  expect(await crmIds("organizations")).toEqual([singleDeal.orgId]);
  const own = await pageOf("meetings", {}, "narrow");
  expect(own.nodes).toHaveLength(1);
  expect(await walk("meetings", {})).not.toContain(own.nodes[0]?.id);
  const shown = await walk("deals", { first: 50 });
  for (const id of severalDeals.dealIds) expect(shown).not.toContain(encodeId("Deal", copyId, id));
});

test("meetings come latest start first, those of one instant all the same once each; sync runs newest first", async () => {
  const startsAt = "2026-03-01T10:00:00.000Z";
  for (const index of [1, 2, 3, 4, 5]) await recordMeeting(service, [], { externalId: `tie ${index}`, startsAt });
  await database.query(
    `INSERT INTO sync_run (tenant_id, id, copy_id, kind, state, queued_at)
     SELECT id, gen_random_uuid(), $1, 'FULL', 'CANCELLED', '2026-02-01T00:00:00.000001Z'
     FROM tenant, generate_series(1, 5) WHERE external_id = 'acme'`,
    [copyId],
  );
  for (const [list, type, table, column] of [
    ["meetings", "Meeting", "meeting", "starts_at"],
    ["syncRuns", "SyncRun", "sync_run", "queued_at"],
  ] as const) {
    const rows = await database.query<{ id: string }>(
      `SELECT id FROM ${table} WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = 'acme') ORDER BY ${column} DESC, id DESC`,
    );
    expect(await walk(list, { first: 2 })).toEqual(rows.map(({ id }) => encodeId(type, id)));
  }
});

test.each([1, 2, 3])(
  "seed %i: while deals change, come and go, none is shown twice and none that stays is skipped",
  async (seed) => {
    const random = new Random(`lists ${seed}`);
    const away = -copyId;
    const before = (await matchedDeals(database, copyId)).map(({ crm_id }) => crm_id);
    const touched = new Set<number>();
    const seen = await walk("deals", { first: 3 }, async () => {
      const [changed, gone, back] = [random.pick(before), random.pick(before), random.pick(before)];
      for (const id of [changed, gone, back]) touched.add(id);
      await database.query("UPDATE deal SET update_time = now() WHERE copy_id = $1 AND crm_id = $2", [copyId, changed]);
      await database.query("UPDATE deal SET copy_id = $2 WHERE copy_id = $1 AND crm_id = $3", [copyId, away, gone]);
      await database.query("UPDATE deal SET copy_id = $1, update_time = now() WHERE copy_id = $2 AND crm_id = $3", [
        copyId,
        away,
        back,
      ]);
      await judgeAgain(database, copyId);
    });
    expect(touched.size).toBeGreaterThan(10);
    expect(new Set(seen).size).toBe(seen.length);
    const stayed = before.filter((id) => !touched.has(id)).map((id) => encodeId("Deal", copyId, id));
    expect(stayed.length).toBeGreaterThan(5);
    expect(stayed.filter((id) => !seen.includes(id))).toEqual([]);
    await database.query("UPDATE deal SET copy_id = $1 WHERE copy_id = $2", [copyId, away]);
    await makeTies(database, copyId);
  },
);

const BAD_INPUT = { extensions: { code: "BAD_USER_INPUT" } };

test("a cursor holds for its own list, order and connection only, and every other is refused clearly", async () => {
  await connect(service, simulator, { tenant: "cursors" });
  await syncEnds(service, { tenant: "cursors" });
  const startsAt = new Date().toISOString();
  await recordMeeting(service, [simulator.company.stories.singleDeal.email], { startsAt }, { tenant: "cursors" });
  const lists: List[] = ["deals", "persons", "organizations", "meetings", "syncRuns"];
  for (const from of lists) {
    const { endCursor: after } = (await pageOf(from, { first: 1 })).pageInfo;
    expect(after).not.toBeNull();
    for (const to of lists) {
      const { errors } = await ask(to, { after });
      if (to === from) expect(errors).toBeUndefined();
      else
        expect(errors?.[0]).toMatchObject({ message: expect.stringContaining(`not a cursor of ${to}`), ...BAD_INPUT });
    }
    const { errors } = await ask(from, { after }, "cursors");
    expect(errors?.[0]).toMatchObject({ message: expect.stringContaining("another CRM connection"), ...BAD_INPUT });
  }
  const { endCursor: after } = (await pageOf("deals", { orderBy: "VALUE_DESC" })).pageInfo;
  const { errors } = await ask("deals", { after, orderBy: "UPDATED_AT_DESC" });
  expect(errors?.[0]).toMatchObject({ message: expect.stringContaining("another order"), ...BAD_INPUT });
});

const forged = (...parts: unknown[]) => Buffer.from(JSON.stringify(parts)).toString("base64url");

test("what is no cursor, or was changed, is refused and never an error of the service", async () => {
  const head = async (orderBy: string): Promise<unknown[]> => {
    const { endCursor } = (await pageOf("deals", { first: 1, orderBy })).pageInfo;
    return JSON.parse(Buffer.from(endCursor ?? "", "base64url").toString()).slice(0, 3);
  };
  const [byUpdate, byValue] = [await head("UPDATED_AT_DESC"), await head("VALUE_DESC")];
  const deals = (...position: unknown[]) => forged(...byUpdate, ...position);
  const bad = [
    "",
    "nonsense",
    "[]",
    forged(),
    forged({}),
    deals(),
    deals("0"),
    deals("0", "1", "2"),
    deals("tomorrow", "1"),
    deals("9999999999999999999", "1"),
    deals(null, "1"),
    deals("0", 1),
    deals("0", ["1"]),
    deals("0", "1; DROP TABLE deal"),
    forged(...byValue, "EUR\0", "1", "1"),
  ];
  const answers = await Promise.all(
    bad.map((after) => ask("deals", { after, orderBy: after === bad.at(-1) ? "VALUE_DESC" : "UPDATED_AT_DESC" })),
  );
  for (const { errors } of answers)
    expect(errors?.[0]).toMatchObject({ message: expect.stringContaining("after is not a cursor"), ...BAD_INPUT });
  const extreme = await ask("deals", { after: deals("999999999999999999", "999999999999999999") });
  expect(extreme.errors).toBeUndefined();
});

test.each([0, -1, 101, 1000])("first: %i is refused by every list", async (first) => {
  for (const list of ["deals", "persons", "organizations", "meetings", "syncRuns"] as const) {
    const { errors } = await ask(list, { first });
    expect(errors?.[0]).toMatchObject({ message: "first must be from 1 to 100.", ...BAD_INPUT });
  }
});

test("a filter by no status at all is refused: it could mean all or none", async () => {
  const { errors } = await ask("deals", { filter: { status: [] } });
  expect(errors?.[0]).toMatchObject({ message: expect.stringContaining("filter.status"), ...BAD_INPUT });
});

test("while nothing is connected the records' lists are empty and the meetings stay; old cursors end", async () => {
  const tenant = `leaving ${randomUUID()}`;
  await connectAndMatch(tenant);
  const { pageInfo } = await pageOf("deals", { first: 1 }, tenant);
  dataOf(await service.ask("mutation { disconnect { __typename } }", {}, { tenant }));
  for (const list of ["deals", "persons", "organizations"] as const)
    expect((await pageOf(list, {}, tenant)).nodes).toEqual([]);
  expect((await pageOf("meetings", {}, tenant)).nodes).toHaveLength(1);
  const { errors } = await ask("deals", { after: pageInfo.endCursor }, tenant);
  expect(errors?.[0]).toMatchObject({ message: expect.stringContaining("another CRM connection"), ...BAD_INPUT });
});
