import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import fastifyStatic from "@fastify/static";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { GraphQLSchema } from "graphql";
import { codeOf, messageOf, ServiceError } from "../platform/errors";
import { printedSchema } from "../resolvers/graphql-schema";
import { LISTEN_BACKLOG } from "./bounds";

class ServerStartError extends ServiceError {
  readonly code = "SERVER_START_FAILED";
}

/** @param variable the variable of the configuration that names the port. @throws ServerStartError with what to do */
export async function listen(fastify: FastifyInstance, host: string, port: number, variable: string): Promise<string> {
  try {
    return await fastify.listen({ host, port, backlog: LISTEN_BACKLOG });
  } catch (cause) {
    if (codeOf(cause) === "EADDRINUSE") {
      const advice = `Stop what uses it, or set ${variable} to another.`;
      throw new ServerStartError(`Port ${port} on ${host} is in use. ${advice}`, { cause });
    }
    const why = `${messageOf(cause)}. HOST must be an address of this machine, ${variable} a port that this user may take`;
    throw new ServerStartError(`The server cannot listen on ${host}:${port}: ${why}.`, { cause });
  }
}

export interface PageParts {
  /** Where the built page lies; its addresses under `/assets` carry a hash of their content. */
  directory: string;
  /** Where the page asks for the bearer token of whoever is signed in. */
  tokenUrl: string;
  /** The redirect address of the app registration: the page takes the CRM's answer there. */
  redirectUrl: string;
}

export interface FrontParts {
  schema: GraphQLSchema;
  /** Whether the schema may be read. */
  introspection: boolean;
  /** Where the built GraphiQL lies; null: none is served. */
  explorer: string | null;
  /** null: no page is served. */
  page: PageParts | null;
}

const PLACES_OF_PAGE = ["/settings", "/meetings", "/quiet", "/quiet/settings"];
/** The page's own addresses. All get the same document, and the page shows what belongs to its address. */
const ADDRESSES = ["/", "/meetings/*", ...PLACES_OF_PAGE.flatMap((place) => [place, `${place}/`])];
const PLACE_OF_TOKEN_URL = '<meta name="token-url" content=""';
const HTML = "text/html; charset=utf-8";

/** What each address is for, as `GET /` tells it. */
const PLACES = {
  "/graphql": "GraphQL: POST with JSON, and a WebSocket (graphql-transport-ws) for subscriptions",
  "/schema.graphql": "the schema",
  "/graphiql": "GraphiQL, to try operations in",
  "/healthz": "whether the process lives",
  "/readyz": "whether it can serve",
};

/** All that is served beside the API: the schema and GraphiQL where they may be seen, and the page or the list of places. */
export async function addFront(
  fastify: FastifyInstance,
  parts: Omit<FrontParts, "page">,
  page: ProductPage | null,
): Promise<void> {
  const { "/schema.graphql": schema, "/graphiql": explorer, ...places } = PLACES;
  const shown: Record<string, string> = places;
  if (parts.introspection) {
    shown["/schema.graphql"] = schema;
    const text = printedSchema(parts.schema);
    fastify.get("/schema.graphql", (_request, reply) => reply.type("text/plain; charset=utf-8").send(text));
  }
  // `npm run build` makes it; a service that was only compiled goes without.
  if (parts.explorer !== null && existsSync(join(parts.explorer, "index.html"))) {
    shown["/graphiql"] = explorer;
    await addExplorer(fastify, parts.explorer);
  }
  if (page) await page.serve(fastify);
  else addPlaces(fastify, shown);
}

function addPlaces(fastify: FastifyInstance, places: Readonly<Record<string, string>>): void {
  const lines = Object.entries(places).map(([address, what]) => `<li><a href="${address}">${address}</a> ${what}</li>`);
  const document = `<!doctype html><html lang="en"><meta charset="utf-8"><title>CRM connection</title><ul>${lines.join("")}</ul></html>`;
  const headers = headersOf({});
  fastify.get("/", (request, reply) => {
    if (!request.headers.accept?.includes("text/html")) return reply.send({ service: "crm-connection", places });
    return reply.headers(headers).type(HTML).send(document);
  });
}

