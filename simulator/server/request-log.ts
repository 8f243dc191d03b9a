import type { FastifyRequest } from "fastify";

export interface LogEntry {
  at: Date;
  method: string;
  path: string;
  /** Values of secret parameters are replaced; their names stay, so that a test can show what was never sent. */
  query: Readonly<Record<string, string>>;
  /** Absent without one. JSON parsed, a form as an object without secrets, anything else as text. */
  body?: unknown;
  /** 0 until an answer is on its way, and for good where the connection was cut. */
  status: number;
  userId: number | null;
  /** Only where the token is another company's than the simulated one. */
  companyId?: number;
  /** Only on requests for tokens. */
  grantType?: string;
  /** What the call took from the company's daily budget, and the balance before it; absent where it was never asked. */
  tokens?: number;
  balance?: number;
  durationMs: number;
}

export interface RequestLog {
  /** In the order of arrival. */
  all(): LogEntry[];
  /** Requests of one method whose path starts with the text, or matches the expression. */
  of(method: string, path: string | RegExp): LogEntry[];
  clear(): void;
}

const MOST_ENTRIES = 200_000;
/** Older entries lose their bodies: notes can be large. */
const MOST_BODIES = 5_000;
const secretParameters = new Set([
  "code",
  "state",
  "token",
  "access_token",
  "refresh_token",
  "client_secret",
  "api_token",
]);

export class RecordedRequests implements RequestLog {
  private entries: LogEntry[] = [];
  private withBody: LogEntry[] = [];

  add(entry: LogEntry): void {
    this.entries.push(entry);
    if ("body" in entry) this.addBody(entry);
    // Twice the bound before cutting: moving the array for each request would cost more than the requests.
    if (this.entries.length > 2 * MOST_ENTRIES) this.entries = this.entries.slice(-MOST_ENTRIES);
  }

  all(): LogEntry[] {
    return this.entries.slice(-MOST_ENTRIES);
  }

  of(method: string, path: string | RegExp): LogEntry[] {
    return this.all().filter((entry) => entry.method === method && matchesPath(path, entry.path));
  }

  clear(): void {
    this.entries = [];
    this.withBody = [];
  }

  private addBody(entry: LogEntry): void {
    this.withBody.push(entry);
    if (this.withBody.length <= 2 * MOST_BODIES) return;
    for (const old of this.withBody.splice(0, MOST_BODIES)) delete old.body;
  }
}

export function entryOf(request: FastifyRequest, at: Date): LogEntry {
  const mark = request.url.indexOf("?");
  return {
    at,
    method: request.method,
    path: mark < 0 ? request.url : request.url.slice(0, mark),
    query: withoutSecrets(request.query as Record<string, unknown>),
    ...(typeof request.body === "string" && request.body !== "" ? { body: shownBody(request, request.body) } : {}),
    status: 0,
    userId: null,
    durationMs: 0,
  };
}

function shownBody(request: FastifyRequest, text: string): unknown {
  if (/^application\/x-www-form-urlencoded/i.test(request.headers["content-type"] ?? "")) {
    return withoutSecrets(Object.fromEntries(new URLSearchParams(text)));
  }
  // What is sent to the token endpoint in another form holds secrets all the same.
  if (request.url.startsWith("/oauth/")) return "[hidden]";
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** A text matches as a prefix. */
export function matchesPath(rule: string | RegExp, path: string): boolean {
  return typeof rule === "string" ? path.startsWith(rule) : rule.test(path);
}

function withoutSecrets(query: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(query).map(([name, value]) => [name, secretParameters.has(name) ? "[hidden]" : String(value)]),
  );
}
