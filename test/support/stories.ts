import { setTimeout as sleep } from "node:timers/promises";
import type { Simulator } from "../../simulator";
import type { ActorClaims } from "./actors";
import type { TestDatabase } from "./database";
import type { GraphQLAnswer, Service } from "./service";

/** A machine that others use as well may be several times slower. */
const WAIT_MS = 45_000;
const POLL_MS = 20;

/** Waits for something that comes by itself; fails with `what` when it does not come. */
export async function until<T>(what: string, look: () => Promise<T | null | undefined | false>): Promise<T> {
  for (let waited = 0; waited < WAIT_MS; waited += POLL_MS) {
    const found = await look();
    if (found) return found;
    await sleep(POLL_MS);
  }
  throw new Error(`waited ${WAIT_MS} ms in vain until ${what}`);
}

/** What follows a sync goes on after its end: whoever compares rows waits for it. */
export function noJobIsDue(database: Pick<TestDatabase, "query">): Promise<boolean> {
  return until("no job is due", async () => {
    return (await database.query("SELECT 1 FROM graphile_worker.jobs WHERE run_at <= now()")).length === 0;
  });
}

/** The data of an answer that must have no errors. */
export function dataOf<T>({ data, errors }: GraphQLAnswer<T>): T {
  if (errors) throw new Error(`the operation failed: ${JSON.stringify(errors)}`);
  return data;
}

export const START_CONNECT = `mutation { startConnect {
  ... on ConnectStarted { authorizationUrl expiresAt } ... on Refusal { code message field } } }`;
export const CONNECT = `mutation ($input: ConnectInput!) { connect(input: $input) {
  ... on ConnectSuccess { connection { state boundEmail companyName } } ... on Refusal { code message field } } }`;

export interface Refusal {
  code: string;
  message: string;
  field: string | null;
}

/** Starts a consent. @returns the state that the browser would carry */
export async function startConsent(service: Service, as?: ActorClaims): Promise<string> {
  const data = dataOf(
    await service.ask<{ startConnect: { authorizationUrl: string } & Partial<Refusal> }>(START_CONNECT, {}, as),
  );
  if (!data.startConnect.authorizationUrl) throw new Error(`startConnect was refused: ${data.startConnect.code}`);
  return new URL(data.startConnect.authorizationUrl).searchParams.get("state") ?? "";
}

export type ConnectAnswer = Partial<Refusal> & {
  connection?: { state: string; boundEmail: string; companyName: string };
};

export async function completeConsent(service: Service, input: object, as?: ActorClaims): Promise<ConnectAnswer> {
  const data = dataOf(await service.ask<{ connect: ConnectAnswer }>(CONNECT, { input }, as));
  return data.connect;
}

/** Connects as an admin would, without the browser. */
export async function connect(service: Service, simulator: Simulator, as?: ActorClaims): Promise<ConnectAnswer> {
  const state = await startConsent(service, as);
  return completeConsent(service, { code: simulator.control.approve({ state }), state }, as);
}

export interface EndedRun {
  state: string;
  progress: number;
  error: { code: string; message: string } | null;
  gaps: { resource: string; code: string; count: number }[];
  steps: Record<string, string | number>[];
}

const LAST_RUN = `{ connection { sync { current { id } last {
  state progress error { code message } gaps { resource code count }
  steps { resource state requests fetched written unchanged removed rejected } } } } }`;

/** Waits until no run is open. @returns the run that ended last */
export function syncEnds(service: Service, as?: ActorClaims): Promise<EndedRun> {
  return until("the sync run ends", async () => {
    const data = dataOf(
      await service.ask<{ connection: { sync: { current: object | null; last: EndedRun } } }>(LAST_RUN, {}, as),
    );
    return data.connection.sync.current ? null : data.connection.sync.last;
  });
}

/** Asks for a sync until it is taken on: a run may be under way that has read a part already. */
export async function syncAgain(
  service: Service,
  database: Pick<TestDatabase, "query">,
  as?: ActorClaims,
  kind = "INCREMENTAL",
): Promise<void> {
  await until("a sync is asked for", async () => {
    const asked = await service.ask<{ requestSync: { __typename: string } }>(
      `mutation { requestSync(kind: ${kind}) { __typename } }`,
      {},
      as,
    );
    return dataOf(asked).requestSync.__typename === "SyncRequested";
  });
  expect((await syncEnds(service, as)).state).toBe("SUCCEEDED");
  await noJobIsDue(database);
}

export const RECORD_MEETING = `mutation ($input: RecordMeetingInput!) { recordMeeting(input: $input) {
  ... on MeetingSuccess { meeting { id match { status rule reason } attendees { email side match { status rule } } } }
  ... on Refusal { code message field } } }`;

export interface RecordedMeeting {
  id: string;
  match: { status: string; rule: string | null; reason: string };
  attendees: { email: string; side: string; match: { status: string; rule: string | null } }[];
}

let recorded = 0;

export async function recordMeeting(
  service: Service,
  emails: string[],
  input: object = {},
  as?: ActorClaims,
): Promise<RecordedMeeting> {
  recorded += 1;
  const meeting = {
    externalId: `meeting-${recorded}`,
    title: "Next steps",
    startsAt: new Date().toISOString(),
    ownerEmail: "anna@seller.example",
    attendees: emails.map((email) => ({ email })),
    ...input,
  };
  const data = dataOf(
    await service.ask<{ recordMeeting: { meeting?: RecordedMeeting } & Partial<Refusal> }>(
      RECORD_MEETING,
      { input: meeting },
      as,
    ),
  );
  if (!data.recordMeeting.meeting) throw new Error(`recordMeeting was refused: ${data.recordMeeting.message}`);
  return data.recordMeeting.meeting;
}

interface MatchedDeal {
  status: string;
  deal: { crmId: string } | null;
}

/** What a meeting is about, as its readers have it. */
export async function readMatch(service: Service, id: string, as?: ActorClaims): Promise<MatchedDeal> {
  const query = "query ($id: ID!) { meeting(id: $id) { match { status deal { crmId } } } }";
  return dataOf(await service.ask<{ meeting: { match: MatchedDeal } }>(query, { id }, as)).meeting.match;
}

/** Jobs for runs that are there already; not in one statement, for on a cluster the queue is where the runs are not. */
export async function addRunJobs(database: Pick<TestDatabase, "query">): Promise<void> {
  const queued = await database.query(
    `SELECT tenant_id AS "tenantId", id AS "runId" FROM sync_run WHERE state = 'QUEUED'`,
  );
  for (const run of queued) await database.query("SELECT graphile_worker.add_job('sync_run', $1)", [run]);
}

/** A list's first page is asked for while the list before is still being stored; this waits until it is the list's turn. */
export async function listRuns(database: Pick<TestDatabase, "query">, tenant: string, resource: string): Promise<void> {
  const sql = `SELECT 1 FROM sync_step WHERE resource = $2 AND state = 'RUNNING'
    AND tenant_id = (SELECT id FROM tenant WHERE external_id = $1)`;
  await until(`the list ${resource} is read`, async () => (await database.query(sql, [tenant, resource])).length === 1);
}
