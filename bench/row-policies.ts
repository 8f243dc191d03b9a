import { rmSync } from "node:fs";
import { join } from "node:path";
import { SignJWT } from "jose";
import type { Client } from "pg";
import { startEmbeddedPostgres } from "../src/database/embedded/embedded-postgres";
import { median } from "./api-load";
import { postgresCpuSeconds } from "./cpu";
import { createDatabase } from "./database";
import { column, failed, ratio, say } from "./print";
import { makeKeys, type RunningService, startCrm, startService, useOf } from "./processes";
import { connectTenants, names, waitForRuns, withClient } from "./tenants";

const TENANTS = 12;
const DEALS = 300;
const CALLERS = 8;
const SECONDS = 4;
const PAIRS = 9;

const BRIEFING = `query ($id: ID!) { briefing(meetingId: $id) {
  meeting { title attendees { email match { person { name } } } }
  deal { title value { amount currency } stage { name pipeline { name } } owner { name } quiet { verdict reasons { message } }
    participants { name } recentNotes { text } recentActivities { subject } nextActivity { subject } }
  persons { name emails { address } organization { name } } otherDeals { title } timeline { kind at } gaps { code } asOf } }`;
const RECORD = `mutation ($input: RecordMeetingInput!) { recordMeeting(input: $input) { ... on MeetingSuccess { meeting { id } } } }`;

/** Switches the policies of all tables off and on again: what they cost is the difference. */
const policies = (on: boolean) => `DO $$ DECLARE name text; BEGIN
  FOR name IN SELECT tablename FROM pg_policies WHERE policyname = 'of_tenant' LOOP
    EXECUTE format('ALTER TABLE %I ${on ? "ENABLE" : "DISABLE"} ROW LEVEL SECURITY', name);
  END LOOP; END $$`;

interface Caller {
  token: string;
  meetingId: string;
}

async function ask<T>({ url }: RunningService, token: string, query: string, variables: object): Promise<T> {
  const answer = await fetch(`${url}/graphql`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify({ query, variables }),
  });
  const { data, errors } = (await answer.json()) as { data: T; errors?: { message: string }[] };
  if (errors?.[0]) throw new Error(errors[0].message);
  return data;
}

/** A member of each tenant, with a meeting of three persons on deals. */
async function recordMeetings(service: RunningService, client: Client, tenants: string[]): Promise<Caller[]> {
  const found = await client.query<{ address: string }>(
    `SELECT DISTINCT a.address FROM person_address a JOIN deal d ON d.tenant_id = a.tenant_id AND d.copy_id = a.copy_id AND d.person_id = a.person_id
     WHERE d.status = 'open' ORDER BY 1 LIMIT 3`,
  );
  const attendees = found.rows.map(({ address }) => ({ email: address }));
  return Promise.all(
    tenants.map(async (tenant) => {
      const token = await new SignJWT({ tenant, role: "member", plan: "sales" })
        .setProtectedHeader({ alg: "HS256" })
        .setSubject("seller")
        .setExpirationTime("2h")
        .sign(new TextEncoder().encode(service.jwtSecret));
      const startsAt = new Date().toISOString();
      const input = { externalId: "bench", title: "Bench", startsAt, ownerEmail: "seller@bench.example", attendees };
      const { recordMeeting } = await ask<{ recordMeeting: { meeting: { id: string } } }>(service, token, RECORD, {
        input,
      });
      return { token, meetingId: recordMeeting.meeting.id };
    }),
  );
}

/**
 * Callers who each go from tenant to tenant.
 * @returns milliseconds of CPU time of the service and PostgreSQL for an operation: other work on the machine changes it
 * less than the time on a clock
 */
async function load(service: RunningService, callers: readonly Caller[], directory: string): Promise<number> {
  const cpuSeconds = () => useOf(service.pid).cpuSeconds + postgresCpuSeconds(directory);
  const before = cpuSeconds();
  const end = performance.now() + SECONDS * 1000;
  let answered = 0;
  const lane = async (from: number) => {
    for (let turn = from; performance.now() < end; turn += 1) {
      const { token, meetingId } = callers[turn % callers.length] as Caller;
      await ask(service, token, BRIEFING, { id: meetingId });
      answered += 1;
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, (_, index) => lane(index)));
  return ((cpuSeconds() - before) * 1000) / answered;
}

async function main(): Promise<void> {
  const directory = join(".data", `bench-${process.pid}`);
  const server = await startEmbeddedPostgres({ directory, durable: true });
  const crm = await startCrm(DEALS);
  const databaseUrl = await createDatabase(server.url.reveal(), "row_policies");
  const service = await startService({ crm: crm.crm, databaseUrl, keys: makeKeys() });
  try {
    await withClient(databaseUrl, async (client) => {
      const tenants = names("tenant", TENANTS);
      await connectTenants(service, tenants);
      await waitForRuns(client, "tenant", ({ ended }) => ended === TENANTS);
      await client.query("ANALYZE");
      const callers = await recordMeetings(service, client, tenants);
      const measure = () => load(service, callers, directory);
      await measure();
      say(
        `${TENANTS} tenants of ${DEALS} deals, ${CALLERS} callers of a briefing, ${SECONDS} s each; CPU ms of service and PostgreSQL for an operation`,
      );
      say(["without", "with policies", "without : with"].map((head) => column(head, 16)).join(""));
      const ratios: number[] = [];
      for (let pair = 0; pair < PAIRS; pair += 1) {
        await client.query(policies(pair % 2 === 0));
        const first = await measure();
        await client.query(policies(pair % 2 !== 0));
        const second = await measure();
        const [held, open] = pair % 2 === 0 ? [first, second] : [second, first];
        ratios.push(open / held);
        say([open.toFixed(2), held.toFixed(2), ratio(open, held)].map((text) => column(text, 16)).join(""));
      }
      say(`median of ${PAIRS} pairs, without : with: ${median(ratios).toFixed(2)}`);
    });
  } finally {
    await service.stop();
    await crm.stop();
    await server.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

main().catch(failed);
