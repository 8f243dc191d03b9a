import { existsSync } from "node:fs";
import proxyAddr from "@fastify/proxy-addr";
import { z } from "zod";
import { SECOND_MS } from "./clock";
import { ServiceError } from "./errors";
import { databaseAddress, encryptionKeys, Secret } from "./keyring";
import { LOG_LEVELS } from "./logger";

export type Role = "api" | "worker";
export type Config = ReturnType<typeof readConfig>;
export type CrmConfig = Config["crm"];
export type AuthConfig = Config["auth"];

/** Every fault of the configuration at once: a line each with the name, what is wrong and what a good value is. */
export class ConfigError extends ServiceError {
  readonly code = "CONFIG_INVALID";

  constructor(readonly faults: readonly string[]) {
    super(`The configuration has ${faults.length} fault(s):\n${faults.map((fault) => `  ${fault}`).join("\n")}`);
  }
}

const LOOPBACK = new Set(["localhost", "127.0.0.1", "[::1]"]);
const MIN_JWT_SECRET_BYTES = 32;

/** Tokens and grants travel here: plain http is for loopback only. */
function secure(text: string): URL | null {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isSecure = url?.protocol === "https:" || (url?.protocol === "http:" && LOOPBACK.has(url.hostname));
  return isSecure && !url.username && !url.password && !url.hash ? url : null;
}

function secureAddress(example: string) {
  const hint = `an https address without a path's end slash (http only on loopback), for example ${example}`;
  return z.string({ error: `is required: ${hint}` }).transform((text, context) => {
    const url = secure(text);
    if (!url || url.search) {
      context.addIssue(`is not usable: give ${hint}`);
      return z.NEVER;
    }
    return text.replace(/\/+$/, "");
  });
}

const number = (isOne: (text: string) => boolean, error: string) =>
  z.string().refine(isOne, { error }).transform(Number);

const wholeNumber = (example: number, min: number, max: number) =>
  number(
    (text) => /^\d+$/.test(text) && Number(text) >= min && Number(text) <= max,
    `must be a whole number from ${min} to ${max}, for example ${example}`,
  );

const share = number(
  (text) => /^(0?\.\d+|1(\.0+)?)$/.test(text) && Number(text) > 0,
  "must be a decimal number above 0, and 1 at most, for example 0.25",
);

const listOf = (isOne: (text: string) => boolean, error: string) =>
  z
    .string()
    .transform((text) => text.split(",").map((one) => one.trim()))
    .refine((list) => list.every(isOne), { error });

const ms = (seconds: number) => seconds * SECOND_MS;
const isRole = (name: string): name is Role => name === "api" || name === "worker";

/** @returns whether it is an address or a network, such as 10.0.0.0/8; the network of all addresses is none */
function isNetwork(text: string): boolean {
  try {
    proxyAddr.compile(text);
    return true;
  } catch {
    return false;
  }
}

/** Exactly what a browser sends as Origin: nothing is matched by a pattern, and "null" would be everybody's. */
const isOrigin = (text: string): boolean => secure(text)?.origin === text && !text.includes("*");

/** Where codes come back: its path becomes a route, in which ":" and "*" would stand for others, and "%" for no letter. */
const CALLBACK_PATH = /^(?!\/(graphql|graphiql|schema\.graphql|healthz|readyz|metrics|assets)(\/|$))[^:*%]+$/;
const isCallback = (text: string): boolean => CALLBACK_PATH.test(secure(text)?.pathname ?? "");
const CALLBACK = "a callback address, https or on loopback and no place of ours: https://app.example.com/crm/callback";

