import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { writeNote } from "../support/notes";
import { dataOf, noJobIsDue, recordMeeting, syncEnds, until } from "../support/stories";
import { useCrm } from "../support/world";

// What is silent for one tenant holds up no other.

const { world, simulator, database } = useCrm({ deals: 10 });

/** As many notes of one meeting whose answers were lost as where a team writes while the CRM is silent. */
const lose = (count: number) =>
  database.query(
    `INSERT INTO note_write SELECT (jsonb_populate_record(w, jsonb_build_object('id', gen_random_uuid(), 'idempotency_key', n::text,
       'reference', 'CRM-' || lpad(n::text, 10, '0'), 'state', 'UNKNOWN', 'crm_note_id', NULL, 'settled_at', NULL,
       'requested_at', now() - interval '2 minutes', 'sent_at', now() - interval '2 minutes',
       'next_look_up_at', now() - interval '2 minutes'))).* FROM note_write w, generate_series(1, $1) n`,
    [count],
  );

// Seen red: of sixty lost notes the look-ups held all that a worker does at once, and another tenant's sync waited for six minutes.
test("lost notes of a tenant whose CRM is silent are looked for a few at a time, and another tenant's sync goes on", async () => {
  const service = await world.startService({ connected: ["acme", "globex"] });
  await noJobIsDue(database);
  const { id: meetingId } = await recordMeeting(service, [simulator.company.stories.singleDeal.email]);
  await writeNote(service, { meetingId });
  let asked = 0;
  const where = (query: Readonly<Record<string, string>>) => {
    const isLookUp = "deal_id" in query;
    if (isLookUp) asked += 1;
    return isLookUp;
  };
  const mend = simulator.control.fail({ match: "/api/v1/notes", method: "GET", where, with: { kind: "hang" } });
  await lose(20);
  await until("they are looked for", async () => asked > 1);
  const began = performance.now();
  dataOf(await service.ask("mutation { requestSync { __typename } }", {}, { tenant: "globex" }));
  expect(await syncEnds(service, { tenant: "globex" })).toMatchObject({ state: "SUCCEEDED" });
  expect(performance.now() - began).toBeLessThan(25_000);
  expect(asked).toBeLessThan(5);
  mend();
  const left = "SELECT 1 FROM note_write WHERE state = 'UNKNOWN' AND look_ups = 0";
  await until("all have been looked for", async () => (await database.query(left)).length === 0);
}, 150_000);

// Seen red: an operation's look whether the calls are stopped waited behind them for ten seconds, and everybody's reads failed.
test("tenants that cannot be made yet, as while no standby confirms it, hold up nobody else's reads", async () => {
  const service = await world.startService({ roles: ["api"] });
  const read = async () => dataOf(await service.ask("{ connection { state } }", {}, { tenant: "globex" }));
  await read();
  const holder = new Client({ connectionString: database.url.reveal() });
  await holder.connect();
  const tenants = Array.from({ length: 6 }, (_, index) => `held-${index}`);
  await holder.query("BEGIN");
  await holder.query("INSERT INTO tenant (external_id) SELECT unnest($1::text[])", [tenants]);
  const waiting = tenants.map((tenant) => service.ask("{ connection { state } }", {}, { tenant }));
  await until("they wait", async () => (await database.lockWaits()).length >= 4);
  // What is known of a stop is read anew.
  await sleep(1_200);
  const askedAt = performance.now();
  await read();
  expect(performance.now() - askedAt).toBeLessThan(2_500);
  await holder.query("ROLLBACK");
  await Promise.all(waiting);
  await holder.end();
});
