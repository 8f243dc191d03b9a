import { setTimeout as sleep } from "node:timers/promises";
import { type Ledger, type Simulator, type SimulatorOptions, startSimulator } from "../../simulator";
import { Budget } from "../../src/connections/budget";
import { type Clock, DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/platform/clock";
import { type Config, readConfig } from "../../src/platform/config";
import { createLogger } from "../../src/platform/logger";
import { Schedule } from "../../src/sync/schedule";
import type { TestDatabase } from "./database";
import { environmentFor, type Service, startService } from "./service";

/** A meeting's refresh that a run was in the way of is tried again after this; the service looks every ten seconds. */
const LOOK_AGAIN_MS = MINUTE_MS;
/** So long before a meeting its refresh is due. */
const BEFORE_MEETING_MS = 5 * MINUTE_MS;
/** A queue that is never empty, or time that does not get on, is a fault of what is tested. */
const MOST_POLLS = 60_000;
const POLL_MS = 4;
const MOST_STOPS_A_DAY = 3_000;

/** Jobs wait by PostgreSQL's clock, which does not leap: they have waited so much. Those that are due are given to the workers. */
const LEAP = `WITH nearer AS (
    UPDATE graphile_worker._private_jobs SET run_at = run_at - $1::float8 * interval '1 millisecond' WHERE locked_at IS NULL
    RETURNING run_at
  ), due AS (SELECT count(*)::int AS n FROM nearer WHERE run_at <= now())
  SELECT pg_notify('jobs:insert', json_build_object('r', random(), 'count', n)::text) FROM due WHERE n > 0`;
const OPEN = "SELECT 1 FROM graphile_worker.jobs WHERE run_at <= now() AND attempts < max_attempts LIMIT 1";
const NEXT_JOB = `SELECT extract(epoch FROM min(run_at) - now())::float8 * 1000 AS "inMs"
  FROM graphile_worker.jobs WHERE locked_at IS NULL AND run_at > now()`;
const NEXT_MEETING = `SELECT min(greatest(starts_at - interval '${BEFORE_MEETING_MS} ms', $2::timestamptz)) AS at FROM meeting
  WHERE refreshed_at IS NULL AND starts_at > $1`;

export interface DaysOptions extends Omit<SimulatorOptions, "now"> {
  /** Hours into the company's day at which time begins. */
  beginsAtHour?: number;
  /** What the service is configured with besides. */
  config?: Partial<Config>;
}

/**
 * The service and its CRM, whose days pass as fast as the work of them is done: the clock of both goes on by itself while
 * something is done, and leaps to the next moment at which something is due when nothing is left to do.
 */
export interface Days {
  simulator: Simulator;
  service: Service;
  clock: Clock;
  /** Something happens when its time has come. */
  at(when: Date, happening: () => unknown): void;
  /** Lets time pass until then. */
  until(when: Date): Promise<void>;
  /** So much time passes in which nobody is there. */
  away(ms: number): void;
  /** The company's day ends. @returns what was asked and paid in it; what is due when the next one begins is of the next */
  endDay(): Promise<Ledger>;
  stop(): Promise<void>;
}

export async function startDays(database: TestDatabase, options: DaysOptions = {}): Promise<Days> {
  const { beginsAtHour = 0, config, ...company } = options;
  // Never behind the clocks that nobody sets: PostgreSQL's, and that of the actors' tokens.
  const tomorrow = Math.ceil(Date.now() / DAY_MS) * DAY_MS;
  let aheadMs = tomorrow + beginsAtHour * HOUR_MS + MINUTE_MS - Date.now();
  const clock = () => new Date(Date.now() + aheadMs);
  const leapTo = async (when: Date) => {
    const ms = Math.max(0, when.getTime() - clock().getTime());
    aheadMs += ms;
    await database.query(LEAP, [ms]);
  };
  const simulator = await startSimulator({ ...company, dayEndsAt: 0, now: clock });
  const service = await startService(simulator, database, { clock, ...config });
  const passing = new Passing(database, clock, leapTo, scheduleOf(simulator, database, clock, config));
  return {
    simulator,
    service,
    clock,
    at: (when, happening) => passing.at(when, happening),
    until: (when) => passing.until(when),
    away: (ms) => leapTo(new Date(clock().getTime() + ms)),
    endDay: async () => {
      await passing.until(new Date(Math.floor(clock().getTime() / DAY_MS) * DAY_MS + DAY_MS));
      return simulator.control.ledgerOfDayBefore();
    },
    stop: async () => {
      await service.stop();
      await simulator.stop();
    },
  };
}

/** The worker's own looks come every ten seconds of a clock that does not leap: this one makes them in between. */
function scheduleOf(simulator: Simulator, { opened }: TestDatabase, clock: Clock, config?: Partial<Config>) {
  const { sync, budgetShare } = { ...readConfig(environmentFor(simulator)), ...config };
  const database = opened();
  const logger = createLogger("silent");
  const budget = new Budget({ database, clock, logger, share: budgetShare });
  return new Schedule({ database, budget, clock, logger, ...sync });
}

class Passing {
  readonly #happenings: { when: Date; happening: () => unknown }[] = [];

  constructor(
    private readonly database: TestDatabase,
    private readonly clock: Clock,
    private readonly leapTo: (when: Date) => Promise<void>,
    private readonly schedule: Schedule,
  ) {}

  at(when: Date, happening: () => unknown): void {
    this.#happenings.push({ when, happening });
    this.#happenings.sort((a, b) => a.when.getTime() - b.when.getTime());
  }

  async until(end: Date): Promise<void> {
    const days = (end.getTime() - this.clock().getTime()) / DAY_MS;
    const most = Math.ceil(days + 1) * MOST_STOPS_A_DAY;
    for (let stops = 0; stops < most; stops += 1) {
      await this.#doWhatIsDue();
      if (this.clock() >= end) return;
      await this.leapTo(await this.#nextMoment(end));
    }
    throw new Error(`${days} days took more than ${most} stops`);
  }

  async #doWhatIsDue(): Promise<void> {
    while (this.#happenings[0] && this.#happenings[0].when <= this.clock()) await this.#happenings.shift()?.happening();
    await this.#emptyQueue();
    await this.schedule.sweep();
    await this.#emptyQueue();
  }

  async #emptyQueue(): Promise<void> {
    for (let polls = 0; polls < MOST_POLLS; polls += 1) {
      if ((await this.database.query(OPEN)).length === 0) return;
      await sleep(POLL_MS);
    }
    throw new Error("the queue is never empty");
  }

  async #nextMoment(end: Date): Promise<Date> {
    const now = this.clock();
    const late = new Date(now.getTime() - BEFORE_MEETING_MS);
    const again = new Date(now.getTime() + LOOK_AGAIN_MS);
    const [[job], [meeting]] = await Promise.all([
      this.database.query<{ inMs: number | null }>(NEXT_JOB),
      this.database.query<{ at: Date | null }>(NEXT_MEETING, [late, again]),
    ]);
    const jobAt = job?.inMs && new Date(now.getTime() + Math.ceil(job.inMs));
    const moments = [end, jobAt, meeting?.at, this.#happenings[0]?.when].filter((at) => at instanceof Date);
    return new Date(Math.min(...moments.map((at) => at.getTime())));
  }
}
