import { randomBytes } from "node:crypto";
import { request } from "undici";
import type { Simulator } from "../../simulator";
import { createApp } from "../../src/app";
import { type Clock, systemClock } from "../../src/platform/clock";
import { type Config, readConfig } from "../../src/platform/config";
import { createLogger } from "../../src/platform/logger";
import { type ActorClaims, JWT_SECRET, tokenFor } from "./actors";
import type { TestDatabase } from "./database";

export const ENCRYPTION_KEYS = `test:${randomBytes(32).toString("base64")}`;

/** The environment of a service that knows `simulator` as its CRM. */
export function environmentFor(simulator: Pick<Simulator, "url" | "clientId" | "clientSecret" | "redirectUrl">) {
  return {
    PORT: "0",
    CRM_BASE_URL: simulator.url,
    CRM_AUTH_URL: simulator.url,
    CRM_CLIENT_ID: simulator.clientId,
    CRM_CLIENT_SECRET: simulator.clientSecret,
    CRM_REDIRECT_URL: simulator.redirectUrl,
    AUTH_JWT_SECRET: JWT_SECRET,
    ENCRYPTION_KEYS,
    LOG_LEVEL: process.env.TEST_LOG_LEVEL ?? "silent",
    // Who stops it has no balancer that must notice.
    DRAIN_SECONDS: "0",
    COMPILE_QUERIES_AT_USE: process.env.TEST_COMPILE_QUERIES_AT_USE ?? "",
  };
}

export interface GraphQLAnswer<T> {
  status: number;
  data: T;
  errors?: { message: string; extensions: { code: string; errorId?: string } }[];
}

export interface Service {
  url: string;
  /** One operation as an actor (or with a token of one's own making). */
  ask<T = Record<string, never>>(
    query: string,
    variables?: object,
    as?: ActorClaims | { token: string },
  ): Promise<GraphQLAnswer<T>>;
  stop(): Promise<void>;
}

/** What is otherwise than in an environment of `environmentFor`. */
export type ServiceOptions = { clock?: Clock } & Partial<Config>;

/** The whole service in this process, on a free port, with real HTTP to `simulator`. */
export async function startService(
  simulator: Simulator,
  database: Pick<TestDatabase, "url">,
  { clock = systemClock, ...overrides }: ServiceOptions = {},
): Promise<Service> {
  const config = readConfig({ ...environmentFor(simulator), DATABASE_URL: database.url.reveal() });
  const app = createApp({ ...config, ...overrides }, createLogger(config.logLevel), clock);
  const url = await app.start();
  if (!url) throw new Error("the service has no api role");
  return serviceAt(url, () => app.stop());
}

/** A service that runs already, perhaps in another process. */
export function serviceAt(url: string, stop: () => Promise<void>): Service {
  return { url, ask: (query, variables, as) => ask(url, query, variables, as), stop };
}

async function ask<T>(
  url: string,
  query: string,
  variables: object = {},
  as: ActorClaims | { token: string } = {},
): Promise<GraphQLAnswer<T>> {
  const token = "token" in as ? as.token : await tokenFor(as);
  const answer = await request(`${url}/graphql`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify({ query, variables }),
  });
  const body = (await answer.body.json()) as Omit<GraphQLAnswer<T>, "status">;
  return { status: answer.statusCode, ...body };
}
