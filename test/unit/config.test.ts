import { randomBytes } from "node:crypto";
import { inspect } from "node:util";
import { ConfigError, readConfig } from "../../src/platform/config";

// Seen red with: faults reported one by one; addresses that are looked at by their beginning alone.

const key = () => randomBytes(32).toString("base64");
const GOOD = {
  CRM_CLIENT_ID: "app",
  CRM_CLIENT_SECRET: "a very secret secret",
  CRM_REDIRECT_URL: "https://app.example.com/crm/callback",
  AUTH_JWT_SECRET: "0123456789abcdef0123456789abcdef",
  ENCRYPTION_KEYS: `k1:${key()}`,
};

function faultsOf(environment: NodeJS.ProcessEnv): readonly string[] {
  try {
    readConfig(environment);
    return [];
  } catch (error) {
    return error instanceof ConfigError ? error.faults : [`not a ConfigError: ${error}`];
  }
}

test("the defaults are those of the documentation", () => {
  expect(readConfig(GOOD)).toMatchObject({
    host: "127.0.0.1",
    port: 4000,
    roles: new Set(["api", "worker"]),
    databaseUrl: null,
    crm: { baseUrl: "https://api.pipedrive.com", authUrl: "https://oauth.pipedrive.com", concurrency: 8 },
    logLevel: "info",
  });
});

test.each([
  [{}, true],
  [{ INTROSPECTION: "off" }, false],
  [{ NODE_ENV: "production", DATABASE_URL: "postgresql://127.0.0.1/crm" }, false],
  [{ NODE_ENV: "production", DATABASE_URL: "postgresql://127.0.0.1/crm", INTROSPECTION: "on" }, true],
  [{ NODE_ENV: "prod", DATABASE_URL: "postgresql://127.0.0.1/crm" }, false],
  [{ NODE_ENV: "staging", DATABASE_URL: "postgresql://127.0.0.1/crm" }, false],
  [{ NODE_ENV: "development" }, true],
  [{ NODE_ENV: "test" }, true],
])("with %j the schema is told: %s", (given, told) => {
  expect(readConfig({ ...GOOD, ...given }).introspection).toBe(told);
});

test.each([
  [undefined, []],
  ["10.0.0.5", ["10.0.0.5"]],
  ["10.0.0.0/8, 2001:db8::/32,::1", ["10.0.0.0/8", "2001:db8::/32", "::1"]],
])("TRUSTED_PROXIES %s are %j", (given, trusted) => {
  expect(readConfig({ ...GOOD, TRUSTED_PROXIES: given }).trustedProxies).toEqual(trusted);
});

test.each(["proxy.example.com", "10.0.0.0/33", "0.0.0.0/0", "::/0", "10.0.0.5,,10.0.0.6", "10.0.0.0/x", "true"])(
  "TRUSTED_PROXIES %s is a fault that is told at the start",
  (given) => {
    expect(faultsOf({ ...GOOD, TRUSTED_PROXIES: given })).toEqual([
      expect.stringMatching(/^TRUSTED_PROXIES must list/),
    ]);
  },
);

test.each([
  [undefined, []],
  ["https://app.example.com", ["https://app.example.com"]],
  ["https://app.example.com:8443, http://localhost:5173", ["https://app.example.com:8443", "http://localhost:5173"]],
])("ALLOWED_ORIGINS %s are %j", (given, origins) => {
  expect(readConfig({ ...GOOD, ALLOWED_ORIGINS: given }).allowedOrigins).toEqual(origins);
});

test.each([
  "*",
  "null",
  "https://*.example.com",
  "app.example.com",
  "https://app.example.com/",
  "https://app.example.com:443",
  "https://app.example.com/path",
  "https://App.example.com",
  "http://app.example.com",
  "https://app.example.com,,https://b.example.com",
])("ALLOWED_ORIGINS %s is a fault that is told at the start", (given) => {
  expect(faultsOf({ ...GOOD, ALLOWED_ORIGINS: given })).toEqual([
    expect.stringMatching(/^ALLOWED_ORIGINS must list exact origins/),
  ]);
});

test.each(["production", "prod", "Production", "staging"])("with NODE_ENV=%s a database is to be named", (name) => {
  expect(faultsOf({ ...GOOD, NODE_ENV: name })).toEqual([
    expect.stringMatching(/^DATABASE_URL is required in production:/),
  ]);
});

test("every fault is reported at once, each with its name", () => {
  const faults = faultsOf({
    PORT: "many",
    ROLES: "cook",
    CRM_BASE_URL: "http://crm.example.com",
    LOG_LEVEL: "loud",
    NODE_ENV: "production",
  });
  const names = faults.map((fault) => fault.split(" ")[0]).sort();
  expect(names).toEqual([
    "AUTH_JWT_SECRET",
    "CRM_BASE_URL",
    "CRM_CLIENT_ID",
    "CRM_CLIENT_SECRET",
    "CRM_REDIRECT_URL",
    "DATABASE_URL",
    "ENCRYPTION_KEYS",
    "LOG_LEVEL",
    "PORT",
    "ROLES",
  ]);
});

