import { setTimeout as sleep } from "node:timers/promises";
import { type Clock, SECOND_MS, systemClock } from "../platform/clock";
import type { Secret } from "../platform/keyring";
import { CrmError, failureOfStatus } from "./errors";
import type { CrmAnswer, CrmHttp, CrmRequest } from "./http";
import type { CrmEntity } from "./parsing/fields";
import { codeOfRefusal, detailOf, isHtml, isProxys } from "./parsing/page";

/** A documented address, and what one request to it costs of the company's tokens for the day. */
export interface Address {
  path: string;
  price: number;
}

const PATHS: Record<CrmEntity, { records: string; fields: string }> = {
  DEAL: { records: "/api/v2/deals", fields: "/api/v2/dealFields" },
  PERSON: { records: "/api/v2/persons", fields: "/api/v2/personFields" },
  ORGANIZATION: { records: "/api/v2/organizations", fields: "/api/v2/organizationFields" },
};

/** Every call that this service makes with a token. The prices are those of the CRM's reference (`x-token-cost`). */
export const ADDRESSES = {
  currentUser: { path: "/api/v1/users/me", price: 2 },
  users: { path: "/api/v1/users", price: 20 },
  pipelines: { path: "/api/v2/pipelines", price: 5 },
  stages: { path: "/api/v2/stages", price: 5 },
  organizations: { path: PATHS.ORGANIZATION.records, price: 10 },
  persons: { path: PATHS.PERSON.records, price: 10 },
  deals: { path: PATHS.DEAL.records, price: 10 },
  activities: { path: "/api/v2/activities", price: 10 },
  notes: { path: "/api/v1/notes", price: 20 },
  participants: (dealId: number) => ({ path: `/api/v1/deals/${dealId}/participants`, price: 10 }),
  fields: (entity: CrmEntity) => ({ path: PATHS[entity].fields, price: 10 }),
  record: (entity: CrmEntity, id: number) => ({ path: `${PATHS[entity].records}/${id}`, price: 1 }),
  createNote: { path: "/api/v1/notes", price: 10 },
  setCustomFields: (entity: CrmEntity, id: number) => ({ path: `${PATHS[entity].records}/${id}`, price: 5 }),
} satisfies Record<string, Address | ((...of: never[]) => Address)>;

/** Tokens that are set aside to pay for calls. */
export interface Reservation {
  /** Sets a request's price aside, before it is sent: each page has its own, and so has a repeat. @throws BudgetLowError */
  spend(price: number): Promise<Payment>;
  /** Calls of this price together are about to be made: what they cost may be set aside at once. */
  expect?(price: number): void;
}

/** One request that is paid for. It hears once what came of it, or never where its answer was lost, or is a proxy's. */
export interface Payment {
  answered(answer: Pick<CrmAnswer, "status" | "limit" | "day">): void;
  /** Certainly nothing was sent: the price is not spent. */
  unsent(): void;
}

export const PAID_BY_NOBODY: Payment = { answered: () => undefined, unsent: () => undefined };
/** For calls whose company is not known yet. */
const NO_RESERVATION: Reservation = { spend: async () => PAID_BY_NOBODY };

/** Requests of a window that are left to others. */
const RESERVE = 2;
/** The documented window is two seconds; whatever a header says, nobody waits longer. */
const LONGEST_WAIT_MS = 10 * SECOND_MS;
/** Above this an `x-ratelimit-reset` is an instant in epoch seconds, not a number of seconds. */
export const EPOCH_FROM = 1_000_000;

/**
 * Slows one connection down before it reaches the CRM's burst limit, by what the answers' headers say is left. That
 * is not back-off: nothing is repeated, and a 429 that comes all the same is final.
 *
 * The window rolls: when it is said to end, only its oldest requests leave it. So one request goes first then, and
 * the others wait for what its answer says.
 */
export class Pacer {
  /** The least that the window had left, and until when that holds, by a clock that nobody sets. */
  #left = Number.POSITIVE_INFINITY;
  #until = 0;
  #inFlight = 0;
  readonly #waiting = new Set<() => void>();

  constructor(private readonly clock: Clock) {}

