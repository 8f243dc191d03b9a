import { fetchKeys, KeysUnreadableError, LAST_KNOWN_MS } from "../auth/key-set";
import { DatabaseUnavailableError, withLook } from "../database/application-role";
import { HOUR_MS } from "../platform/clock";
import { type AuthConfig, type Config, ConfigError, readConfig } from "../platform/config";
import { messageOf } from "../platform/errors";
import { checkCrm } from "./crm-checks";
import { DATABASE_CHECKS } from "./database-checks";
import { type Finding, fault, ok, warning } from "./finding";
import { checkWork, stopFinding } from "./work-checks";

/**
 * `npm run doctor`: looks at everything that the service needs, changes nothing, and says what to do. What is stopped
 * by the operator is not asked either.
 * @param read gives the configuration, and throws ConfigError where there is none
 */
export async function examine(read: () => Config = readConfig): Promise<Finding[]> {
  let config: Config;
  try {
    config = read();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const faults = error.faults.map((text) =>
      fault(`configuration: ${text}`, "set it; docs/operations.md has them all"),
    );
    return [...faults, warning("everything else was not looked at", "mend the configuration first")];
  }
  const { findings, stop } = await examineDatabase(config);
  const crm = stop ? [stop] : await checkCrm(config.crm);
  return [...configurationFindings(config), ...(await keysFindings(config.auth)), ...findings, ...crm];
}

/** The public keys of callers, as the service would fetch them now. */
async function keysFindings({ proof }: AuthConfig): Promise<Finding[]> {
  if (proof.kind !== "jwks") return [];
  try {
    const { keys, ignored } = await fetchKeys(proof.url);
    const others = ignored > 0 ? `; ${ignored} more are not for proving tokens` : "";
    return [ok(`callers: ${proof.url} has ${keys.length} key(s) that tokens are proven with${others}`)];
  } catch (error) {
    if (!(error instanceof KeysUnreadableError)) throw error;
    const todo = `check AUTH_JWKS_URL and the way there. The last known keys count for ${LAST_KNOWN_MS / HOUR_MS} hours; a process that starts now serves nobody`;
    return [fault(`callers: their keys cannot be fetched from ${proof.url}. ${messageOf(error)}`, todo)];
  }
}

/** Of what is allowed, and still unwise. */
function configurationFindings({ production, encryptionKeys, roles }: Config): Finding[] {
  const findings = [ok(`configuration: whole; this process would be ${[...roles].join(" and ")}`)];
  if (!production) {
    findings.push(
      warning(
        "configuration: NODE_ENV is not production",
        "set it in production: the schema is told to nobody then, unless INTROSPECTION=on",
      ),
    );
  }
  if (encryptionKeys.length > 2) {
    const what = `configuration: ENCRYPTION_KEYS has ${encryptionKeys.length} keys`;
    findings.push(warning(what, "remove those that seal nothing any more (below)"));
  }
  return findings;
}

async function examineDatabase({
  databaseUrl,
  encryptionKeys,
}: Config): Promise<{ findings: Finding[]; stop: Finding | null }> {
  if (!databaseUrl) {
    const todo = "for development only; set DATABASE_URL";
    return { findings: [warning("database: the embedded one, which was not looked at", todo)], stop: null };
  }
  const findings: Finding[] = [];
  let stop: Finding | null = null;
  try {
    await withLook(databaseUrl, async (look) => {
      for (const check of DATABASE_CHECKS) findings.push(...[await check(look)].flat());
      findings.push(...(await checkWork(look, encryptionKeys)));
      stop = await stopFinding(look);
    });
  } catch (error) {
    const todo = "PostgreSQL must run, accept this address, user and password, and let them read the service's tables";
    const what =
      error instanceof DatabaseUnavailableError ? messageOf(error) : `it cannot be read: ${messageOf(error)}`;
    findings.push(fault(`database: ${what}`, todo));
  }
  return { findings, stop };
}
