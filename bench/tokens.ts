import { rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Ledger, Simulator } from "../simulator";
import { PAGE_SIZE } from "../src/crm/api";
import { ADDRESSES } from "../src/crm/calls";
import { startEmbeddedPostgres } from "../src/database/embedded/embedded-postgres";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../src/platform/clock";
import { createTestDatabase } from "../test/support/database";
import { type Days, startDays } from "../test/support/days";
import { connect } from "../test/support/stories";
import { column, failed, say, whole, wholeOption } from "./print";

const FEWEST_DEALS = 100;
const MOST_DEALS = 100_000;
const DAILY_TOKENS = 30_000;
const OPEN_PERCENT = 20;
/** What changes in a day of the second kind: so much of each list, spread over its hours. */
const CHANGED_SHARE = 0.01;
const INTERVAL_MS = 15 * MINUTE_MS;
const WIDTH = 13;

const participantsOf = ({ operations }: Ledger) => operations["GET /api/v1/deals/:id/participants"]?.tokens ?? 0;
const userOf = ({ company }: Simulator) => company.stories.singleDeal.ownerId;

/** A run of a client that reads every list whole, and asks each deal who takes part in it. */
function everything({ control, ...simulator }: Simulator): number {
  const { organizations, persons, deals, activities, notes } = control.visibleTo(userOf({ control, ...simulator }));
  const pages = (records: readonly unknown[], price: number) =>
    Math.max(1, Math.ceil(records.length / PAGE_SIZE)) * price;
  const small = [ADDRESSES.currentUser, ADDRESSES.users, ADDRESSES.pipelines, ADDRESSES.stages];
  return (
    small.reduce((sum, { price }) => sum + price, 0) +
    pages(organizations, ADDRESSES.organizations.price) +
    pages(persons, ADDRESSES.persons.price) +
    pages(deals, ADDRESSES.deals.price) +
    pages(activities, ADDRESSES.activities.price) +
    pages(notes, ADDRESSES.notes.price) +
    deals.length * ADDRESSES.participants(0).price
  );
}

/** In each hour of the coming day its part of every list changes. */
function changeForADay({ simulator, clock, at }: Days): void {
  const { control } = simulator;
  const seen = control.visibleTo(userOf(simulator));
  const lists = [
    { entity: "deal", ids: seen.deals.map(({ id }) => id) },
    { entity: "person", ids: seen.persons.map(({ id }) => id) },
    { entity: "organization", ids: seen.organizations.map(({ id }) => id) },
    { entity: "activity", ids: seen.activities.map(({ id }) => id) },
    { entity: "note", ids: seen.notes.map(({ id }) => id) },
  ] as const;
  const hours = DAY_MS / HOUR_MS;
  for (let hour = 0; hour < hours; hour += 1) {
    at(new Date(clock().getTime() + (hour + 0.5) * HOUR_MS), () => {
      for (const { entity, ids } of lists) {
        const changed = Math.round(ids.length * CHANGED_SHARE);
        const part = ids.slice(Math.floor((changed * hour) / hours), Math.floor((changed * (hour + 1)) / hours));
        for (const id of part) control.change(entity, id, {});
      }
    });
  }
}

function row(name: string, spent: Ledger, unread: number): void {
  const asked = participantsOf(spent);
  const columns = [spent.ours - asked, asked, spent.ours, unread].map((value) => column(value, WIDTH));
  say(`  ${name.padEnd(30)}${columns.join("")}`);
}

async function measure(deals: number): Promise<void> {
  const database = await createTestDatabase({ empty: true });
  const days = await startDays(database, { deals, openPercent: OPEN_PERCENT, dailyTokens: DAILY_TOKENS });
  const unread = async () => {
    const sql = "SELECT count(*)::int AS n FROM deal WHERE NOT participants_known";
    return (await database.query<{ n: number }>(sql))[0]?.n ?? 0;
  };
  try {
    await connect(days.service, days.simulator);
    const once = everything(days.simulator);
    say(
      `\n${whole(deals)} deals; asking everything: ${whole(once)} once, ${whole((once * DAY_MS) / INTERVAL_MS)} a day`,
    );
    say(
      `  ${"".padEnd(30)}${["lists", "participants", "tokens", "deals unread"].map((name) => column(name, WIDTH)).join("")}`,
    );
    row("the first day", await days.endDay(), await unread());
    row("the second, nothing changes", await days.endDay(), await unread());
    changeForADay(days);
    row("the third, 1 % changes", await days.endDay(), await unread());
  } finally {
    await days.stop();
    await database.drop();
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { deals: { type: "string", default: "1000,10000" } } });
  const sizes = values.deals.split(",").map((text) => wholeOption("deals", text, FEWEST_DEALS, MOST_DEALS));
  const directory = join(".data", `bench-${process.pid}`);
  const postgres = await startEmbeddedPostgres({ directory, durable: false });
  process.env.CRM_TEST_SERVER_URL = postgres.url.reveal();
  try {
    say(`Tokens of a company that has ${whole(DAILY_TOKENS)} a day, a fifth of its deals open; simulated days`);
    for (const deals of sizes) await measure(deals);
  } finally {
    await postgres.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

main().catch(failed);
