import { setTimeout as sleep } from "node:timers/promises";
import { type JobHelpers, run, type TaskList, Logger as WorkerLogger } from "graphile-worker";
import { Pool } from "pg";
import type { Logger } from "../platform/logger";
import type { Secret } from "../platform/secret";
import { inWork, traced, workFor } from "../platform/work";
import { SESSION_LIMITS, withLimits } from "./session-limits";

/** Jobs at once in one process; most of a job's time is spent waiting for the CRM. */
const CONCURRENCY = 10;
/** NOTIFY wakes the worker at once; this is for jobs that become due later. */
const POLL_MS = 2_000;
/** After the runner gave up, so that a database that is down is not hammered. */
const RESTART_MS = 500;

export type Job = (payload: unknown, stop: AbortSignal) => Promise<void>;

export interface JobRunner {
  /** Ends when the jobs in hand have ended; they are told through their signal. */
  stop(): Promise<void>;
}

/** Works off the jobs of this database's queue. Payloads hold ids only, never a secret or a record. */
export async function startJobRunner(url: Secret, jobs: Record<string, Job>, logger: Logger): Promise<JobRunner> {
  const stopping = new AbortController();
  const taskList: TaskList = {};
  for (const [name, job] of Object.entries(jobs)) {
    taskList[name] = (payload: unknown, { job: { id } }: JobHelpers) =>
      inWork({ task: name, jobId: id }, () => {
        if (isOfTenant(payload)) workFor(payload.tenantId);
        return traced(`job ${name}`, {}, () => job(payload, stopping.signal));
      });
  }
  const pool = new Pool({
    connectionString: withLimits(url, SESSION_LIMITS.jobs).reveal(),
    max: CONCURRENCY,
    keepAlive: true,
  });
  const onError = (error: Error) => logger.warn({ err: error }, "a connection of the job runner ended");
  pool.on("error", onError);
  pool.on("connect", (client) => client.on("error", onError));
  const runOnce = () =>
    run({
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
  const gaveUp = (error: unknown) => {
    if (!stopping.signal.aborted) logger.error({ err: error }, "the job runner gave up and is started again");
  };
  let runner = await runOnce();
  const working = keepRunning();

  /** The runner gives up when a database session ends at the wrong moment; a process without one would do nothing. */
  async function keepRunning(): Promise<void> {
    while (!stopping.signal.aborted) {
      await runner.promise.catch((error: unknown) => gaveUp(error));
      if (stopping.signal.aborted) return;
      await sleep(RESTART_MS);
      runner = await runOnce().catch((error: unknown) => {
        gaveUp(error);
        return runner;
      });
      if (stopping.signal.aborted) await runner.stop().catch(() => undefined);
    }
  }

  return {
    async stop() {
      stopping.abort();
      await runner.stop().catch((error: unknown) => logger.warn({ err: error }, "the job runner had ended already"));
      await working;
      await pool.end();
    },
  };
}

const isOfTenant = (payload: unknown): payload is { tenantId: string } =>
  typeof payload === "object" && payload !== null && "tenantId" in payload && typeof payload.tenantId === "string";
