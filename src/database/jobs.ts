import { type JobHelpers, run, type TaskList, Logger as WorkerLogger } from "graphile-worker";
import { Pool } from "pg";
import type { Logger } from "../platform/logger";
import type { Secret } from "../platform/secret";

/** Jobs at once in one process; most of a job's time is spent waiting for the CRM. */
const CONCURRENCY = 10;
/** NOTIFY wakes the worker at once; this is for jobs that become due later. */
const POLL_MS = 2_000;

export type Job = (payload: unknown, stop: AbortSignal) => Promise<void>;

/** What each worker does besides jobs, again and again; it must be harmless when several do it. */
export interface Chore {
  everyMs: number;
  run(): Promise<void>;
}

export interface JobRunner {
  /** Ends when the jobs in hand have ended; they are told through their signal. */
  stop(): Promise<void>;
}

/** Works off the jobs of this database's queue. Payloads hold ids only, never a secret or a record. */
export async function startJobRunner(
  url: Secret,
  jobs: Record<string, Job>,
  chore: Chore,
  logger: Logger,
): Promise<JobRunner> {
  const stopping = new AbortController();
  const taskList: TaskList = {};
  for (const [name, job] of Object.entries(jobs)) {
    taskList[name] = (payload: unknown, _helpers: JobHelpers) => job(payload, stopping.signal);
  }
  const pool = new Pool({ connectionString: url.reveal(), max: CONCURRENCY });
  const onError = (error: Error) => logger.warn({ err: error }, "a connection of the job runner ended");
  pool.on("error", onError);
  pool.on("connect", (client) => client.on("error", onError));
  const runner = await run({
    pgPool: pool,
    concurrency: CONCURRENCY,
    pollInterval: POLL_MS,
    noHandleSignals: true,
    taskList,
    parsedCronItems: [],
    logger: new WorkerLogger(() => (level, message) => {
      if (level === "error") logger.error({ worker: message }, "a job failed");
      else if (level === "warning") logger.warn({ worker: message }, "the job runner warns");
    }),
  });
  const doChore = () =>
    chore.run().catch((error: unknown) => logger.warn({ err: error }, "a chore failed and is tried again"));
  const chores = setInterval(doChore, chore.everyMs);
  await doChore();
  return {
    async stop() {
      clearInterval(chores);
      stopping.abort();
      await runner.stop();
      await pool.end();
    },
  };
}
