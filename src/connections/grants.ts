import type { Database, TenantScope } from "../database/database";
import { CredentialRow } from "../entities/connection";
import { type Clock, DAY_MS, HOUR_MS } from "../platform/clock";
import type { Logger } from "../platform/logger";
import { forEachLogged } from "../platform/work";
import type { AccessTokens } from "./access-tokens";
import { ConnectionGoneError, NeedsReauthorizationError } from "./connection";

/** The CRM forgets a refresh token that nobody used for so long. */
const IDLE_MS = 60 * DAY_MS;
/** Half of that: a month is left for what may go wrong. */
const RENEWED_AFTER_MS = 30 * DAY_MS;
/** A renewal that failed is tried again after this; until then the next need asks by itself. */
const TRIED_EVERY_MS = DAY_MS;
/** A worker looks so often: no index begins with an age, and a month is left. */
const LOOK_EVERY_MS = HOUR_MS;
/** In one look, so that a round of periodic tasks stays short; the next one finds the others. */
const CONNECTIONS_A_LOOK = 20;

interface Idle {
  tenantId: number;
  copyId: number;
}

/** Keeps the grants of connections alive that nothing else renews: where runs are only made by request, for one. */
export class Grants {
  #lookedAt = new Date(0);

  constructor(private readonly parts: { database: Database; tokens: AccessTokens; clock: Clock; logger: Logger }) {}

  /** Done periodically, by several workers at once. */
  async sweep(): Promise<void> {
    const { database, clock, logger } = this.parts;
    const now = clock();
    // A clock that was far ahead once must not end the looks.
    if (Math.abs(now.getTime() - this.#lookedAt.getTime()) < LOOK_EVERY_MS) return;
    const idle = await database.acrossTenants<Idle>(
      `WITH idle AS MATERIALIZED (
         SELECT x.tenant_id, x.copy_id FROM credential x JOIN connection c ON c.tenant_id = x.tenant_id
         WHERE c.state = 'CONNECTED' AND c.copy_id = x.copy_id AND x.access_token_asked_at NOT BETWEEN $1 AND $3
           AND (x.kept_alive_at IS NULL OR x.kept_alive_at NOT BETWEEN $2 AND $3)
       )
       SELECT tenant_id AS "tenantId", copy_id AS "copyId" FROM idle LIMIT ${CONNECTIONS_A_LOOK}`,
      [new Date(now.getTime() - RENEWED_AFTER_MS), ...triedLately(now)],
      { tenantId: "number", copyId: "number" },
    );
    if (idle.length < CONNECTIONS_A_LOOK) this.#lookedAt = now;
    await forEachLogged(idle, (connection) => this.#keep(connection, now), logger);
  }

  async #keep({ tenantId, copyId }: Idle, now: Date): Promise<void> {
    const { database, tokens, logger } = this.parts;
    if (!(await takeTurn(database.tenant(tenantId), copyId, now))) return;
    try {
      await tokens.of(tenantId, copyId).current();
    } catch (error) {
      if (error instanceof ConnectionGoneError || error instanceof NeedsReauthorizationError) return;
      logger.warn({ tenantId, err: error }, "a grant that nothing has used for a month could not be renewed yet");
    }
  }
}

/** A try of a time that is still far off was noted by a clock that was wrong. */
const triedLately = (now: Date): [from: Date, until: Date] => [
  new Date(now.getTime() - TRIED_EVERY_MS),
  new Date(now.getTime() + TRIED_EVERY_MS),
];

/** @returns false where another worker has tried since, or the connection is another one by now */
async function takeTurn({ tenantId, rows }: TenantScope, copyId: number, now: Date): Promise<boolean> {
  const taken = await rows(
    `UPDATE credential SET kept_alive_at = $3
     WHERE tenant_id = $1 AND copy_id = $2 AND (kept_alive_at IS NULL OR kept_alive_at NOT BETWEEN $4 AND $5) RETURNING 1 AS taken`,
    [tenantId, copyId, now, ...triedLately(now)],
  );
  return taken.length > 0;
}

/** When the CRM would forget the authorization of a copy if nothing used it until then; null: it has none. */
export async function grantEndsAt({ tenantId, typed }: TenantScope, copyId: number): Promise<Date | null> {
  const select = { tenantId: true, accessTokenAskedAt: true } as const;
  const credential = await typed((orm) => orm.findOne(CredentialRow, { select, where: { tenantId, copyId } }));
  return credential && new Date(credential.accessTokenAskedAt.getTime() + IDLE_MS);
}