test.each([
  ["PORT", "65536", "whole number from 0 to 65535"],
  ["CRM_CONCURRENCY", "0", "whole number from 1 to 64"],
  ["CRM_BUDGET_SHARE", "0", "above 0, and 1 at most"],
  ["CRM_BUDGET_SHARE", "1.01", "above 0, and 1 at most"],
  ["CRM_BUDGET_SHARE", "25%", "for example 0.25"],
  ["CRM_BASE_URL", "http://api.example.com", "https"],
  ["CRM_BASE_URL", "https://user:pass@api.example.com", "https"],
  ["CRM_AUTH_URL", "ftp://oauth.example.com", "https"],
  ["CRM_REDIRECT_URL", "not an address", "callback address"],
  ["CRM_REDIRECT_URL", "app.example.com:443/crm/callback", "https://app.example.com/crm/callback"],
  ["CRM_REDIRECT_URL", "localhost:5173/callback", "https or on loopback"],
  ["CRM_REDIRECT_URL", "http://app.example.com/crm/callback", "https or on loopback"],
  ["CRM_REDIRECT_URL", "https://app.example.com/:tenant/*", "callback address"],
  ["CRM_REDIRECT_URL", "https://app.example.com/healthz", "and no place of ours"],
  ["CRM_REDIRECT_URL", "https://app.example.com/graphiql/assets/x", "and no place of ours"],
  ["CRM_REDIRECT_URL", "https://app.example.com/r%C3%BCck", "and no place of ours"],
  ["AUTH_JWT_SECRET", "short", "at least 32 bytes"],
  ["ENCRYPTION_KEYS", "k1:c2hvcnQ=", "openssl rand -base64 32"],
  ["ENCRYPTION_KEYS", `k1:${key()},k1:${key()}`, "twice"],
  ["DATABASE_URL", "mysql://localhost", "postgresql://"],
  ["DATABASE_URL", "postgresql://", "postgresql://user:password@host:5432/database"],
  ["DATABASE_URL", "postgresql://crm:hun#ter@127.0.0.1:5432/crm", "%23"],
  ["DATABASE_URL", "postgresql://crm:12#34@127.0.0.1:5432/crm", "%23"],
  ["DATABASE_URL", "postgresql://crm:12/34@127.0.0.1:5432/crm", "%2F"],
  ["DATABASE_URL", "postgresql://crm:12?34@127.0.0.1:5432/crm", "%3F"],
  ["INTROSPECTION", "true", "on or off"],
  ["WEB", "yes", "on or off"],
  ["WEB_TOKEN_URL", "http://app.example.com/token", "https"],
])("%s=%s is refused, and a good value is described", (name, value, hint) => {
  const faults = faultsOf({ ...GOOD, [name]: value });
  expect(faults).toHaveLength(1);
  expect(faults[0]).toContain(name);
  expect(faults[0]).toContain(hint);
});

test.each([
  "postgres://127.0.0.1/crm",
  "postgresql://crm:a@b%23c@db.internal/crm?sslmode=verify-full&sslrootcert=/etc/ca.pem",
  "postgresql:///crm?host=/var/run/postgresql",
  "postgresql://db.internal/crm?user=crm@server&password=x",
])("DATABASE_URL %s is taken as it is", (given) => {
  expect(readConfig({ ...GOOD, DATABASE_URL: given }).databaseUrl?.reveal()).toBe(given);
});

test("the page is served only where it is asked for, and only with an address for its tokens", () => {
  expect(readConfig(GOOD).page).toBeNull();
  expect(faultsOf({ ...GOOD, WEB: "on" })).toEqual([expect.stringContaining("WEB_TOKEN_URL is required when WEB=on")]);
  const tokenUrl = "https://app.example.com/crm/token";
  expect(readConfig({ ...GOOD, WEB: "on", WEB_TOKEN_URL: tokenUrl }).page).toEqual({ tokenUrl });
});

// Seen red: the second of the two to listen ended the process with a word on the port alone.
test.each([{ METRICS_PORT: "4000" }, { PORT: "9464", METRICS_PORT: "9464" }])(
  "metrics on the API's port (%j) are refused",
  (ports) => {
    const { PORT: _port, ...rest } = { PORT: "", ...GOOD };
    expect(faultsOf({ ...rest, ...ports })).toEqual([
      "METRICS_PORT must be another than PORT, which the API listens on, for example 9464",
    ]);
    expect(readConfig({ ...GOOD, METRICS_PORT: "9464" }).metricsPort).toBe(9464);
    // A worker alone does not listen on it.
    expect(readConfig({ ...GOOD, ...ports, ROLES: "worker" }).metricsPort).toBe(Number(ports.METRICS_PORT));
  },
);

test("http is accepted on loopback only", () => {
  expect(readConfig({ ...GOOD, CRM_BASE_URL: "http://127.0.0.1:9/" }).crm.baseUrl).toBe("http://127.0.0.1:9");
});

test("one proof of actors is required, and not two", () => {
  expect(faultsOf({ ...GOOD, AUTH_JWT_SECRET: "" })).toHaveLength(1);
  expect(faultsOf({ ...GOOD, AUTH_JWKS_URL: "https://login.example.com/jwks" })).toHaveLength(1);
});

test("neither a fault nor the configuration itself prints a secret", () => {
  const secret = "canary-0123456789";
  const faults = faultsOf({ ...GOOD, AUTH_JWT_SECRET: secret, ENCRYPTION_KEYS: secret, DATABASE_URL: secret });
  const config = readConfig({ ...GOOD, CRM_CLIENT_SECRET: secret, DATABASE_URL: `postgresql://u:${secret}@h/d` });
  expect(faults).toHaveLength(3);
  expect(`${faults} ${JSON.stringify(config)} ${inspect(config, { depth: 9 })}`).not.toContain(secret);
});