  /** Sends when there is room for it. */
  async paced(send: () => Promise<CrmAnswer>): Promise<CrmAnswer> {
    while (!this.#mayBegin()) await this.#change();
    this.#inFlight += 1;
    try {
      const answer = await send();
      // What a refusal says is no reason to wait: that would be back-off (specification 8).
      if (answer.status !== 429) this.#note(answer.limit);
      return answer;
    } finally {
      this.#inFlight -= 1;
      for (const wake of this.#waiting) wake();
      this.#waiting.clear();
    }
  }

  /** Those in flight may not be counted yet in what was left. */
  #mayBegin(): boolean {
    if (this.#left - this.#inFlight > RESERVE) return true;
    return this.#inFlight === 0 && performance.now() >= this.#until;
  }

  /** Until the next answer, or until what is known of the window is over. */
  #change(): Promise<unknown> {
    if (this.#inFlight === 0) return sleep(this.#until - performance.now());
    return new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  /** Answers arrive in any order: within a window the lowest counts. */
  #note({ remaining, reset }: CrmAnswer["limit"]): void {
    if (remaining === null || reset === null) {
      this.#left = Number.POSITIVE_INFINITY;
      return;
    }
    const now = performance.now();
    if (now < this.#until && remaining >= this.#left) return;
    const seconds = reset > EPOCH_FROM ? reset - this.clock().getTime() / SECOND_MS : reset;
    this.#left = remaining;
    this.#until = now + Math.min(seconds * SECOND_MS, LONGEST_WAIT_MS);
  }
}

/** Gives a call its access token. */
export interface TokenSource {
  current(): Promise<Secret>;
  /** A newer token after the CRM refused `refused` with 401; throws where there is none to be had. */
  renewed(refused: Secret): Promise<Secret>;
}

export interface CallParts {
  http: CrmHttp;
  baseUrl: string;
  tokens: TokenSource;
  pacer?: Pacer;
  /** Called right before each request is written; it throws where the caller has lost what it works on. */
  mayBegin?: () => void;
  /** Looked at while a request waits for a socket; where it rejects, that is not sent. */
  mayWait?: () => Promise<void>;
  reservation?: Reservation;
  /** Calls off requests in hand, which read; their answers are not waited for any more. */
  stop?: AbortSignal;
}

export type Query = Record<string, string | number | null>;

export interface Call extends Address {
  method: "GET" | "POST" | "PATCH";
  query?: Query;
  body?: object;
}

/** How a call becomes a request: paid, paced, with a token, and its answer sorted. */
export class Calls {
  readonly #pacer: Pacer;
  #renewed = "";

  constructor(private readonly parts: CallParts) {
    this.#pacer = parts.pacer ?? new Pacer(systemClock);
  }

  /**
   * A refused token is renewed once and the call repeated once (decision 0030). To the new token an address is refused: none newer is asked for.
   * @throws CrmError
   */
  async make(call: Call): Promise<CrmAnswer> {
    const { answer, token } = await this.#send(call, () => this.parts.tokens.current());
    const isKnown = call.method === "GET" && token.reveal() === this.#renewed;
    if (answer.status !== 401 || isHtml(answer) || isKnown) return successful(answer, isKnown);
    const again = await this.#send(call, () => this.parts.tokens.renewed(token));
    this.#renewed = again.token.reveal();
    return successful(again.answer, call.method === "GET");
  }

  /** Paid before anything else: what may not be asked is no reason to renew a token. */
  async #send(call: Call, tokenOf: () => Promise<Secret>): Promise<{ answer: CrmAnswer; token: Secret }> {
    const { http, reservation = NO_RESERVATION } = this.parts;
    const payment = await reservation.spend(call.price);
    try {
      const token = await tokenOf();
      const request = this.#request(call, token);
      const answer = await this.#pacer.paced(() => http.send(request));
      // A proxy's 429 would stop syncs as if the company's tokens were used up.
      if (!isProxys(answer)) payment.answered(answer);
      return { answer, token };
    } catch (error) {
      // Whatever else throws did so before the first byte; of an answer that was lost, the CRM has taken its price.
      if (!(error instanceof CrmError) || error.detail.neverSent) payment.unsent();
      throw error;
    }
  }

  #request({ method, path, query = {}, body }: Call, token: Secret): CrmRequest {
    const { baseUrl, mayBegin, mayWait, stop } = this.parts;
    const url = new URL(baseUrl + path);
    for (const [name, value] of Object.entries(query)) if (value !== null) url.searchParams.set(name, String(value));
    const headers: Record<string, string> = {
      authorization: `Bearer ${token.reveal()}`,
      accept: "application/json",
    };
    if (body) headers["content-type"] = "application/json";
    // What the CRM says of a write it says once; what was read is out of date.
    const isWrite = method !== "GET";
    const sent = { method, url: url.href, headers, body: body && JSON.stringify(body) };
    return { ...sent, mayBegin, mayWait, stop, readLate: isWrite };
  }
}

/** @param knows the CRM has just said whose the token is: what it refuses is this address, as for want of a right */
function successful(answer: CrmAnswer, knows = false): CrmAnswer {
  const { status } = answer;
  if (status >= 200 && status < 300) return answer;
  const proxys = isProxys(answer);
  const failure = failureOfStatus(status, proxys);
  throw new CrmError(
    knows && failure === "UNAUTHORIZED" ? "REFUSED" : failure,
    `The CRM answered ${status}${isHtml(answer) ? " with an HTML page" : ""}.`,
    { ...detailOf(answer), crmCode: proxys ? undefined : codeOfRefusal(answer) },
  );
}
