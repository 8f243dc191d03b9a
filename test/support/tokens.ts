import "reflect-metadata";
import { type AccessTokenParts, AccessTokens } from "../../src/connections/access-tokens";
import { moveToNeedsReauthorization } from "../../src/connections/connection";
import { Credentials } from "../../src/connections/credentials";
import { KeepOut } from "../../src/connections/keep-out";
import type { RenewalParts } from "../../src/connections/renewal";
import { CrmHttp } from "../../src/crm/http";
import { CrmOAuth } from "../../src/crm/oauth";
import { createDataSource } from "../../src/database/data-source";
import { entities } from "../../src/entities";
import { systemClock } from "../../src/platform/clock";
import type { Config } from "../../src/platform/config";
import { Keyring } from "../../src/platform/keyring";
import { createLogger } from "../../src/platform/logger";
import { openOn, type TestDatabase } from "./database";

export interface TokenParts extends RenewalParts {
  http: CrmHttp;
  tokens: AccessTokens;
  keepOut: KeepOut;
  keyring: Keyring;
  close(): Promise<void>;
}

/** Access tokens with a pool of their own, composed as the service does it; `change` puts other parts in their place. */
export async function startTokens(
  config: Pick<Config, "databaseUrl" | "crm" | "encryptionKeys" | "logLevel">,
  change: (parts: RenewalParts) => Partial<AccessTokenParts> = () => ({}),
  http = new CrmHttp(),
): Promise<TokenParts> {
  const { databaseUrl } = config;
  if (!databaseUrl) throw new Error("there is no DATABASE_URL");
  const dataSource = await createDataSource({ url: databaseUrl, entities }).initialize();
  const keyring = new Keyring(config.encryptionKeys);
  const usual: RenewalParts = {
    database: openOn(dataSource),
    oauth: new CrmOAuth(http, config.crm),
    credentials: new Credentials(keyring),
    clock: systemClock,
    logger: createLogger(config.logLevel),
  };
  const parts = { ...usual, ...change(usual) };
  const tokens = new AccessTokens({ databaseUrl, ...parts, http, crmBaseUrl: config.crm.baseUrl });
  const close = async () => {
    await tokens.close();
    await http.close();
    await dataSource.destroy();
  };
  return { ...parts, http, tokens, keepOut: new KeepOut(keyring), keyring, close };
}

/** The copy of a tenant that has just connected. */
export async function copyOf(database: TestDatabase, tenant: string): Promise<number> {
  const [connection] = await database.query<{ copy_id: number | null }>(
    "SELECT copy_id FROM connection WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)",
    [tenant],
  );
  if (!connection?.copy_id) throw new Error(`${tenant} is not connected`);
  return connection.copy_id;
}

/** Makes a tenant's access token an hour old by the system's clock. @returns its copy */
export async function makeStale(database: TestDatabase, tenant: string): Promise<number> {
  await database.query(
    "UPDATE credential SET access_token_asked_at = now() - interval '1 hour' WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)",
    [tenant],
  );
  return copyOf(database, tenant);
}

/** As where the CRM has refused the present credential. */
export async function loseAuthorization(database: TestDatabase, tenant: string, now = new Date()): Promise<void> {
  const tenantId = await database.tenantId(tenant);
  const [held] = await database.query<{ copy_id: number; version: number }>(
    "SELECT copy_id, version FROM credential WHERE tenant_id = $1",
    [tenantId],
  );
  if (!held) throw new Error(`${tenant} is not connected`);
  await database
    .scope(tenantId)
    .transaction((scope) =>
      moveToNeedsReauthorization(scope, Number(held.copy_id), held.version, "GRANT_REVOKED", now),
    );
}
