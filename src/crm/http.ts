import { setMaxListeners } from "node:events";
import type { IncomingHttpHeaders } from "node:http";
import { Agent, type Dispatcher, errors } from "undici";
import { type Clock, systemClock, timeLimit } from "../platform/clock";
import { codeOf, messageOf, ServiceError } from "../platform/errors";
import type { Logger } from "../platform/logger";
import type { Metrics } from "../platform/metrics";
import { traced, workCounts, workTenant } from "../platform/work";
import { CrmError } from "./errors";

const CONNECT_TIMEOUT_MS = 10_000;
/** From the wait for a socket to the last byte read: a slowly dripping answer ends here too. */
const ANSWER_TIMEOUT_MS = 30_000;
/** Most pages of 500 records stay far below this; of what does not, such as long notes, smaller pages are asked for. */
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;
/** What the CRM calls an answer goes into logs: no other text does, such as a token that comes back. */
const CORRELATION_ID = /^[\w-]{1,64}$/;
/** The largest integer of PostgreSQL. */
const MAX_TOKENS = 2_147_483_647;
/** Sockets to one origin, for all connections of this process together. */
const MAX_SOCKETS = 128;
/** Of one tenant: as many as it has operations at work, and a run beside them. The last are for who holds few: a CRM that answers late fills all others. */
const SHARES = { ofTenant: 64, last: 32, few: 2 };
/** So often it is looked whether a call that waits for one of them may still be made. */
const WAITING_LOOK_MS = 250;

/** It may lead a text, and is no JSON. */
const BYTE_ORDER_MARK = /^\ufeff/;

/** Failures of an answer that had not come, or not all of it, when its time was over. */
const TIMED_OUT = new Set<unknown>(["UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT"]);

export interface CrmRequest {
  method: "GET" | "POST" | "PATCH";
  url: string;
  headers: Record<string, string>;
  body?: string;
  /**
   * Called in the turn of the event loop that writes the first byte, after any wait for a socket; it throws where nothing
   * may be sent any more, and then nothing is.
   */
  mayBegin?: () => void;
  /** Looked at while it waits for a socket: where it rejects, nothing is sent any more. */
  mayWait?: () => Promise<void>;
  /** Ends the wait for an answer that nobody needs any more; only for what reads. */
  stop?: AbortSignal;
  /** An answer that came while this process was frozen counts, however late it is read. */
  readLate?: boolean;
}

export interface CrmAnswer {
  status: number;
  /** In lower case; "" where it is missing. */
  contentType: string;
  /**
   * Bytes, until {@link textOf} is needed: a long text that outlives a collection of the young generation, as one that
   * waits for its turn to be read, is kept until the next full one.
   */
  body: Buffer;
  /** The CRM's own clock (its `Date` header); null where it sent none. */
  date: Date | null;
  correlationId: string | undefined;
  /** Of all headers, in lower case. */
  headerNames: readonly string[];
  /** The burst limit's headers; null where they are missing. */
  limit: { remaining: number | null; reset: number | null };
  /** The company's tokens a day and what was left before this call; not documented, and null where they are missing. */
  day: { limit: number | null; remaining: number | null };
}

