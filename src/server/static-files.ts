import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import fastifyStatic from "@fastify/static";
import type { FastifyInstance } from "fastify";
import { ServerStartError } from "./listen";

export interface PageParts {
  /** Where the built page lies; its addresses under `/assets` carry a hash of their content. */
  directory: string;
  /** Where the page asks for the bearer token of whoever is signed in. */
  tokenUrl: string;
  /** The redirect address of the app registration: the page takes the CRM's answer there. */
  redirectUrl: string;
}

/** The page's own addresses. All get the same document, and the page shows what belongs to its address. */
const ADDRESSES = ["/", "/settings", "/meetings", "/meetings/*", "/quiet"];
const PLACE_OF_TOKEN_URL = '<meta name="token-url" content=""';

/**
 * The product's page, which is a client of the public API and nothing else. What it may load, and to whom it may
 * speak, is in the headers of its document.
 * @throws ServerStartError where the page was not built
 */
export async function addPage(
  fastify: FastifyInstance,
  { directory, tokenUrl, redirectUrl }: PageParts,
): Promise<void> {
  const document = readDocument(directory, tokenUrl);
  const headers = headersOf(tokenUrl);
  await fastify.register(fastifyStatic, {
    root: resolve(directory, "assets"),
    prefix: "/assets/",
    index: false,
    decorateReply: false,
    cacheControl: false,
    setHeaders: (reply) => {
      reply.setHeader("cache-control", "public, max-age=31536000, immutable");
      reply.setHeader("x-content-type-options", "nosniff");
    },
  });
  for (const address of new Set([...ADDRESSES, new URL(redirectUrl).pathname])) {
    fastify.get(address, (_request, reply) => reply.headers(headers).type("text/html; charset=utf-8").send(document));
  }
}

function readDocument(directory: string, tokenUrl: string): string {
  const file = join(directory, "index.html");
  if (!existsSync(file)) {
    throw new ServerStartError(`WEB=on and there is no page in ${directory}. Build it: npm run build. Or set WEB=off.`);
  }
  const escaped = new URL(tokenUrl).href.replaceAll("&", "&amp;").replaceAll('"', "&quot;");
  return readFileSync(file, "utf8").replace(PLACE_OF_TOKEN_URL, `${PLACE_OF_TOKEN_URL.slice(0, -1)}${escaped}"`);
}

/** Nothing from elsewhere, nothing inline, no frame; the address, which may hold the CRM's code, is told to nobody. */
function headersOf(tokenUrl: string): Record<string, string> {
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    `connect-src 'self' ${new URL(tokenUrl).origin}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ];
  return {
    "content-security-policy": policy.join("; "),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
  };
}
