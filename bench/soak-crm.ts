import { once } from "node:events";
import type { Client } from "pg";
import { type Simulator, startSimulator } from "../simulator";
import { failed, say } from "./print";
import type { Started } from "./processes";
import { startRouter } from "./router";
import { withClient } from "./tenants";

/** Tenants are called so, with the number of their company. */
export const PREFIX = "soak";

/** As customers are: many small ones, few large ones; tokens of a day and requests in 2 s by their seats and plans. */
const SIZES = [
  { companies: 12, deals: 40, dailyTokens: 90_000, burstLimit: 80 },
  { companies: 6, deals: 200, dailyTokens: 600_000, burstLimit: 160 },
  { companies: 2, deals: 1_500, dailyTokens: 3_000_000, burstLimit: 480 },
];
export const COMPANIES = SIZES.reduce((sum, { companies }) => sum + companies, 0);
const FIRST_ID = 5_001;
/** Each time somebody works in one of the companies. */
const WORK_MS = 250;
/** The mark of a note of the benchmark, by which it is found again. */
const MARK = /soak-\d+-\d+/;

/** What the benchmark asks its CRM. */
type Order = { kind: "consent"; company: number } | { kind: "outage" | "mend" | "rest" | "people" | "tell" };

/** What one company's connected user sees. */
interface Seen {
  /** A line for each record. */
  records: Record<"deal" | "person" | "organization" | "activity" | "note", string[]>;
  /** Notes that the benchmark wrote. */
  written: { id: number; mark: string }[];
}

function startCompanies(): Promise<Simulator[]> {
  const companies = SIZES.flatMap(({ companies, ...size }) => Array.from({ length: companies }, () => size));
  return Promise.all(
    companies.map((size, index) => {
      const id = FIRST_ID + index;
      return startSimulator({ ...size, seed: id, company: { id, name: `Company ${id}`, domain: `company-${id}` } });
    }),
  );
}

/** A title is changed, a note written, an activity done or a person added. */
function work({ control, company }: Simulator, round: number): void {
  const { dealId, personId } = company.stories.singleDeal;
  const deals = [...company.deals.values()].filter(({ is_deleted, is_archived }) => !is_deleted && !is_archived);
  const deal = deals[round % deals.length]?.id ?? dealId;
  const kinds = [
    () => control.change("deal", deal, { title: `Deal ${deal}, round ${round}` }),
    () => control.add("note", { deal_id: dealId, content: `A colleague's note ${round}` }),
    () => control.change("person", personId, { name: `Person ${round}` }),
    () => control.add("activity", { deal_id: dealId, subject: `Call ${round}` }),
  ];
  kinds[round % kinds.length]?.();
}

function seenOf({ control, company }: Simulator): Seen {
  const { deals, persons, organizations, activities, notes } = control.visibleTo(company.stories.singleDeal.ownerId);
  const written = [...company.notes.values()].flatMap(({ id, content }) => {
    const [mark] = MARK.exec(content) ?? [];
    return mark ? [{ id, mark }] : [];
  });
  const records = {
    deal: deals.map(({ id, title }) => `${id} ${title}`),
    person: persons.map(({ id, name }) => `${id} ${name}`),
    organization: organizations.map(({ id, name }) => `${id} ${name}`),
    activity: activities.map(({ id, subject }) => `${id} ${subject}`),
    note: notes.map(({ id }) => `${id}`),
  };
  return { records, written };
}

/** Asks the CRM's process. */
export async function tell<T>({ child }: Started, order: Order): Promise<T> {
  const answer = once(child, "message");
  child.send(order);
  return ((await answer) as [T])[0];
}

/** What the day has left behind. */
export interface Found {
  /** Copies that hold what their company shows. */
  equal: number;
  lost: number;
  doubled: number;
  unsettled: number;
}

