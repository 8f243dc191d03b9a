export interface LogEntry {
  at: Date;
  method: string;
  path: string;
  /** Values of secret parameters are replaced; their names stay, so that a test can show what was never sent. */
  query: Readonly<Record<string, string>>;
  /** 0 until an answer is on its way, and for good where the connection was cut. */
  status: number;
  userId: number | null;
  /** Only on requests for tokens. */
  grantType?: string;
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

  add(entry: LogEntry): void {
    this.entries.push(entry);
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
  }
}

/** A text matches as a prefix. */
export function matchesPath(rule: string | RegExp, path: string): boolean {
  return typeof rule === "string" ? path.startsWith(rule) : rule.test(path);
}

export function withoutSecrets(query: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(query).map(([name, value]) => [name, secretParameters.has(name) ? "[hidden]" : String(value)]),
  );
}