/** One request, one answer: no retry, no redirect, no cookie jar (a jar shared between tenants would mix them). */
export class CrmHttp {
  readonly #agent = new Agent({
    connections: MAX_SOCKETS,
    connect: { timeout: CONNECT_TIMEOUT_MS },
    headersTimeout: ANSWER_TIMEOUT_MS,
    bodyTimeout: ANSWER_TIMEOUT_MS,
    maxResponseSize: MAX_ANSWER_BYTES,
  });

  /** By origin: a token is had also where calls wait. */
  readonly #turns = new Map<string, SocketTurns>();

  /** @param mayCall looked at before every call, a token renewal too, and while it waits; it throws a CrmError where none may be made */
  constructor(
    private readonly metrics?: Metrics,
    private readonly logger?: Logger,
    private readonly mayCall: () => Promise<void> = async () => undefined,
    private readonly clock: Clock = systemClock,
  ) {}

  /** @throws what `mayBegin` throws; CrmError UNAVAILABLE where no whole answer arrived, UNREADABLE where it is over the size limit */
  async send(asked: CrmRequest): Promise<CrmAnswer> {
    await this.mayCall();
    const route = routeOf(asked);
    const ended = this.metrics?.crmCalls.startTimer({ route });
    const counts = workCounts();
    if (counts) counts.crm += 1;
    let status = 0;
    let correlationId: string | undefined;
    try {
      const answer = await traced(route, { "http.request.method": asked.method }, () => this.#send(asked));
      ({ status, correlationId } = answer);
      return answer;
    } finally {
      const seconds = ended?.({ status });
      this.logger?.debug({ route, status, seconds, correlationId }, "a call to the CRM");
    }
  }

  async #send({ url, mayBegin, mayWait, readLate = false, stop, ...asked }: CrmRequest): Promise<CrmAnswer> {
    const isLate = timeLimit(this.clock, ANSWER_TIMEOUT_MS);
    let [endLimits, leave] = [() => {}, () => {}];
    let looks: NodeJS.Timeout | undefined;
    let isUnsent = () => true;
    try {
      const { origin, pathname, search } = new URL(url);
      const whole = await new Promise<Whole>((came, failed) => {
        const answer = new Answer(mayBegin, came, failed);
        isUnsent = () => answer.isUnsent;
        endLimits = limitAnswer(answer, stop);
        const mayStill = () => Promise.all([this.mayCall(), mayWait?.()]);
        const look = () => answer.isUnsent && mayStill().catch((error) => answer.isUnsent && answer.callOff(error));
        looks = setInterval(look, WAITING_LOOK_MS);
        const send = () => this.#agent.dispatch({ ...asked, origin, path: pathname + search }, answer);
        leave = this.#turnsAt(origin).take(workTenant(), () => answer.begin(send));
      });
      if (isLate() && !readLate) throw new Error("the answer came too late");
      return readAnswer(whole);
    } catch (cause) {
      if (cause instanceof ServiceError) throw cause;
      if (cause instanceof errors.ResponseExceededMaxSizeError) {
        const why = `The CRM's answer is larger than ${MAX_ANSWER_BYTES} bytes.`;
        throw new CrmError("UNREADABLE", why, { tooLarge: true }, { cause });
      }
      // Not by the failure's code: a connection that stood may end as one that never came about.
      const neverSent = isUnsent();
      const detail = { neverSent, tooSlow: !neverSent && TIMED_OUT.has(codeOf(cause)) };
      const what = neverSent ? "No connection to the CRM came about or free" : "The CRM's answer did not come";
      throw new CrmError("UNAVAILABLE", `${what}: ${messageOf(cause)}.`, detail, { cause });
    } finally {
      clearInterval(looks);
      endLimits();
      leave();
    }
  }

  #turnsAt(origin: string): SocketTurns {
    const turns = this.#turns.get(origin) ?? new SocketTurns();
    this.#turns.set(origin, turns);
    return turns;
  }

  close(): Promise<void> {
    return this.#agent.close();
  }
}

/** Sockets by tenant, in the order of asking: whose CRM answers late waits behind itself, and not before the others. What is no tenant's has no share. */
export class SocketTurns {
  readonly #held = new Map<number | null, number>();
  #inAll = 0;
  #waiting: { tenantId: number | null; begin: () => void }[] = [];

  /** @param begin called when it may have a socket. @returns gives that back, or ends the wait */
  take(tenantId: number | null, begin: () => void): () => void {
    const turn = { tenantId, begin };
    this.#waiting.push(turn);
    this.#serve();
    return () => {
      const others = this.#waiting.filter((other) => other !== turn);
      const hasBegun = others.length === this.#waiting.length;
      this.#waiting = others;
      if (hasBegun) this.#count(tenantId, -1);
      this.#serve();
    };
  }

  #serve(): void {
    for (let next = this.#next(); next; next = this.#next()) {
      this.#waiting.splice(this.#waiting.indexOf(next), 1);
      this.#count(next.tenantId, 1);
      next.begin();
    }
  }

  #next() {
    if (this.#inAll >= MAX_SOCKETS) return undefined;
    const most = this.#inAll < MAX_SOCKETS - SHARES.last ? SHARES.ofTenant : SHARES.few;
    return this.#waiting.find(({ tenantId }) => tenantId === null || (this.#held.get(tenantId) ?? 0) < most);
  }

  #count(tenantId: number | null, by: 1 | -1): void {
    const held = (this.#held.get(tenantId) ?? 0) + by;
    if (held > 0) this.#held.set(tenantId, held);
    else this.#held.delete(tenantId);
    this.#inAll += by;
  }
}

