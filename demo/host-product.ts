import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { SignJWT } from "jose";

const TOKEN_LIFE_SECONDS = 600;
const COOKIE = "demo_user";

interface Person {
  name: string;
  claims: { sub: string; tenant: string; role: string; plan: string; email?: string };
}

export interface HostProductParts {
  jwtSecret: string;
  /** By the name that the cookie carries. */
  people: Readonly<Record<string, Person>>;
  tokenLifeSeconds?: number;
  /** 0: a free one. */
  port?: number;
}

/** What the page needs of the product around it: a sign-in with a session cookie, and tokens for whoever has one. */
export interface HostProduct {
  readonly url: string;
  readonly tokenUrl: string;
  /**
   * The page's address is known only once the service listens.
   * @param others addresses of further front ends that may ask for tokens
   */
  servePage(pageUrl: string, others?: readonly string[]): void;
  stop(): Promise<void>;
}

/**
 * The host product's sign-in in the small, with throw-away users: whoever can open it may be any of them. A real one
 * differs in how it knows its users, and not in what it tells the page.
 */
export async function startHostProduct(parts: HostProductParts): Promise<HostProduct> {
  const { people } = parts;
  const place = { url: "", pageUrl: "", origins: new Set<string>() };
  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.writeHead(500).end());
  });
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://host");
    const returnTo = searchParams.get("return_to") ?? "/";
    const chosen = /^\/sign-in\/([a-z-]+)$/.exec(pathname)?.[1];
    if (request.method === "GET" && pathname === "/") return showPeople(response, people, returnTo);
    if (request.method === "POST" && chosen && people[chosen]) {
      const cookie = `${COOKIE}=${chosen}; HttpOnly; SameSite=Lax; Path=/`;
      return void response.writeHead(303, { location: backAt(place.pageUrl, returnTo), "set-cookie": cookie }).end();
    }
    if (request.method === "POST" && pathname === "/token") {
      return giveToken(request, response, { ...parts, ...place });
    }
    response.writeHead(404).end();
  }
  await new Promise<void>((listening) => server.listen(parts.port ?? 0, "127.0.0.1", listening));
  place.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: place.url,
    tokenUrl: `${place.url}/token`,
    servePage: (pageUrl, others = []) => {
      place.pageUrl = pageUrl;
      place.origins = new Set([pageUrl, ...others].map((address) => new URL(address).origin));
    },
    stop: async () => {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

/** Only ever on the page's own origin: whoever writes a link could send a signed-in person anywhere else. */
function backAt(pageUrl: string, returnTo: string): string {
  const { origin } = new URL(pageUrl);
  const wished = URL.canParse(returnTo, origin) ? new URL(returnTo, origin) : null;
  return wished?.origin === origin ? wished.href : pageUrl;
}

interface TokenParts extends HostProductParts {
  url: string;
  origins: ReadonlySet<string>;
}

/** Only the front ends' own origins may read the answer: it is the bearer token of whoever has the cookie. */
async function giveToken(request: IncomingMessage, response: ServerResponse, parts: TokenParts): Promise<void> {
  const { people, jwtSecret, url, origins, tokenLifeSeconds = TOKEN_LIFE_SECONDS } = parts;
  const { origin = "" } = request.headers;
  if (!origins.has(origin)) return void response.writeHead(403).end();
  const headers = {
    "access-control-allow-origin": origin,
    "access-control-allow-credentials": "true",
    "content-type": "application/json",
    "cache-control": "no-store",
  };
  const name = new RegExp(`(?:^|; )${COOKIE}=([a-z-]+)`).exec(request.headers.cookie ?? "")?.[1];
  const person = name === undefined ? undefined : people[name];
  if (!person) return void response.writeHead(401, headers).end(JSON.stringify({ signInUrl: url }));
  const { sub, ...claims } = person.claims;
  const token = await new SignJWT({ ...claims, name: person.name })
    .setProtectedHeader({ alg: "HS256" })
    .setSubject(sub)
    .setExpirationTime(`${tokenLifeSeconds}s`)
    .sign(new TextEncoder().encode(jwtSecret));
  response.writeHead(200, headers).end(JSON.stringify({ token, signInUrl: url }));
}

function showPeople(response: ServerResponse, people: Readonly<Record<string, Person>>, returnTo: string): void {
  const buttons = Object.entries(people).map(
    ([key, { name, claims }]) =>
      `<form method="post" action="/sign-in/${key}?return_to=${encodeURIComponent(returnTo)}"><button>${name}<small>${claims.role}, ${claims.plan} plan</small></button></form>`,
  );
  response.writeHead(200, { "content-type": "text/html; charset=utf-8", "cache-control": "no-store" });
  response.end(`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Choose who you are</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark"><style>
body { max-width: 26rem; margin: 12vh auto; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif; }
button { display: block; width: 100%; margin-top: .75rem; padding: .75rem 1rem; font: inherit; font-weight: 600; text-align: left; cursor: pointer; }
small { display: block; font-weight: 400; }
</style></head><body><h1>Choose who you are</h1>
<p>This stands for the sign-in of the product around the page. Its users and their tokens live as long as the demo.</p>
${buttons.join("\n")}</body></html>`);
}