async function addExplorer(fastify: FastifyInstance, directory: string): Promise<void> {
  const document = readFileSync(join(directory, "index.html"), "utf8");
  // Its stylesheet holds its fonts.
  const headers = headersOf({ "font-src": "data:" });
  await addAssets(fastify, directory, "/graphiql/assets/");
  fastify.get("/graphiql", (_request, reply) => reply.headers(headers).type(HTML).send(document));
}

/**
 * The product's page, which is a client of the public API and nothing else. What it may load, and to whom it may
 * speak, is in the headers of its document.
 */
export class ProductPage {
  readonly #document: string;
  readonly #headers: Record<string, string>;

  /** @throws ServerStartError where the page was not built */
  constructor(private readonly parts: PageParts) {
    this.#document = readDocument(parts.directory, parts.tokenUrl);
    this.#headers = headersOf({ "connect-src": `'self' ${new URL(parts.tokenUrl).origin}` });
  }

  async serve(fastify: FastifyInstance): Promise<void> {
    const { directory, redirectUrl } = this.parts;
    await addAssets(fastify, directory, "/assets/");
    for (const address of new Set([...ADDRESSES, new URL(redirectUrl).pathname]))
      fastify.get(address, (_request, reply) => this.#show(reply));
    fastify.setNotFoundHandler(this.sayNowhere);
  }

  /** A person at a wrong address gets the page, which says so and leads on; a program gets its plain answer. */
  sayNowhere = (
    { method, url, headers }: Pick<FastifyRequest, "method" | "url" | "headers">,
    reply: FastifyReply,
  ): FastifyReply => {
    reply.code(404);
    if (method === "GET" && headers.accept?.includes("text/html")) return this.#show(reply);
    return reply.send({ statusCode: 404, error: "Not Found", message: `There is no ${method} ${url}` });
  };

  #show(reply: FastifyReply): FastifyReply {
    return reply.headers(this.#headers).type(HTML).send(this.#document);
  }
}

async function addAssets(fastify: FastifyInstance, directory: string, prefix: string): Promise<void> {
  await fastify.register(
    async (scope) => {
      scope.setNotFoundHandler(askElsewhere);
      await scope.register(fastifyStatic, {
        root: resolve(directory, "assets"),
        index: false,
        decorateReply: false,
        cacheControl: false,
        setHeaders: (reply) => {
          reply.setHeader("cache-control", "public, max-age=31536000, immutable");
          reply.setHeader("x-content-type-options", "nosniff");
        },
      });
    },
    { prefix },
  );
}

/** Browsers follow twenty. */
const MOST_TIMES_ASKED = 12;

/**
 * While one version follows another, a document's files are with every second process: a browser that was sent to one without is
 * sent on, on another connection, until whoever balances the load gives it one that has the file.
 */
function askElsewhere({ url }: FastifyRequest, reply: FastifyReply): FastifyReply {
  const times = Number(new URLSearchParams(url.split("?")[1]).get("asked") ?? 1);
  reply.headers({ "cache-control": "no-store", connection: "close" });
  return times < MOST_TIMES_ASKED ? reply.redirect(`?asked=${times + 1}`, 307) : reply.code(404).send();
}

function readDocument(directory: string, tokenUrl: string): string {
  const file = join(directory, "index.html");
  if (!existsSync(file)) {
    throw new ServerStartError(`WEB=on and there is no page in ${directory}. Build it: npm run build. Or set WEB=off.`);
  }
  const escaped = new URL(tokenUrl).href.replaceAll("&", "&amp;").replaceAll('"', "&quot;");
  return readFileSync(file, "utf8").replace(PLACE_OF_TOKEN_URL, `${PLACE_OF_TOKEN_URL.slice(0, -1)}${escaped}"`);
}

/**
 * Nothing from elsewhere, nothing inline, no frame; the address, which may hold the CRM's code, is told to nobody.
 * @param others what a document needs otherwise, or besides
 */
function headersOf(others: Readonly<Record<string, string>>): Record<string, string> {
  const policy = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self'",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
    "require-trusted-types-for": "'script'",
    ...others,
  };
  return {
    "content-security-policy": Object.entries(policy)
      .map(([directive, value]) => `${directive} ${value}`)
      .join("; "),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
  };
}
