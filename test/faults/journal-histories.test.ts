import { setTimeout as sleep } from "node:timers/promises";
import { draw, IN_THE_CRM, pick, type Stage } from "../support/histories";
import { type Program, startProgram } from "../support/processes";
import fc from "../support/properties";
import { environmentFor } from "../support/service";
import { connect, dataOf, noJobIsDue, recordMeeting, syncEnds, until } from "../support/stories";
import { useService } from "../support/world";

const HISTORIES = Number(process.env.HISTORIES ?? (process.env.DEEP ? 500 : 8));
const CHANGES = 6;
/** What a history may take, with a worker that starts. */
const HISTORY_MS = 20_000;
/** Within that a run of the small company ends. */
const LATEST_KILL_MS = 1_500;

const { simulator, database, service } = useService({ deals: 40, roles: ["api"] });
let stage: Stage;
let worker: Program | null = null;
let kills = 0;

function startWorker(): void {
  const database_url = database.url.reveal();
  const environment = { ...environmentFor(simulator), ROLES: "worker", LOG_LEVEL: "info", SYNC_INTERVAL_SECONDS: "0" };
  worker = startProgram("src/main.js", { ...environment, DATABASE_URL: database_url });
}
async function kill(): Promise<void> {
  worker?.child.kill("SIGKILL");
  await worker?.ended;
  worker = null;
}
/** What a minute would do for what a worker left: its lease is over, and its jobs are free. */
async function timePasses(): Promise<void> {
  await database.query("UPDATE sync_run SET lease_until = now() - interval '1 second' WHERE state = 'RUNNING'");
  await database.query("UPDATE sync_run SET queued_at = now() - interval '1 minute' WHERE state = 'QUEUED'");
  await database.query(
    "UPDATE graphile_worker._private_jobs SET locked_at = NULL, locked_by = NULL, run_at = now() WHERE locked_at IS NOT NULL",
  );
}

