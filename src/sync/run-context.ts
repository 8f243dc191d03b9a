import type { PinnedTokens } from "../connections/access-tokens";
import type { CrmApi } from "../crm/api";
import type { CopyScope, Database } from "../database/database";
import type { Clock } from "../platform/clock";
import type { Logger } from "../platform/logger";
import type { Metrics } from "../platform/metrics";
import type { ClaimedRun } from "./run-store";

/** What the steps of a run share. */
export interface RunContext {
  readonly run: ClaimedRun;
  readonly api: CrmApi;
  readonly tokens: PinnedTokens;
  readonly database: Database;
  readonly clock: Clock;
  /** Names the run in every line. */
  readonly logger: Logger;
  readonly concurrency: number;
  readonly metrics?: Metrics;
  /** The run's turn is over, or the process is to stop: nothing more is asked for, and what was is still committed. */
  mustPause(): boolean;
}

export const copyOf = ({ database, run }: RunContext): CopyScope => ({
  ...database.tenant(run.tenantId),
  copyId: run.copyId,
});
