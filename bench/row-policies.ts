import { rmSync } from "node:fs";
import { join } from "node:path";
import { SignJWT } from "jose";
import { Client } from "pg";
import { startEmbeddedPostgres } from "../src/database/embedded/embedded-postgres";
import { createDatabase } from "./database";
import { column, failed, ratio, say } from "./print";
import { makeKeys, type RunningService, startCrm, startService } from "./processes";
import { connectTenants, names, waitForRuns, withClient } from "./tenants";

const TENANTS = 12;
const DEALS = 300;
const CALLERS = 8;
const SECONDS = 5;
const ROUNDS = 4;

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

/** Callers who each go from tenant to tenant. @returns operations a second */
async function load(service: RunningService, callers: readonly Caller[]): Promise<number> {
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
  return answered / SECONDS;
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
      await load(service, callers);
      say(
        `${TENANTS} tenants of ${DEALS} deals, ${CALLERS} callers of a briefing, ${SECONDS} s each; operations a second`,
      );
      say(["with policies", "without", "with : without"].map((head) => column(head, 16)).join(""));
      for (let round = 0; round < ROUNDS; round += 1) {
        await client.query(policies(true));
        const held = await load(service, callers);
        await client.query(policies(false));
        const open = await load(service, callers);
        say([held.toFixed(0), open.toFixed(0), ratio(held, open)].map((text) => column(text, 16)).join(""));
      }
    });
  } finally {
    await service.stop();
    await crm.stop();
    await server.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

main().catch(failed);