/** @param marks of all notes that were to be written */
export async function found(crm: Started, databaseUrl: string, marks: readonly string[]): Promise<Found> {
  const seen = await tell<Seen[]>(crm, { kind: "tell" });
  const times = new Map<string, number>();
  for (const { mark } of seen.flatMap(({ written }) => written)) times.set(mark, (times.get(mark) ?? 0) + 1);
  const ofMarks = marks.map((mark) => times.get(mark) ?? 0);
  const ids = new Set(seen.flatMap(({ written }, company) => written.map(({ id }) => `${PREFIX}${company}/${id}`)));
  return withClient(databaseUrl, async (client) => {
    const { rows: receipts } = await client.query<{ state: string; note: string }>(RECEIPTS);
    const withoutNote = receipts.filter(({ state, note }) => state === "WRITTEN" && !ids.has(note));
    const copies = await copiesOf(client);
    return {
      equal: seen.filter(({ records }, company) => isEqual(records, copies.get(`${PREFIX}${company}`))).length,
      lost: ofMarks.filter((count) => count === 0).length + withoutNote.length,
      doubled: ofMarks.filter((count) => count > 1).length,
      unsettled: receipts.filter(({ state }) => state === "SENDING" || state === "UNKNOWN").length,
    };
  });
}

const RECEIPTS = `SELECT w.state, t.external_id || '/' || w.crm_note_id AS note
  FROM note_write w JOIN tenant t ON t.id = w.tenant_id`;
/** How a record of each table is shown, as `seenOf` shows those of the CRM. */
const SHOWN: Record<keyof Seen["records"], string> = {
  deal: "crm_id || ' ' || title",
  person: "crm_id || ' ' || name",
  organization: "crm_id || ' ' || name",
  activity: "crm_id || ' ' || subject",
  note: "crm_id::text",
};

/** By tenant and table. */
async function copiesOf(client: Client): Promise<Map<string, Map<string, string[]>>> {
  const copies = new Map<string, Map<string, string[]>>();
  for (const [table, shown] of Object.entries(SHOWN)) {
    const { rows } = await client.query<{ tenant: string; lines: string[] }>(
      `SELECT t.external_id AS tenant, array_agg(${shown.replaceAll("crm_id", "r.crm_id")}) AS lines
       FROM ${table} r JOIN connection c ON c.tenant_id = r.tenant_id AND c.copy_id = r.copy_id
       JOIN tenant t ON t.id = r.tenant_id GROUP BY 1`,
    );
    for (const { tenant, lines } of rows) {
      copies.set(tenant, (copies.get(tenant) ?? new Map<string, string[]>()).set(table, lines));
    }
  }
  return copies;
}

function isEqual(records: Seen["records"], copy: ReadonlyMap<string, string[]> | undefined): boolean {
  return Object.entries(records).every(
    ([table, lines]) => lines.toSorted().join("\n") === copy?.get(table)?.toSorted().join("\n"),
  );
}

async function main(): Promise<void> {
  const simulators = await startCompanies();
  const sides = simulators.map(({ url, clientId, clientSecret, redirectUrl, stop }) => ({
    crm: {
      ...{ CRM_BASE_URL: url, CRM_AUTH_URL: url, CRM_REDIRECT_URL: redirectUrl },
      ...{ CRM_CLIENT_ID: clientId, CRM_CLIENT_SECRET: clientSecret },
    },
    ...{ pid: process.pid, stop },
  }));
  const [first] = sides;
  if (!first) throw new Error("there is no company");
  const router = await startRouter(first);
  let round = 0;
  const working = setInterval(() => {
    const simulator = simulators[round % simulators.length];
    if (simulator) work(simulator, Math.floor(round / simulators.length));
    round += 1;
  }, WORK_MS);
  const answer = (order: Order): unknown => {
    if (order.kind === "consent") router.consentsGoTo(sides[order.company] ?? first);
    if (order.kind === "outage")
      for (const { control } of simulators) control.fail({ match: "/", with: { status: 503 } });
    if (order.kind === "mend") for (const { control } of simulators) control.clearFaults();
    if (order.kind === "rest") clearInterval(working);
    if (order.kind === "people") return simulators.map(({ company }) => company.stories.singleDeal.email);
    return order.kind === "tell" ? simulators.map(seenOf) : null;
  };
  process.on("message", (order: Order) => process.send?.(answer(order)));
  process.once("SIGTERM", () => process.exit(0));
  const { CRM_BASE_URL: _url, CRM_AUTH_URL: _auth, ...app } = first.crm;
  say(`${JSON.stringify({ port: Number(new URL(router.url).port), ...app })} listening at`);
}

if (require.main === module) main().catch(failed);
