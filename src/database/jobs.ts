import { EventEmitter } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { type RunnerOptions, run, type Task, type WorkerEvents, Logger as WorkerLogger } from "graphile-worker";
import type { PoolClient } from "pg";
import type { z } from "zod";
import { MINUTE_MS } from "../platform/clock";
import type { Secret } from "../platform/keyring";
import type { Logger } from "../platform/logger";
import { inWork, tellWhenLate, traced, workFor } from "../platform/work";
import { keepAsking } from "./between-processes";
import { openPool } from "./data-source";
import type { Database, TenantScope } from "./database";
import { isGivenUp, levelOf } from "./errors";
import { SESSION_LIMITS, SILENCE_MS } from "./session-limits";

/** A kind of job, as whoever enqueues one and the worker know it. */
export interface JobKind<Payload extends { tenantId: number }> {
  /** Its task in the queue. */
  name: string;
  /** The ids that its work needs; never a secret or a record. */
  payload: z.ZodType<Payload>;
  /** With the name it names the job: enqueued again, it is the same job. */
  subjectOf(payload: Payload): string | number;
}

/** Before others, as somebody waits for it; LATE: among those that wait long for their CRM, which may take a part of a worker only. */
export type JobPlace = "FIRST" | "IN_TURN" | "LATE";

/**
 * Puts a job into the queue, in the caller's transaction; one of the same kind and subject that waits, or was given up, is
 * replaced: beside what takes its place that would count as given up for ever.
 * @param waitMs how long it waits, which whoever enqueues it has measured by one clock
 */
export async function enqueueJob<Payload extends { tenantId: number }>(
  { rows }: TenantScope,
  { name, payload, subjectOf }: JobKind<Payload>,
  ids: Payload,
  waitMs = 0,
  place: JobPlace = "IN_TURN",
): Promise<void> {
  const how = [waitMs, place === "FIRST" ? -1 : 0, place === "LATE" ? [place] : []];
  await rows(ENQUEUE, [name, JSON.stringify(payload.parse(ids)), `${name}:${subjectOf(ids)}`, ...how]);
}

/** By PostgreSQL's clock alone, which the queue goes by: what one a year ahead has put off would wait for a year. From now on, not from when its transaction began. */
const ENQUEUE = `
  SELECT graphile_worker.add_job($1, $2::json, job_key => $3, run_at => clock_timestamp() + $4::float8 * interval '1 millisecond',
    priority => $5, flags => $6) FROM (
    SELECT count(*) FROM graphile_worker.complete_jobs(ARRAY (
      SELECT j.id FROM graphile_worker.jobs j WHERE j.key = $3 AND j.locked_at IS NULL AND j.attempts >= j.max_attempts))) gone`;

/**
 * SQL: whether the job of a kind for `subject` waits, or was taken later than `since`. One that was taken before that has
 * gone with the worker that took it, and one that waits longer than what sweeps look for ever does was put off by a wrong
 * clock. One that the queue has given up is tried anew a few times a day, so that what has hindered it may be mended. Both are
 * expressions of the statement, whose tenants' rows stand in a CTE AS MATERIALIZED: a cluster joins no table of its shards with the queue.
 */
export const hasLiveJob = ({ name }: { name: string }, subject: string, since: string) =>
  `EXISTS (
    SELECT 1 FROM graphile_worker.jobs j
    WHERE j.key = '${name}:' || ${subject} AND (j.locked_at IS NULL OR j.locked_at > ${since})
      AND j.run_at < now() + interval '7 hours'
      AND (j.attempts < j.max_attempts OR j.run_at > now() - interval '6 hours'))`;

/** Rows that the library leaves of a killed worker's job, and jobs given up days ago: what sweeps find was enqueued anew. */
export async function sweepDead(database: Database): Promise<void> {
  await database.acrossTenants(
    `SELECT count(*) FROM graphile_worker.complete_jobs(ARRAY (
       SELECT j.id FROM graphile_worker.jobs j WHERE j.attempts >= j.max_attempts AND (
         j.key IS NULL AND (j.locked_at IS NULL OR j.locked_at < now() - interval '4 hours')
         OR j.locked_at IS NULL AND j.run_at < now() - interval '3 days')))`,
    [],
  );
}

/** Jobs at once in one process; most of a job's time is spent waiting for the CRM, and most of them are kept from those that wait long. */
export const RUNNERS = [{ concurrency: 6, forbiddenFlags: ["LATE"] }, { concurrency: 4 }];
/** NOTIFY wakes the worker at once; this is for jobs that become due later. */
const POLL_MS = 2_000;
/** After the runner gave up, longer each time: a database that is down is not hammered, nor the log by who is older than the queue. */
const [RESTART_MS, LONGEST_RESTART_MS] = [500, 5_000];
/** The word that the last job is done. */
const SAID_WITHIN_MS = 100;
/** A job that takes so long hangs, and nobody else does it meanwhile. */
const HANGS_MS = 15 * MINUTE_MS;

/**
 * $1: the names by which this process takes jobs, $2: those in its hands, of which one may have been taken just now. It says
 * of these that they are, and what no process has said that of for minutes is a killed one's. That gets another number: whoever
 * goes on with it all the same would tell its end by the old one, and take along what was enqueued in its place meanwhile.
 */
