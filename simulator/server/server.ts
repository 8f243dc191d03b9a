import fastify, { type FastifyInstance, type FastifyRequest } from "fastify";
import { type Answer, json, overLimit, Refusal, unauthorized, unknownRoute, wrongMethod } from "../api/answer";
import type { Call, Operation, Twist } from "../api/operation";
import type { Company } from "../model/company";
import type { Settings } from "../model/options";
import type { User } from "../model/records";
import { consentAnswer, consentPage, type SignedIn } from "../oauth/consent-page";
import type { Grants, Identity } from "../oauth/grants";
import { revokeAnswer, type TokenRequest, tokenAnswer } from "../oauth/token-endpoint";
import type { Answering, Exchange, Facts, Work } from "./exchange";
import type { Limits } from "./limits";

export interface Parts {
  settings: Settings;
  company: Company;
  grants: Grants;
  limits: Limits;
  exchange: Exchange;
  signedIn: SignedIn;
  operations: readonly Operation[];
}

const MOST_BODY_BYTES = 1024 * 1024;

export function createServer(parts: Parts): FastifyInstance {
  const server = fastify({
    forceCloseConnections: true,
    bodyLimit: MOST_BODY_BYTES,
    exposeHeadRoutes: false,
  });
  // Every body stays text: what may be sent where is for the endpoints to say, in the CRM's own words.
  server.removeAllContentTypeParsers();
  server.addContentTypeParser("*", { parseAs: "string" }, (_request, body, done) => done(null, body));
  addApi(server, parts);
  addOAuth(server, parts);
  server.setNotFoundHandler(parts.exchange.handler(refusing(parts, unknownRoute)));
  return server;
}

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;

function addApi(server: FastifyInstance, parts: Parts): void {
  const { exchange } = parts;
  const known = new Map<string, string[]>();
  for (const operation of parts.operations) {
    const { path, method = "GET" } = operation;
    known.set(path, [...(known.get(path) ?? []), method]);
    const handler = exchange.handler((...call) => admitted(parts, operation, ...call), `${method} ${path}`);
    for (const url of addressesOf(path)) server.route({ method, url, handler });
  }
  for (const [path, answered] of known) {
    const handler = exchange.handler(refusing(parts, wrongMethod));
    const method = METHODS.filter((one) => !answered.includes(one));
    for (const url of addressesOf(path)) server.route({ method, url, handler });
  }
}

/** Version 1 answers without the /api before it as well. */
function addressesOf(path: string): string[] {
  return path.startsWith("/api/v1/") ? [path, path.slice(4)] : [path];
}

/** Who asks and what it costs is settled on arrival; the work itself may come later. */
function admitted(parts: Parts, operation: Operation, request: FastifyRequest, facts: Facts): Work {
  const token = bearerToken(request);
  const identity = parts.grants.identityOf(token);
  const user = userOf(parts, identity);
  facts.userId = user.id;
  if (identity?.company) facts.companyId = identity.company.id;
  const limit = parts.limits.count(token, `${operation.method ?? "GET"} ${operation.path}`, operation.cost);
  facts.tokens = limit.tokens;
  facts.balance = limit.balance;
  return (twist) => {
    const answer = limit.isOver
      ? overLimit()
      : refusable(() => callOf(operation, { user, company: identity?.company ?? parts.company }, request, twist));
    return { ...answer, headers: { ...limit.headers, ...answer.headers } };
  };
}

/** What is never answered is in the log with its caller all the same. */
function refusing({ grants, limits }: Parts, refusal: () => Answer): Answering {
  return (request, facts) => {
    const token = /^Bearer (\S+)$/i.exec(request.headers.authorization ?? "")?.[1];
    facts.userId = token === undefined ? null : (grants.identityOf(token)?.userId ?? null);
    const answer = { ...refusal(), headers: token === undefined ? {} : limits.count(token, null, 0).headers };
    return () => answer;
  };
}

function callOf(
  operation: Operation,
  caller: Pick<Call, "user" | "company">,
  request: FastifyRequest,
  twist: Twist | undefined,
): Answer {
  return operation.answer({
    ...caller,
    query: request.query as Record<string, unknown>,
    params: request.params as Record<string, string>,
    body: textBody(request),
    contentType: request.headers["content-type"] ?? "",
    twist,
  });
}

/** A refusal is an answer like any other: it is paid for and shows the limits. */
function refusable(make: () => Answer): Answer {
  try {
    return make();
  } catch (error) {
    if (error instanceof Refusal) return error.answer;
    throw error;
  }
}

function bearerToken(request: FastifyRequest): string {
  const header = request.headers.authorization;
  if (header === undefined) throw unauthorized("unauthorized access");
  const token = /^Bearer (\S+)$/i.exec(header)?.[1];
  if (token === undefined) {
    throw new Refusal(json(400, { success: false, error: "Invalid request: malformed authorization header" }));
  }
  return token;
}

function userOf({ company }: Parts, identity: Identity | null): User {
  const user = identity === null ? undefined : company.users.get(identity.userId);
  if (!user) throw unauthorized("Invalid token: access_token is invalid");
  return user;
}

function addOAuth(server: FastifyInstance, parts: Parts): void {
  const { settings, company, grants, exchange, signedIn } = parts;
  const add = (method: "GET" | "POST", url: string, answer: (request: FastifyRequest, facts: Facts) => Answer) =>
    server.route({
      method,
      url,
      handler: exchange.handler((request, facts) => () => answer(request, facts), `${method} ${url}`),
    });
  add("GET", "/oauth/authorize", (request) => {
    const query = new URL(request.url, "http://simulator").searchParams;
    return consentPage(settings, company, signedIn, query);
  });
  add("POST", "/oauth/authorize", (request) =>
    consentAnswer(settings, grants, signedIn, new URLSearchParams(textBody(request))),
  );
  add("POST", "/oauth/token", (request, facts) => {
    const asked = tokenRequest(request);
    facts.grantType = new URLSearchParams(asked.body).get("grant_type") ?? undefined;
    return tokenAnswer(settings, grants, asked);
  });
  add("POST", "/oauth/revoke", (request) => revokeAnswer(settings, grants, tokenRequest(request)));
  for (const url of ["/oauth/token", "/oauth/revoke"]) add("GET", url, wrongMethod);
}

function tokenRequest(request: FastifyRequest): TokenRequest {
  return {
    contentType: request.headers["content-type"] ?? "",
    authorization: request.headers.authorization,
    body: textBody(request),
  };
}

function textBody(request: FastifyRequest): string {
  return typeof request.body === "string" ? request.body : "";
}