const environment = z.object({
  NODE_ENV: z.string().optional(),
  HOST: z.string().min(1, { error: "must be an address to listen on, for example 127.0.0.1" }).default("127.0.0.1"),
  PORT: wholeNumber(4000, 0, 65_535).default(4000),
  TRUSTED_PROXIES: listOf(
    isNetwork,
    "must list addresses or networks, and not the network of all, for example 10.0.0.5,172.16.0.0/12,fd00::/8",
  ).default([]),
  ALLOWED_ORIGINS: listOf(
    isOrigin,
    "must list exact origins, https://host[:port] (http only on loopback) without a path, an end slash or *, for example https://app.example.com",
  ).default([]),
  METRICS_PORT: wholeNumber(9464, 1, 65_535).optional(),
  DRAIN_SECONDS: wholeNumber(10, 0, 60).default(1),
  OTEL_EXPORTER_OTLP_ENDPOINT: z
    .url({ protocol: /^https?$/, error: "must be the base address of a collector, for example http://127.0.0.1:4318" })
    .transform((text) => text.replace(/\/+$/, ""))
    .optional(),
  INTROSPECTION: z.enum(["on", "off"], { error: "must be on or off" }).optional(),
  COMPILE_QUERIES_AT_USE: wholeNumber(3, 0, 1_000_000).default(3),
  ROLES: listOf(isRole, 'must list "api", "worker" or both, for example api,worker')
    .transform((list) => new Set(list.filter(isRole)))
    .default(new Set<Role>(["api", "worker"])),
  DATABASE_URL: databaseAddress.optional(),
  CRM_BASE_URL: secureAddress("https://api.pipedrive.com").default("https://api.pipedrive.com"),
  CRM_AUTH_URL: secureAddress("https://oauth.pipedrive.com").default("https://oauth.pipedrive.com"),
  CRM_CLIENT_ID: z.string({ error: "is required: the client id of the app registration at the CRM" }).min(1),
  CRM_CLIENT_SECRET: z.string({ error: "is required: the client secret of the app registration at the CRM" }).min(1),
  CRM_REDIRECT_URL: z
    .string({ error: `is required: ${CALLBACK}` })
    .refine(isCallback, { error: `is not usable: give ${CALLBACK}` }),
  CRM_CONCURRENCY: wholeNumber(8, 1, 64).default(8),
  CRM_BUDGET_SHARE: share.default(0.25),
  SYNC_INTERVAL_SECONDS: wholeNumber(900, 0, 86_400 * 30).default(900),
  RECONCILE_INTERVAL_SECONDS: wholeNumber(2_592_000, 0, 86_400 * 365).default(2_592_000),
  AUTH_JWT_SECRET: z
    .string()
    .refine((text) => Buffer.byteLength(text) >= MIN_JWT_SECRET_BYTES, {
      error: `must have at least ${MIN_JWT_SECRET_BYTES} bytes; make one with: openssl rand -base64 48`,
    })
    .optional(),
  AUTH_JWKS_URL: secureAddress("https://login.example.com/.well-known/jwks.json").optional(),
  AUTH_ISSUER: z.string().min(1).optional(),
  AUTH_AUDIENCE: z.string().min(1).optional(),
  ENCRYPTION_KEYS: encryptionKeys,
  WEB: z.enum(["on", "off"], { error: "must be on or off" }).default("off"),
  WEB_TOKEN_URL: secureAddress("https://app.example.com/session/token").optional(),
  LOG_LEVEL: z.enum(LOG_LEVELS, { error: `must be one of ${LOG_LEVELS.join(", ")}` }).default("info"),
});

/** All that are read, each with its default. */
export const VARIABLES: ReadonlyMap<string, unknown> = new Map(
  Object.entries(environment.shape).map(([name, type]) => [name, type.safeParse(undefined).data]),
);

/** Faults of variables together; zod skips such checks where a single variable is at fault, and all are owed at once. */
function faultsBetweenVariables(given: Record<string, string | undefined>, production: boolean): string[] {
  const faults: string[] = [];
  if (production && given.DATABASE_URL === undefined)
    faults.push("DATABASE_URL is required in production: postgresql://user:password@host:5432/database");
  if ((given.AUTH_JWT_SECRET === undefined) === (given.AUTH_JWKS_URL === undefined))
    faults.push("AUTH_JWT_SECRET or AUTH_JWKS_URL is required, and only one of them: how actors' tokens are proven");
  if (given.WEB === "on" && given.WEB_TOKEN_URL === undefined)
    faults.push("WEB_TOKEN_URL is required when WEB=on: where the page asks the host product for the user's token");
  if (/api/.test(given.ROLES ?? "api") && Number(given.METRICS_PORT) === Number(given.PORT ?? VARIABLES.get("PORT")))
    faults.push("METRICS_PORT must be another than PORT, which the API listens on, for example 9464");
  return faults;
}

