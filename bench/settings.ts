import { rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { SignJWT } from "jose";
import type { Client } from "pg";
import { createFilled, NO_CRM } from "./api-filled";
import { startRoomyPostgres } from "./database";
import { failed, say, whole, wholeOption } from "./print";
import { type RunningService, startService } from "./processes";
import { withClient } from "./tenants";

const DEALS_OF_TENANT = 120;
/** As many pages are asked for while all deals are judged anew, one after the other, and before. */
const PAGES = 40;
/** Looks at whether another transaction would have to wait for the copy. */
const LOOK_MS = 5;

const BOARD =
  "{ deals(first: 50, filter: { verdict: [QUIET, GHOSTED] }, orderBy: QUIET_DAYS_DESC) { nodes { title quiet { verdict } } } }";
const INPUT = "($input: QuietSettingsInput!)";
const PREVIEW = `query ${INPUT} { answer: previewQuietSettings(input: $input) { ... on QuietPreview { becomeQuiet stopBeingQuiet deals(first: 50) { title } } ... on Refusal { message } } }`;
const SAVE = `mutation ${INPUT} { answer: setQuietSettings(input: $input) { ... on QuietSettingsSuccess { settings { rejudging { total } } } ... on Refusal { message } } }`;
const REJUDGING = "{ quietSettings { rejudging { done total } } }";
const ALL = { businessDays: true, twoWayActivityTypes: [], thresholds: [{ code: "NO_RECENT_ACTIVITY", days: 5 }] };
const NONE = { businessDays: false, twoWayActivityTypes: [], thresholds: [] };

/** The first tenant's records so many times more, with ids of their own. */
async function multiply(client: Client, times: number): Promise<void> {
  const moved = {
    person: ["crm_id"],
    deal: ["crm_id", "person_id"],
    activity: ["crm_id", "deal_id", "person_id"],
    note: ["crm_id", "deal_id", "person_id"],
    deal_participant: ["deal_id", "person_id"],
    matched_record: ["crm_id"],
  };
  for (const [table, columns] of Object.entries(moved)) {
    const ids = columns.map((name) => `'${name}', t.${name} + 10000 * k`).join(", ");
    await client.query(
      `INSERT INTO ${table} SELECT (jsonb_populate_record(t, jsonb_build_object(${ids}))).*
       FROM ${table} t, generate_series(1, $1::int) k WHERE t.tenant_id = 1`,
      [times - 1],
    );
  }
  await client.query("VACUUM ANALYZE");
}

async function ask<T>({ url }: RunningService, token: string, query: string, input?: object): Promise<T> {
  const answer = await fetch(`${url}/graphql`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify({ query, variables: { input } }),
  });
  const { data, errors } = (await answer.json()) as { data: T; errors?: { message: string }[] };
  if (errors?.[0]) throw new Error(errors[0].message);
  return data;
}

type Stop = () => Promise<void> | void;

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
async function timed<T>(work: () => Promise<T>): Promise<{ ms: number; value: T }> {
  const began = performance.now();
  const value = await work();
  return { ms: performance.now() - began, value };
}

/** For how long at a time a page of a sync would have had to wait for the copy. */
function watchLock(client: Client): { end(): Promise<number[]> } {
  const held: number[] = [];
  let isOver = false;
  const watching = (async () => {
    for (let since: number | null = null; !isOver; await sleep(LOOK_MS)) {
      const { rows } = await client.query("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND classid = 20260015");
      if (rows.length > 0) since ??= performance.now();
      else if (since !== null) {
        held.push(performance.now() - since);
        since = null;
      }
    }
  })();
  return {
    async end() {
      isOver = true;
      await watching;
      return held.sort((a, b) => b - a);
    },
  };
}

async function pages(service: RunningService, token: string, isOver: () => Promise<boolean>): Promise<number[]> {
  const took: number[] = [];
  while (!(await isOver())) took.push((await timed(() => ask(service, token, BOARD))).ms);
  return took.sort((a, b) => a - b);
}
const middle = (sorted: readonly number[]) => sorted[Math.floor(sorted.length / 2)] ?? 0;

/** What a preview and a change of all settings cost a tenant with so many matched deals, and what others wait for meanwhile. */
async function main(): Promise<void> {
  const { values } = parseArgs({ options: { deals: { type: "string", default: "12000" } } });
  const deals = wholeOption("deals", values.deals, DEALS_OF_TENANT, 100_000);
  const directory = join(".data", `bench-${process.pid}`);
  const stops: Stop[] = [() => rmSync(directory, { recursive: true, force: true })];
  try {
    const postgres = await startRoomyPostgres(directory);
    stops.push(() => postgres.stop());
    const databaseUrl = await createFilled(postgres.url.reveal(), 1);
    await withClient(databaseUrl, (client) => multiply(client, Math.round(deals / DEALS_OF_TENANT)));
    const service = await startService({ crm: NO_CRM, databaseUrl, roles: "api,worker" });
    stops.push(service.stop);
    const token = await new SignJWT({ tenant: "tenant-1", role: "admin", plan: "sales" })
      .setProtectedHeader({ alg: "HS256" })
      .setSubject("admin")
      .setExpirationTime("2h")
      .sign(new TextEncoder().encode(service.jwtSecret));
    const isDone = async () => {
      const { quietSettings } = await ask<{ quietSettings: { rejudging: object | null } }>(service, token, REJUDGING);
      return quietSettings.rejudging === null;
    };
    // The first settings judge all that was filled in.
    for (const input of [ALL, NONE]) {
      await ask(service, token, SAVE, input);
      while (!(await isDone())) await sleep(LOOK_MS);
    }
    await withClient(databaseUrl, (client) => client.query("VACUUM ANALYZE"));
    let left = PAGES;
    const before = await pages(service, token, async () => left-- === 0);
    const preview = await timed(() => ask<object>(service, token, PREVIEW, ALL));
    say(`preview of ${whole(deals)} deals        ${whole(preview.ms)} ms`);
    for (const [name, input] of Object.entries({ "other days for all": ALL, "and back": NONE })) {
      await withClient(databaseUrl, async (client) => {
        const watch = watchLock(client);
        const saved = await timed(() => ask(service, token, SAVE, input));
        const judged = await timed(() => pages(service, token, isDone));
        const held = await watch.end();
        say(`${name}: saved in ${whole(saved.ms)} ms, judged anew in ${whole(judged.ms)} ms`);
        say(`  the copy was held for at most     ${held.slice(0, 3).map(whole).join(", ")} ms, ${held.length} times`);
        say(`  p50 of the board before : while   ${middle(before).toFixed(1)} : ${middle(judged.value).toFixed(1)} ms`);
      });
    }
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

main().catch(failed);
