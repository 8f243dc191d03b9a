import { Agent, request } from "undici";
import { fetchKeys, KeysUnreadableError, LAST_KNOWN_MS } from "../auth/key-set";
import { answering, inOwnSession } from "../database/application-role";
import { DatabaseRoleError, DatabaseUnavailableError, MORE_SESSIONS, NO_SESSION_LEFT } from "../database/errors";
import { HOUR_MS, SECOND_MS } from "../platform/clock";
import { type AuthConfig, type Config, ConfigError, type CrmConfig, readConfig } from "../platform/config";
import { codeOf, messageOf } from "../platform/errors";
import { checkWork, clockFinding, DATABASE_CHECKS, type Finding, fault, ok, stopFinding, warning } from "./checks";

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
async function keysFindings({ proof, audience }: AuthConfig): Promise<Finding[]> {
  if (proof.kind !== "jwks") return [];
  const what = "callers: AUTH_AUDIENCE is not set: what the provider signs for another application counts as well";
  const findings = audience ? [] : [warning(what, "set it, unless it signs for this service alone")];
  try {
    const { keys, ignored } = await fetchKeys(proof.url);
    const others = ignored > 0 ? `; ${ignored} more are not for proving tokens` : "";
    return [...findings, ok(`callers: ${proof.url} has ${keys.length} key(s) that tokens are proven with${others}`)];
  } catch (error) {
    if (!(error instanceof KeysUnreadableError)) throw error;
    const todo = `check AUTH_JWKS_URL and the way there. The last known keys count for ${LAST_KNOWN_MS / HOUR_MS} hours; a process that starts now serves nobody`;
    return [...findings, fault(`callers: their keys cannot be fetched from ${proof.url}. ${messageOf(error)}`, todo)];
  }
}

/** Some settings are allowed, and still unwise. */
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
  let findings: Finding[] = [];
  let stop: Finding | null = null;
  try {
    const pooled = await inOwnSession(databaseUrl, async (session) => {
      const look = { rows: answering(session) };
      await look.rows(AS_DOCTOR);
      for (const check of DATABASE_CHECKS) findings = findings.concat(await check(look));
      findings.push(...(await checkWork(look, encryptionKeys)));
      stop = await stopFinding(look);
    });
    if (pooled) findings.push(fault(`database: ${pooled.what}`, pooled.todo));
  } catch (error) {
    const roles = "what docs/operations.md has under Roles";
    const todo = `PostgreSQL must run, accept this address, user and password, and give them their rights: ${roles}`;
    const isAway = error instanceof DatabaseUnavailableError;
    const isFull = isAway && codeOf(error.cause) === NO_SESSION_LEFT;
    const what = isAway ? messageOf(error) : `it cannot be read: ${messageOf(error)}`;
    if (error instanceof DatabaseRoleError) findings.push(fault(messageOf(error), `an administrator runs ${roles}`));
    else findings.push(fault(`database: ${what}`, isFull ? MORE_SESSIONS : todo));
  }
  return { findings, stop };
}

/** A session that can change nothing, of no tenant. */
const AS_DOCTOR = `SET application_name = 'crm-connection doctor'; SET default_transaction_read_only = on;
  SET DateStyle = ISO; SET search_path = public; SET crm.tenant = ''`;

/** A probe of an operator who waits before the screen. */
const TIMEOUT_MS = 10 * SECOND_MS;
/** More of an answer than anyone needs to tell what answered. */
const MAX_BYTES = 64 * 1024;

/** An address's answer to a GET without a token, or why none came. */
type Probe =
  | {
      reached: true;
      status: number;
      contentType: string;
      location: string | null;
      aheadMs: number | null;
      text: string;
    }
  | { reached: false; why: string };

/** One GET for the operator's eyes, as the service goes, through no proxy of Node's; without a token; redirects are shown and not followed. */
async function probe(url: string): Promise<Probe> {
  const [askedAt, dispatcher, signal] = [Date.now(), new Agent({ pipelining: 0 }), AbortSignal.timeout(TIMEOUT_MS)];
  try {
    const answer = await request(url, { dispatcher, signal, headers: { accept: "*/*" } });
    const text = (await answer.body.text()).slice(0, MAX_BYTES);
    const sentAt = Date.parse(String(answer.headers.date));
    return {
      reached: true,
      status: answer.statusCode,
      text,
      contentType: String(answer.headers["content-type"] ?? ""),
      location: answer.headers.location === undefined ? null : String(answer.headers.location),
      aheadMs: Number.isNaN(sentAt) ? null : ahead(sentAt, askedAt, Date.now()),
    };
  } catch (error) {
    return { reached: false, why: messageOf(error) };
  }
}