/** In development the folder's `.env` is read as well, behind the environment; in production a forgotten one is not looked at. */
function environmentOfProcess(): NodeJS.ProcessEnv {
  if (["", "development"].includes(process.env.NODE_ENV ?? "") && existsSync(".env")) process.loadEnvFile();
  return process.env;
}

/**
 * Reads the whole configuration from the environment. An empty variable counts as absent.
 * @throws ConfigError with every fault at once; no value is repeated in it, because it may be a secret.
 */
export function readConfig(env: NodeJS.ProcessEnv = environmentOfProcess()) {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ""));
  const parsed = environment.safeParse(given);
  const production = !["development", "test"].includes(given.NODE_ENV ?? "development"); // "prod" and "staging" too
  const faults = faultsBetweenVariables(given, production);
  if (!parsed.success)
    faults.unshift(...parsed.error.issues.map(({ path, message }) => `${path.join(".")} ${message}`));
  if (faults.length > 0 || !parsed.success) throw new ConfigError(faults);
  const value = parsed.data;
  return {
    production,
    /** Whether clients may ask for the schema. */
    introspection: value.INTROSPECTION ? value.INTROSPECTION === "on" : !production,
    host: value.HOST,
    port: value.PORT,
    drainMs: ms(value.DRAIN_SECONDS),
    /** Addresses and networks of proxies whose word on a client's address is believed. */
    trustedProxies: value.TRUSTED_PROXIES,
    /** Origins of front ends of the customer's own, beside that of the redirect address. */
    allowedOrigins: value.ALLOWED_ORIGINS,
    roles: value.ROLES,
    /** null: run the embedded PostgreSQL in `.data/`. */
    databaseUrl: value.DATABASE_URL ?? null,
    crm: {
      baseUrl: value.CRM_BASE_URL,
      authUrl: value.CRM_AUTH_URL,
      clientId: value.CRM_CLIENT_ID,
      clientSecret: new Secret(value.CRM_CLIENT_SECRET),
      redirectUrl: value.CRM_REDIRECT_URL,
      /** Requests for participants in flight in one run. */
      concurrency: value.CRM_CONCURRENCY,
    },
    auth: {
      proof: value.AUTH_JWKS_URL
        ? { kind: "jwks" as const, url: new URL(value.AUTH_JWKS_URL) }
        : { kind: "secret" as const, secret: new Secret(value.AUTH_JWT_SECRET ?? "") },
      issuer: value.AUTH_ISSUER,
      audience: value.AUTH_AUDIENCE,
    },
    encryptionKeys: value.ENCRYPTION_KEYS,
    /** 0: only by request. */
    sync: { intervalMs: ms(value.SYNC_INTERVAL_SECONDS), reconcileIntervalMs: ms(value.RECONCILE_INTERVAL_SECONDS) },
    /** The part of a company's tokens of a day that syncs may spend: 0 to 1. */
    budgetShare: value.CRM_BUDGET_SHARE,
    /** The base address of an OpenTelemetry collector; null: nothing is traced. */
    tracesEndpoint: value.OTEL_EXPORTER_OTLP_ENDPOINT ?? null,
    /** At which use of a query it is executed by compiled code; 0: never. */
    compileQueriesAtUse: value.COMPILE_QUERIES_AT_USE,
    /** null: no metrics are served. */
    metricsPort: value.METRICS_PORT ?? null,
    /** Where the product's page asks for the bearer token of whoever is signed in at the host product; null: it is not served. */
    page: value.WEB === "on" && value.WEB_TOKEN_URL ? { tokenUrl: value.WEB_TOKEN_URL } : null,
    logLevel: value.LOG_LEVEL,
  };
}
