import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";

/** Seconds of a step are exact to this; it is rare enough not to be felt. */
const LOOK_MS = 50;
const PATIENCE_MS = 15 * 60_000;

export interface Step {
  resource: string;
  state: string;
  requests: number;
  fetched: number;
  written: number;
}
interface Run {
  state: string;
  error_message: string | null;
  /** Since the worker began the run. */
  now: number;
  seconds: number;
  steps: Step[];
}

export interface SyncFigures {
  /** From the worker's start of the run to its end, by the run's own record. */
  seconds: number;
  steps: (Step & { seconds: number })[];
}

/** Looks into the database rather than at the API, so that the service does nothing but sync. */
const LOOK = `
  SELECT r.state, r.error_message, extract(epoch FROM clock_timestamp() - r.started_at)::float8 AS now,
    extract(epoch FROM r.finished_at - r.started_at)::float8 AS seconds,
    (SELECT json_agg(json_build_object('resource', s.resource, 'state', s.state, 'requests', s.requests,
       'fetched', s.fetched, 'written', s.written)) FROM sync_step s WHERE s.tenant_id = r.tenant_id AND s.run_id = r.id) AS steps
  FROM sync_run r WHERE r.tenant_id = (SELECT id FROM tenant WHERE external_id = 'demo')`;

/** Waits for the end of the run of the tenant that `Api.signIn` signs in to, and notes when each step ended. */
export async function watchSync(databaseUrl: string): Promise<SyncFigures> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const ends = new Map<string, number>();
    const began = performance.now();
    while (performance.now() - began < PATIENCE_MS) {
      const run = (await client.query<Run>(LOOK)).rows[0];
      for (const step of run?.steps ?? []) {
        if (run && step.state === "SUCCEEDED" && !ends.has(step.resource)) ends.set(step.resource, run.now);
      }
      if (run?.state === "FAILED") throw new Error(`the sync failed: ${run.error_message}`);
      if (run?.state === "SUCCEEDED") return { seconds: run.seconds, steps: inOrder(run, ends) };
      await sleep(LOOK_MS);
    }
    throw new Error(`the sync did not end within ${PATIENCE_MS / 60_000} minutes`);
  } finally {
    await client.end();
  }
}

/** Steps go one after the other: each lasts from the end of the one before. */
function inOrder({ steps }: Run, ends: ReadonlyMap<string, number>): SyncFigures["steps"] {
  const endOf = (step: Step) => ends.get(step.resource) ?? 0;
  const ordered = steps.toSorted((one, other) => endOf(one) - endOf(other));
  return ordered.map((step, index) => {
    const before = ordered[index - 1];
    return { ...step, seconds: endOf(step) - (before ? endOf(before) : 0) };
  });
}