/** The header is in whole seconds and was written between asking and answer: only what is certain counts. */
function ahead(sentAt: number, askedAt: number, answeredAt: number): number {
  if (sentAt > answeredAt) return sentAt - answeredAt;
  return Math.min(0, sentAt + 1_000 - askedAt);
}

/** Changes are asked for by the earlier of both clocks: one that is far off has them read again and again. */
const CLOCK = { quietMs: 5 * SECOND_MS, faultMs: 60 * SECOND_MS };

/**
 * Asks the CRM twice, without a token: for its API and for its consent page. Nothing is authorized by that. The client
 * secret is not tried: nobody knows what a CRM does with a service that sends false token requests.
 */
async function checkCrm({ baseUrl, authUrl, clientId, redirectUrl }: CrmConfig): Promise<Finding[]> {
  const consent = new URL(`${authUrl}/oauth/authorize`);
  consent.searchParams.set("client_id", clientId);
  consent.searchParams.set("redirect_uri", redirectUrl);
  const [api, page] = await Promise.all([probe(`${baseUrl}/api/v1/users/me`), probe(consent.href)]);
  const findings = [meaningOfApi(baseUrl, api), meaningOfConsent(authUrl, redirectUrl, page)];
  if (api.reached && api.aheadMs !== null) findings.push(clockFinding("the CRM", api.aheadMs, CLOCK));
  return findings;
}

function notReached(name: string, url: string, why: string): Finding {
  const todo = `check ${name}, the name's address, the way out (proxy, firewall) and the certificates that this machine trusts`;
  return fault(`the CRM at ${url} cannot be reached: ${why}`, todo);
}

/** Sorts the answer to an API call without a token, which the CRM refuses with 401, in JSON. */
function meaningOfApi(url: string, answer: Probe): Finding {
  if (!answer.reached) return notReached("CRM_BASE_URL", url, answer.why);
  const { status, contentType } = answer;
  const what = `the CRM's API at ${url} answered ${status}`;
  if (status === 401 && contentType.includes("json")) return ok(`the CRM's API at ${url} answers and asks for a token`);
  if (status === 429) return warning(what, "the limit of requests is used up: wait, and see who else asks from here");
  if (status >= 500) return warning(what, "the CRM is down or in maintenance: look at its status page, and wait");
  if (contentType.includes("html")) {
    return fault(`${what} with an HTML page`, "check CRM_BASE_URL; a proxy or firewall may answer in its place");
  }
  return fault(`${what}, where 401 is due`, "check CRM_BASE_URL: this is not the address of the API");
}

/**
 * The consent page shows whether the registration is right (wire facts 2.1). It answers 400 where client id or redirect address
 * are not those of a registration. Without a session of the CRM it may first send the browser to sign in, and what it
 * thinks of the two is then not to be seen from here.
 */
function meaningOfConsent(url: string, redirectUrl: string, answer: Probe): Finding {
  if (!answer.reached) return notReached("CRM_AUTH_URL", url, answer.why);
  const { status, location } = answer;
  const what = `the CRM's consent page at ${url} answered ${status}`;
  if (status === 200) return ok("the CRM shows its consent page for CRM_CLIENT_ID and CRM_REDIRECT_URL");
  if (location !== null && status >= 300 && status < 400) {
    if (comesBack(location, url, redirectUrl)) {
      return fault(
        `the CRM sent the browser back to CRM_REDIRECT_URL with "${errorIn(location, url)}"`,
        "look at the app registration: its state, its scopes, who may install it",
      );
    }
    return warning(
      "the CRM asks to sign in first; whether it takes CRM_CLIENT_ID and CRM_REDIRECT_URL cannot be seen from here",
      "compare both with the app registration, or start a connect in a browser",
    );
  }
  if (status === 400 || status === 401 || status === 403) {
    const said = /redirect/i.test(answer.text) ? "CRM_REDIRECT_URL" : "CRM_CLIENT_ID or CRM_REDIRECT_URL";
    const todo =
      "both must equal the app registration character by character, and the app must be visible to the company";
    return fault(`${what}: it does not accept ${said}`, todo);
  }
  if (status === 429 || status >= 500) return warning(what, "the CRM is down, busy or in maintenance: try again later");
  return fault(what, "check CRM_AUTH_URL: this is not the CRM's address for authorizing");
}

function comesBack(location: string, base: string, redirectUrl: string): boolean {
  if (!URL.canParse(location, base)) return false;
  const target = new URL(location, base);
  const own = new URL(redirectUrl);
  return target.origin === own.origin && target.pathname === own.pathname;
}

const errorIn = (location: string, base: string) =>
  new URL(location, base).searchParams.get("error") ?? "no error named";