beforeAll(async () => {
  simulator.control.fail({ match: /^\/api\//, with: { kind: "delay", ms: 40 } });
  startWorker();
  await connect(service, simulator);
  await syncEnds(service);
  const { deals, persons } = simulator.company;
  const open = [...deals.values()].filter((deal) => deal.status === "open" && deal.person_id !== null).slice(0, 20);
  const people = [...new Set(open.map(({ person_id }) => person_id ?? 0))];
  const strangers = [...persons.keys()].filter((id) => !people.includes(id)).slice(0, 12);
  stage = { simulator, service, now: Date.now, deals: open.map(({ id }) => id), persons: people, strangers };
  for (const id of people.slice(0, 8)) {
    await recordMeeting(service, [persons.get(id)?.emails[0]?.value ?? "nobody@nowhere.example"]);
  }
  await noJobIsDue(database);
}, 120_000);
afterAll(kill);

/** What each deal was when it was first looked at: of each kind the text, and where its history begins. */
interface First {
  state: Record<string, string | null>;
  after: number;
}
const firsts = new Map<number, First>();

interface Looked {
  id: number;
  /** Without PARTICIPANTS or VERDICT where nothing is known of them. */
  state: Record<string, string | null>;
  entries: { id: number; kind: string; was: string | null; became: string | null }[];
}

/** The deals with their entries, in one snapshot. */
const look = (): Promise<Looked[]> =>
  database.query<Looked & Record<string, unknown>>(`
    SELECT d.crm_id::int AS id, jsonb_build_object('STAGE', stage_id::text, 'OWNER', owner_id::text, 'PERSON', person_id::text,
        'ORGANIZATION', organization_id::text, 'TITLE', title, 'STATUS', status, 'CLOSE_DATE', expected_close_date::text,
        'VALUE', trim_scale(value) || ' ' || currency)
      || CASE WHEN participants_once_known THEN jsonb_build_object('PARTICIPANTS', (SELECT string_agg(person_id::text, ',' ORDER BY person_id)
        FROM deal_participant x WHERE x.copy_id = d.copy_id AND x.deal_id = d.crm_id)) ELSE '{}' END
      || coalesce((SELECT jsonb_build_object('VERDICT', s.verdict) FROM deal_silence s JOIN judged_copy USING (tenant_id, copy_id, generation)
        WHERE s.copy_id = d.copy_id AND s.deal_id = d.crm_id AND s.phase < coalesce((SELECT min(u.phase) FROM deal_silence u WHERE u.copy_id = d.copy_id AND u.deal_id = d.crm_id
            AND u.generation = s.generation AND (NOT u.is_told OR u.holds_from > now())), 1000)
        ORDER BY s.phase DESC LIMIT 1), '{}') AS state,
      coalesce((SELECT jsonb_agg(jsonb_build_object('id', c.id, 'kind', kind, 'was', was, 'became', became) ORDER BY c.id)
        FROM deal_change c WHERE c.copy_id = d.copy_id AND c.deal_id = d.crm_id), '[]') AS entries
    FROM deal d JOIN connection USING (tenant_id, copy_id) ORDER BY 1`);

const lastOf = ({ entries }: Looked) => entries.at(-1)?.id ?? 0;

/** From the first state by each entry to the present one, and no entry says what was not. */
function replay(found: readonly Looked[]): number {
  let replayed = 0;
  for (const deal of found) {
    const first = firsts.get(deal.id);
    for (const [kind, present] of Object.entries(deal.state)) {
      if (!first || !(kind in first.state)) continue;
      const entries = deal.entries.filter((entry) => entry.kind === kind && entry.id > first.after);
      const told = [first.state[kind], ...entries.map(({ became }) => became)];
      expect([deal.id, kind, ...entries.map(({ was }) => was), present]).toEqual([deal.id, kind, ...told]);
      replayed += entries.length;
    }
  }
  return replayed;
}

/** What is known for the first time begins here; what is no more is forgotten. */
function begin(found: readonly Looked[]): void {
  firsts.clear();
  for (const deal of found) firsts.set(deal.id, { state: deal.state, after: lastOf(deal) });
}

const REQUEST = (kind: string) => `mutation { requestSync(kind: ${kind}) { __typename ... on Refusal { message } } }`;

async function sync(kind: string, killedAfterMs: number[]): Promise<void> {
  expect(dataOf(await service.ask<{ requestSync: object }>(REQUEST(kind))).requestSync).toEqual({
    __typename: "SyncRequested",
  });
  for (const ms of killedAfterMs) {
    await sleep(ms);
    await kill();
    kills += 1;
    await timePasses();
    startWorker();
  }
  expect((await syncEnds(service)).state).toBe("SUCCEEDED");
  await noJobIsDue(database);
}

/** No answer has a name of who is not matched. */
async function namesNobodyElse(): Promise<void> {
  const query = "{ deals(first: 50) { nodes { changes(first: 50) { kind from to } } } }";
  const { deals } = dataOf(await service.ask<{ deals: { nodes: { changes: Record<string, string>[] }[] } }>(query));
  const told = deals.nodes.flatMap(({ changes }) => changes).filter(({ kind }) => kind !== "TITLE");
  const text = told.flatMap(({ from, to }) => [from, to]).join("\n");
  const names = await database.query<{ name: string; is_matched: boolean }>(`
    SELECT name, bool_or(EXISTS (SELECT 1 FROM matched_record m WHERE m.copy_id = t.copy_id AND m.entity = t.entity AND m.crm_id = t.crm_id))
      AS is_matched
    FROM (SELECT copy_id, 'PERSON' AS entity, crm_id, name FROM person UNION ALL SELECT copy_id, 'ORGANIZATION', crm_id, name FROM organization
          UNION ALL SELECT copy_id, 'USER', crm_id, name FROM crm_user) t GROUP BY name`);
  const users = new Set([...simulator.company.users.values()].map(({ name }) => name));
  const unmatched = names.filter(({ name, is_matched }) => !is_matched && !users.has(name));
  expect(unmatched.length).toBeGreaterThan(5);
  expect(unmatched.filter(({ name }) => text.includes(name))).toEqual([]);
}

/** A user's zone is a change of settings, which is told once for the connection. */
const WAYS = Object.keys(IN_THE_CRM).filter((way) => way !== "the user moved to another zone");
const OF_DEALS = WAYS.filter((way) => way.startsWith("a deal"));

const history = fc.record({
  changes: fc.array(draw, { minLength: CHANGES, maxLength: CHANGES }),
  kind: fc.constantFrom("INCREMENTAL", "INCREMENTAL", "FULL", "RECONCILE"),
  kills: fc.array(fc.nat(LATEST_KILL_MS), { maxLength: 2 }),
});

test(
  "after random changes that workers who are killed bring, the journal leads from what was to what is, and from nothing else",
  async () => {
    let [replayed, runs] = [0, 0];
    begin(await look());
    await fc.assert(
      fc.asyncProperty(history, async ({ changes, kind, kills: killedAfterMs }) => {
        for (const [index, drawn] of changes.entries())
          await IN_THE_CRM[pick(index % 2 === 0 ? OF_DEALS : WAYS, drawn.kind)]?.(stage, drawn);
        await sync(kind, killedAfterMs);
        await until("all flips are told", async () => {
          const due = "SELECT 1 FROM deal_silence WHERE NOT is_told AND holds_from <= now()";
          return (await database.query(due)).length === 0;
        });
        const found = await look();
        replayed += replay(found);
        begin(found);
        await namesNobodyElse();
        runs += 1;
        if (runs % 4 > 0) return;
        // What nothing tells as a change, a person who was hidden for one, is seen by the first. The second finds nothing new.
        await sync("RECONCILE", []);
        replayed += replay(await look());
        const entries = "SELECT deal_id::int, kind, was, became FROM deal_change WHERE kind <> 'VERDICT' ORDER BY id";
        const before = await database.query(entries);
        await sync("RECONCILE", []);
        expect(await database.query(entries)).toEqual(before);
        begin(await look());
      }),
      { numRuns: HISTORIES, endOnFailure: true },
    );
    expect(replayed).toBeGreaterThan(HISTORIES);
    expect(kills).toBeGreaterThan(HISTORIES / 4);
  },
  HISTORIES * HISTORY_MS + 60_000,
);