interface Whole {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/** One answer as it arrives. What the library's `request` makes of it beside its text costs as much as to send a request. */
class Answer implements Dispatcher.DispatchHandler {
  readonly #chunks: Buffer[] = [];
  #head: Omit<Whole, "body"> = { status: 0, headers: {} };
  #request: Dispatcher.DispatchController | null = null;
  #calledOff: Error | null = null;

  constructor(
    private readonly mayBegin: CrmRequest["mayBegin"],
    private readonly came: (whole: Whole) => void,
    private readonly failed: (error: unknown) => void,
  ) {}

  /** No byte of the request was written: it waited for a connection to its end, or still does. */
  get isUnsent(): boolean {
    return this.#request === null;
  }

  begin(send: () => void): void {
    try {
      send();
    } catch (error) {
      this.failed(error);
    }
  }

  /** Nothing is sent of it any more, and nobody waits for it. */
  callOff(reason: Error): void {
    this.#calledOff = reason;
    this.failed(reason);
    this.#request?.abort(reason);
  }

  /** When a socket is there, in the turn that writes the request to it. */
  onRequestStart(request: Dispatcher.DispatchController): void {
    if (this.#calledOff) throw this.#calledOff;
    this.mayBegin?.();
    this.#request = request;
  }

  onResponseStart(_request: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    this.#head = { status, headers };
  }

  onResponseData(_request: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    this.came({ ...this.#head, body: Buffer.concat(this.#chunks) });
  }

  onResponseError(_request: Dispatcher.DispatchController, error: Error): void {
    this.failed(error);
  }
}

/**
 * Ends the wait for an answer, at its limit or where it is stopped. The timers of a process that was frozen fire before it
 * reads its sockets: what has arrived meanwhile is read first.
 */
function limitAnswer(answer: Answer, stop: AbortSignal | undefined): () => void {
  const late = () => answer.callOff(new errors.BodyTimeoutError(`no whole answer within ${ANSWER_TIMEOUT_MS} ms`));
  const timer = setTimeout(() => setImmediate(() => setImmediate(late)), ANSWER_TIMEOUT_MS);
  const stopped = () => answer.callOff(new Error("the work it was for has been stopped"));
  if (stop?.aborted) stopped();
  // As many listeners as requests in hand are no leak.
  if (stop) setMaxListeners(0, stop);
  stop?.addEventListener("abort", stopped);
  return () => {
    clearTimeout(timer);
    stop?.removeEventListener("abort", stopped);
  };
}

/** What the CRM wrote, without the byte order mark that may lead it. */
export const textOf = ({ body }: Pick<CrmAnswer, "body">): string => body.toString().replace(BYTE_ORDER_MARK, "");

/** The documented address without its ids, so that there are few of them. */
export function routeOf({ method, url }: Pick<CrmRequest, "method" | "url">): string {
  return `${method} ${new URL(url).pathname.replace(/\/\d+/g, "/{id}")}`;
}

function readAnswer({ status, headers, body }: Whole): CrmAnswer {
  /** The first of one that is repeated. */
  const header = (name: string) => [headers[name]].flat()[0];
  return {
    status,
    body,
    contentType: header("content-type")?.toLowerCase() ?? "",
    date: dateOf(header("date")),
    correlationId: CORRELATION_ID.exec(header("x-correlation-id") ?? "")?.[0],
    headerNames: Object.keys(headers),
    limit: { remaining: numberOf(header("x-ratelimit-remaining")), reset: numberOf(header("x-ratelimit-reset")) },
    day: {
      limit: tokensOf(header("x-daily-ratelimit-token-limit")),
      remaining: tokensOf(header("x-daily-ratelimit-token-remaining")),
    },
  };
}

function numberOf(header: string | undefined): number | null {
  return header !== undefined && /^\d+$/.test(header) ? Number(header) : null;
}

/** Only what a column of the database holds: a larger number would be no company's. */
function tokensOf(header: string | undefined): number | null {
  const tokens = numberOf(header);
  return tokens !== null && tokens <= MAX_TOKENS ? tokens : null;
}

/** None from before 1970: of what comes before our era the database keeps only a part. */
function dateOf(header: string | undefined): Date | null {
  const date = new Date(header ?? "");
  return date.getTime() >= 0 ? date : null;
}
