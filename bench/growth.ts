import { rmSync } from "node:fs";
import { join } from "node:path";
import { createUneven, LARGE, NO_CRM, SMALL, TIMES } from "./api-filled";
import { median } from "./api-load";
import { DEALS_OF_TENANT } from "./briefing-data";
import { BRIEFING, QUIET_LIST } from "./briefing-queries";
import { globalMeetingOf, signTokens } from "./briefing-targets";
import { startRoomyPostgres } from "./database";
import { failed, ratio, say } from "./print";
import { type RunningService, startService } from "./processes";
import { withClient } from "./tenants";

/** Requests of each kind to each of the two sizes, after as many that are not measured. */
const ROUNDS = 40;
const WARM_UP = 15;

const global = (type: string, copy: number, crmId: number) =>
  Buffer.from(`${type}:${copy}:${crmId}`).toString("base64url");

type Ask = (copy: number) => { query: string; variables?: object };

const PAGE = "pageInfo { hasNextPage endCursor }";
const DEALS = `query ($filter: DealFilter, $orderBy: DealOrder) { deals(filter: $filter, orderBy: $orderBy) {
  nodes { id title status value { amount currency } stage { name } owner { name } organization { name } } ${PAGE} } }`;
const COUNTS =
  "query ($filter: DealFilter) { deals(first: 1, filter: $filter) { totalCount totals { amount currency } } }";
const MEETINGS = `query ($filter: MeetingFilter) { meetings(filter: $filter) {
  nodes { id title startsAt ownerEmail match { status deal { title } } attendees { email } } ${PAGE} } }`;

/** By what the orders of deals are narrowed to; the value is one that one deal in a hundred of a large tenant has. */
const FILTERS: Record<string, (copy: number) => object> = {
  "no filter": () => ({}),
  open: () => ({ status: ["OPEN"] }),
  "won, lost": () => ({ status: ["WON", "LOST"] }),
  "verdict COOLING": () => ({ verdict: ["COOLING"] }),
  "verdicts QUIET, GHOSTED": () => ({ verdict: ["QUIET", "GHOSTED"] }),
  "a pipeline": (copy) => ({ pipelineId: global("Pipeline", copy, 1) }),
  "a stage": (copy) => ({ stageId: global("Stage", copy, 3) }),
  "an owner": (copy) => ({ ownerId: global("CrmUser", copy, 4) }),
  "a quiet pipeline": (copy) => ({ verdict: ["QUIET", "GHOSTED"], pipelineId: global("Pipeline", copy, 2) }),
  "a value and more": (copy) => ({ currency: "EUR", minValue: String(1_000 + 0.9 * dealsOf(copy)) }),
};
const ORDERS = ["UPDATED_AT_DESC", "VALUE_DESC", "QUIET_DAYS_DESC"];
const dealsOf = (copy: number) => DEALS_OF_TENANT * (copy === LARGE ? TIMES : 1);

/** Of 6 KB, on the deal of each tenant's second meeting and its person: so many of a small tenant, and a hundred times as many of the large one. */
const NOTES = 20;
const ADD_NOTES = `INSERT INTO note
  SELECT t, t, 1000000 + g, (SELECT string_agg(md5(g || ':' || x), ' ') FROM generate_series(1, 180) x), 1, 4, 4, NULL, now() - g * interval '1 hour'
  FROM generate_series(1, ${LARGE}) t, generate_series(1, CASE t WHEN ${LARGE} THEN ${NOTES * TIMES} ELSE ${NOTES} END) g`;

const CASES: Record<string, Ask> = {
  [`a briefing of a deal with ${NOTES} notes (${NOTES * TIMES})`]: (copy) => ({
    query: BRIEFING,
    variables: { id: globalMeetingOf(copy, 2) },
  }),
  "50 quiet deals": () => ({ query: QUIET_LIST }),
  ...Object.fromEntries(
    ORDERS.flatMap((orderBy) =>
      Object.entries(FILTERS).map(([name, filter]): [string, Ask] => [
        `deals ${orderBy}, ${name}`,
        (copy) => ({ query: DEALS, variables: { orderBy, filter: filter(copy) } }),
      ]),
    ),
  ),
  persons: () => ({ query: `{ persons { nodes { id name emails { address } organization { name } } ${PAGE} } }` }),
  organizations: () => ({ query: `{ organizations { nodes { id name owner { name } } ${PAGE} } }` }),
  meetings: () => ({ query: MEETINGS }),
  "meetings that need a choice": () => ({ query: MEETINGS, variables: { filter: { status: ["NEEDS_CHOICE"] } } }),
  "meetings of an owner": () => ({ query: MEETINGS, variables: { filter: { ownerEmail: "u1@seller.example" } } }),
  "meetings of an owner who has none": () => ({
    query: MEETINGS,
    variables: { filter: { ownerEmail: "u2@seller.example" } },
  }),
  "meetings found by text (that none has)": () => ({ query: MEETINGS, variables: { filter: { search: "p7@buyer" } } }),
  "count and totals of deals (12,000 are not counted)": () => ({ query: COUNTS }),
  "count and totals of a pipeline's deals": (copy) => ({
    query: COUNTS,
    variables: { filter: { pipelineId: global("Pipeline", copy, 1) } },
  }),
};

/** @returns milliseconds */
async function ask({ url }: RunningService, token: string, request: object): Promise<number> {
  const began = performance.now();
  const answer = await fetch(`${url}/graphql`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify(request),
  });
  const { errors } = (await answer.json()) as { errors?: { message: string }[] };
  if (errors?.[0]) throw new Error(errors[0].message);
  return performance.now() - began;
}

async function measure(service: RunningService, tokens: readonly string[]): Promise<void> {
  say(["p50 ms, deals of the tenant:", DEALS_OF_TENANT, DEALS_OF_TENANT * TIMES, "ratio"].join("  "));
  for (const [name, request] of Object.entries(CASES)) {
    const took: [small: number[], large: number[]] = [[], []];
    for (let round = 0; round < WARM_UP + ROUNDS; round += 1) {
      for (const [index, copy] of [(round % SMALL) + 1, LARGE].entries()) {
        const ms = await ask(service, tokens[copy - 1] ?? "", request(copy));
        if (round >= WARM_UP) took[index]?.push(ms);
      }
    }
    const [small, large] = [median(took[0]), median(took[1])];
    say(`${name.padEnd(52)} ${small.toFixed(1).padStart(6)} ${large.toFixed(1).padStart(7)}  ${ratio(large, small)}`);
  }
}

/** What a page of a list costs a tenant with 120 matched deals and one with 12,000, in turn, in one database. */
async function main(): Promise<void> {
  const directory = join(".data", `bench-${process.pid}`);
  const server = await startRoomyPostgres(directory);
  try {
    const databaseUrl = await createUneven(server.url.reveal());
    await withClient(databaseUrl, (client) => client.query(`${ADD_NOTES}; ANALYZE note`));
    const service = await startService({ crm: NO_CRM, databaseUrl, roles: "api" });
    await measure(service, await signTokens(service.jwtSecret, LARGE)).finally(() => service.stop());
  } finally {
    await server.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

main().catch(failed);