const FREE_LOST = `
  WITH in_hand AS (UPDATE graphile_worker._private_jobs SET locked_at = now()
    WHERE id = ANY ($2::bigint[]) AND locked_at < now() - interval '30 seconds')
  UPDATE graphile_worker._private_jobs SET id = DEFAULT, locked_at = NULL, locked_by = NULL WHERE id <> ALL ($2)
    AND locked_at < now() - CASE WHEN locked_by = ANY ($1::text[]) THEN interval '1 minute' ELSE interval '5 minutes' END`;

/** The worker's side of one kind of jobs. */
export interface JobHandler {
  name: string;
  handle(payload: unknown, stop: AbortSignal): Promise<void>;
}

/** @param work does one job; `stop` tells it to end before it is done */
export function handlerOf<Payload extends { tenantId: number }>(
  { name, payload: schema }: JobKind<Payload>,
  work: (payload: Payload, stop: AbortSignal) => Promise<void>,
): JobHandler {
  return {
    name,
    async handle(found, stop) {
      const payload = schema.parse(found);
      workFor(payload.tenantId);
      await work(payload, stop);
    },
  };
}

export interface JobRunner {
  /**
   * A sweep: frees jobs whose end was not told because a session ended with it, as the library does not say it again, or
   * because their process was killed. A process that was frozen may go on with one beside who has it then: none does harm twice.
   */
  freeLost(): Promise<void>;
  /** Ends when the jobs in hand have ended; they are told through their signal. */
  stop(): Promise<void>;
}

/** @param inHand has a job's id while its work goes on */
function taskOf({ name, handle }: JobHandler, inHand: Set<string>, stop: AbortSignal, logger: Logger): Task {
  return (payload, { job: { id } }) => {
    inHand.add(id);
    const hangs = () => logger.error({ payload }, "a job does not end: end this process");
    const work = () => traced(`job ${name}`, {}, () => tellWhenLate(handle(payload, stop), HANGS_MS, hangs));
    return inWork({ task: name, jobId: id }, work).finally(() => inHand.delete(id));
  };
}

const loggerOfWorker = (logger: Logger, stopping: AbortSignal) =>
  new WorkerLogger(() => (level, message, meta) => {
    const goesOn = stopping.aborted || isGivenUp(meta?.error);
    if (message.startsWith("Failed task") && !goesOn) logger.error({ worker: message }, "a job failed");
    else if (level === "error" || level === "warning")
      logger[levelOf(meta?.error)]({ worker: message }, "the job runner warns");
  });

/** Works off the jobs of this database's queue. */
export async function startJobRunner(
  url: Secret,
  handlers: readonly JobHandler[],
  logger: Logger,
  { concurrency: max, forbiddenFlags = [] }: Pick<RunnerOptions, "concurrency" | "forbiddenFlags"> = {
    concurrency: 10,
  },
): Promise<JobRunner> {
  const stopping = new AbortController();
  const [names, inHand] = [new Set<string>(), new Set<string>()];
  const tasks = handlers.map((one): [string, Task] => [one.name, taskOf(one, inHand, stopping.signal, logger)]);
  const pool = openPool(url, SESSION_LIMITS.jobs, { max }, logger, "a connection of the job runner ended");
  const events: WorkerEvents = new EventEmitter();
  const listening = new WeakMap<PoolClient, AbortController>();
  events.on("pool:create", ({ workerPool }) => names.add(workerPool.id));
  events.on("pool:listen:success", ({ client }) => {
    listening.set(client, new AbortController());
    void keepAsking(client, SILENCE_MS, listening.get(client)?.signal);
  });
  events.on("pool:listen:release", ({ client }) => listening.get(client)?.abort());
  const runOnce = async () => {
    // Where its first statement fails, as on a standby, the library remembers that, and takes no job for as long as it runs.
    await pool.query("UPDATE graphile_worker._private_tasks SET identifier = identifier WHERE false");
    return run({
      pgPool: pool,
      events,
      concurrency: max,
      forbiddenFlags,
      pollInterval: POLL_MS,
      noHandleSignals: true,
      taskList: Object.fromEntries(tasks),
      parsedCronItems: [],
      logger: loggerOfWorker(logger, stopping.signal),
    });
  };
  const gaveUp = (error: unknown) => {
    if (!stopping.signal.aborted) logger.error({ err: error }, "the job runner gave up and is started again");
    return runner;
  };
  let runner = await runOnce();
  const working = keepRunning();

  /** The runner gives up when a database session ends at the wrong moment; a process without one would do nothing. */
  async function keepRunning(): Promise<void> {
    for (let waitMs = RESTART_MS; !stopping.signal.aborted; ) {
      await runner.promise.catch(gaveUp);
      await sleep(waitMs, undefined, { signal: stopping.signal }).catch(() => undefined);
      if (stopping.signal.aborted) return;
      const before = runner;
      runner = await runOnce().catch(gaveUp);
      waitMs = runner === before ? Math.min(2 * waitMs, LONGEST_RESTART_MS) : RESTART_MS;
      if (stopping.signal.aborted) await runner.stop().catch(() => undefined);
    }
  }

  return {
    freeLost: async () => void (await pool.query(FREE_LOST, [[...names], [...inHand]])),
    async stop() {
      stopping.abort();
      await runner.stop().catch((error: unknown) => logger.warn({ err: error }, "the job runner had ended already"));
      // The library waits for the work of its last job, and not for the word that it is done, which still asks for a session.
      await working.then(() => sleep(SAID_WITHIN_MS)).then(() => pool.end());
    },
  };
}
