import { recordAudit } from "../auth/policies";
import type { Grant } from "../crm/oauth";
import type { Database, TenantScope } from "../database/database";
import { type ConnectionState, CredentialRow } from "../entities/connection";
import type { Clock } from "../platform/clock";
import { type Keyring, Secret, UnsealError } from "../platform/keyring";
import type { Logger } from "../platform/logger";

/** A connection's token pair, opened. */
export interface Credential {
  version: number;
  /** The CRM has shown that the access token is the bound user's; until then it is used for nothing but to ask that. */
  isProven: boolean;
  accessToken: Secret;
  refreshToken: Secret;
  /** When the request for the access token was sent: its 60 minutes count from no later than that. */
  accessTokenAskedAt: Date;
}

export type PresentAccess = Omit<Credential, "refreshToken"> & { state: ConnectionState };

/** A sealed token is bound to its place: elsewhere it cannot be opened. */
const placeOf = (tenantId: number, copyId: number, column: string): string[] => [
  String(tenantId),
  String(copyId),
  column,
];

/** Tokens are sealed on the way into the database and opened on the way out, here and nowhere else. */
export class Credentials {
  constructor(private readonly keyring: Keyring) {}

  /** The credential of a copy that is connected now; null where there is none. */
  async read({ tenantId, typed }: TenantScope, copyId: number): Promise<Credential | null> {
    const row = await typed((orm) => orm.findOneBy(CredentialRow, { tenantId, copyId }));
    return row && this.#open(row);
  }

  /** The access token alone, in one small statement: it is read before nearly every request to the CRM. */
  async readAccess({ tenantId, rows }: TenantScope, copyId: number): Promise<PresentAccess | null> {
    const [row] = await rows<{
      state: ConnectionState;
      version: number;
      is_proven: boolean;
      access_token: Buffer;
      access_token_asked_at: Date;
    }>(
      `SELECT c.state, x.version, x.proven_version IS NOT DISTINCT FROM x.version AS is_proven,
         x.access_token, x.access_token_asked_at
       FROM connection c JOIN credential x ON x.tenant_id = $1 AND x.copy_id = c.copy_id
       WHERE c.tenant_id = $1 AND c.copy_id = $2`,
      [tenantId, copyId],
      { state: "text", version: "number", is_proven: "flag", access_token: "json", access_token_asked_at: "instant" },
    );
    if (!row) return null;
    const { state, version, is_proven: isProven, access_token: sealed, access_token_asked_at: askedAt } = row;
    const accessToken = new Secret(this.keyring.open(sealed, placeOf(tenantId, copyId, "access_token")));
    return { state, version, isProven, accessToken, accessTokenAskedAt: askedAt };
  }

  /** The first credential of a connection, or of a renewed authorization: `users/me` has shown whose it is. */
  async put(scope: TenantScope, copyId: number, grant: Grant, refreshToken: Secret, askedAt: Date): Promise<void> {
    const sealed = this.#seal(scope.tenantId, copyId, grant.accessToken, refreshToken);
    await scope.rows(
      `INSERT INTO credential AS c
         (tenant_id, copy_id, version, proven_version, access_token, refresh_token, access_token_asked_at)
       VALUES ($1, $2, 1, 1, $3, $4, $5)
       ON CONFLICT (tenant_id) DO UPDATE SET copy_id = EXCLUDED.copy_id,
         version = c.version + 1, proven_version = c.version + 1,
         access_token = EXCLUDED.access_token, refresh_token = EXCLUDED.refresh_token,
         access_token_asked_at = EXCLUDED.access_token_asked_at`,
      [scope.tenantId, copyId, ...sealed, askedAt],
    );
  }

  /**
   * Replaces the pair `old` by one whose owner is not proven yet.
   * @returns null where it is no longer the present one: the answer came too late and is dropped
   */
  async replace(
    scope: TenantScope,
    copyId: number,
    old: Credential,
    grant: Grant,
    askedAt: Date,
  ): Promise<Credential | null> {
    const refreshToken = grant.refreshToken ?? old.refreshToken;
    const sealed = this.#seal(scope.tenantId, copyId, grant.accessToken, refreshToken);
    const [updated] = await scope.rows<Pick<CredentialRow, "version">>(
      `UPDATE credential SET version = version + 1, access_token = $4, refresh_token = $5, access_token_asked_at = $6
       WHERE tenant_id = $1 AND copy_id = $2 AND version = $3 RETURNING version`,
      [scope.tenantId, copyId, old.version, ...sealed, askedAt],
      { version: "number" },
    );
    if (!updated) return null;
    const { version } = updated;
    return { version, isProven: false, accessToken: grant.accessToken, refreshToken, accessTokenAskedAt: askedAt };
  }

