import type { TokenSource } from "../crm/api";
import type { CrmHttp } from "../crm/http";
import type { Purse } from "../crm/purse";
import type { Database } from "../database/database";
import type { Clock } from "../platform/clock";
import type { Logger } from "../platform/logger";
import type { Metrics } from "../platform/metrics";
import type { Refused } from "../platform/outcome";

/** What writing to the CRM and looking up what became of it are made with. */
export interface WritebackParts {
  database: Database;
  http: CrmHttp;
  crmBaseUrl: string;
  tokensOf(tenantId: number, copyId: number): TokenSource;
  /** What these calls are counted in; they are never refused for it. */
  purseOf?(tenantId: number, copyId: number): Purse;
  clock: Clock;
  logger: Logger;
  metrics?: Metrics;
  /** How long another caller with the same idempotency key is waited for. */
  waitMs?: number;
  /** Why no write may be begun now, whatever it is; null where it may. */
  stopped?(): Promise<Refused<"CRM_UNAVAILABLE"> | null>;
}
