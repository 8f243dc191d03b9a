import type { QueryRunner } from "typeorm";
import type { Logger } from "../platform/logger";
import type { Metrics } from "../platform/metrics";
import { traced, workCounts } from "../platform/work";

/** Runs one statement and takes note of it: its text, never its parameters. */
export type ObserveSql = <T>(text: string, run: () => Promise<T>) => Promise<T>;

/** Counts, times, traces and (at debug) logs each statement that goes through the tenant door. */
export function observedSql(metrics: Metrics, logger: Logger): ObserveSql {
  return async (text, run) => {
    const counts = workCounts();
    if (counts) counts.sql += 1;
    const ended = metrics.sqlStatements.startTimer();
    try {
      return await traced("sql", { "db.system.name": "postgresql", "db.query.text": text }, run);
    } finally {
      const seconds = ended();
      if (logger.isLevelEnabled("debug"))
        logger.debug({ sql: text.replace(/\s+/g, " ").trim(), seconds }, "a statement");
    }
  };
}

/** Whatever a runner asks goes through `observe`. */
export function observeStatements(runner: QueryRunner, observe: ObserveSql): void {
  const query = runner.query.bind(runner) as (...args: unknown[]) => Promise<never>;
  runner.query = (text: string, ...rest: unknown[]) => observe(text, () => query(text, ...rest));
}