  /** The CRM has shown whose the access token of this version is. @returns false where it is no longer the present one */
  async prove({ tenantId, typed }: TenantScope, copyId: number, version: number): Promise<boolean> {
    const present = { tenantId, copyId, version };
    const proven = await typed((orm) => orm.update(CredentialRow, present, { provenVersion: version }));
    return proven.affected === 1;
  }

  /** Whether the pair of this version is the present one. */
  async holds({ tenantId, typed }: TenantScope, copyId: number, version: number): Promise<boolean> {
    return typed((orm) => orm.existsBy(CredentialRow, { tenantId, copyId, version }));
  }

  /** Seals the tenant's pair under the first key. The row is locked, so a renewal comes before or after, not between. */
  async reseal({ tenantId, typed }: TenantScope): Promise<boolean> {
    const lock = { mode: "pessimistic_write" } as const;
    const row = await typed((orm) => orm.findOne(CredentialRow, { where: { tenantId }, lock }));
    if (!row || [row.accessToken, row.refreshToken].every((sealed) => this.keyring.isUnderFirstKey(sealed)))
      return false;
    const { accessToken, refreshToken } = this.#open(row);
    const [access, refresh] = this.#seal(tenantId, row.copyId, accessToken, refreshToken);
    await typed((orm) => orm.update(CredentialRow, { tenantId }, { accessToken: access, refreshToken: refresh }));
    return true;
  }

  #open(row: CredentialRow): Credential {
    const { tenantId, copyId, version, provenVersion, accessTokenAskedAt } = row;
    return {
      version,
      isProven: provenVersion === version,
      accessToken: new Secret(this.keyring.open(row.accessToken, placeOf(tenantId, copyId, "access_token"))),
      refreshToken: new Secret(this.keyring.open(row.refreshToken, placeOf(tenantId, copyId, "refresh_token"))),
      accessTokenAskedAt,
    };
  }

  #seal(tenantId: number, copyId: number, accessToken: Secret, refreshToken: Secret): [Buffer, Buffer] {
    return [
      this.keyring.seal(accessToken.reveal(), placeOf(tenantId, copyId, "access_token")),
      this.keyring.seal(refreshToken.reveal(), placeOf(tenantId, copyId, "refresh_token")),
    ];
  }
}

export interface Resealed {
  /** Tenants whose secrets were sealed anew under the first key. */
  resealed: number;
  /** Those whose secrets were sealed under it already. */
  unchanged: number;
}

/** What holds a tenant's secrets sealed. */
interface Sealing {
  /** @returns false where all is sealed under the first key already, or there is nothing */
  reseal(scope: TenantScope): Promise<boolean>;
}

/** Of many tenants an operator is told so many. */
const NAMED = 5;
export const namesOf = (tenants: readonly (number | string)[]): string =>
  `tenantId ${tenants.slice(0, NAMED).join(", ")}${tenants.length > NAMED ? ", ..." : ""}`;

/**
 * Seals every secret under the first configured key, one tenant at a time, while workers and renewals go on. One that cannot be
 * opened keeps none of the others under a key that may have leaked.
 * @throws UnsealError at the end, where there were such
 */
export async function resealAll(
  database: Database,
  sealings: readonly Sealing[],
  clock: Clock,
  logger: Logger,
): Promise<Resealed> {
  const done: Resealed = { resealed: 0, unchanged: 0 };
  const closed = new Map<number, UnsealError>();
  const sealed = await database.acrossTenants<{ tenant_id: number }>(
    "SELECT tenant_id FROM credential UNION SELECT tenant_id FROM kept_out_key ORDER BY tenant_id",
    [],
    { tenant_id: "number" },
  );
  for (const { tenant_id: tenantId } of sealed) {
    const unlessClosed = (error: unknown) => {
      if (!(error instanceof UnsealError)) throw error;
      closed.set(tenantId, error);
      return false;
    };
    const changed = await database.tenant(tenantId).transaction(async (scope) => {
      const resealed: boolean[] = [];
      for (const sealing of sealings) resealed.push(await sealing.reseal(scope).catch(unlessClosed));
      if (!resealed.includes(true)) return false;
      await recordAudit(scope, logger, { action: "KEYS_ROTATED", actor: null, at: clock() });
      return true;
    });
    if (changed) done.resealed += 1;
    else if (!closed.has(tenantId)) done.unchanged += 1;
  }
  const [cause] = closed.values();
  if (!cause) return done;
  const others = `of ${done.resealed} tenant(s) were sealed under the first key, ${done.unchanged} were already`;
  const whose = `${closed.size} (${namesOf([...closed.keys()])})`;
  throw new UnsealError(`Secrets ${others}; not all could be opened of ${whose}: ${cause.message}`, { cause });
}
