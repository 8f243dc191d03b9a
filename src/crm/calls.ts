import { systemClock } from "../platform/clock";
import type { Secret } from "../platform/secret";
import { CrmError, failureOfStatus } from "./errors";
import type { CrmAnswer, CrmHttp, CrmRequest } from "./http";
import { Pacer } from "./pacer";
import { jsonOf } from "./parsing/json";
import { codeOfRefusal, detailOf } from "./parsing/page";
import type { Address } from "./prices";
import { PURSE_OF_NOBODY, type Purse } from "./purse";

/** Where the access token of a call comes from. */
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
  purse?: Purse;
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
  readonly #parts: Required<Omit<CallParts, "mayBegin" | "stop">> & Pick<CallParts, "mayBegin" | "stop">;

  constructor(parts: CallParts) {
    this.#parts = { ...parts, pacer: parts.pacer ?? new Pacer(systemClock), purse: parts.purse ?? PURSE_OF_NOBODY };
  }

  /**
   * A refused token is renewed once and the call repeated once (decision 0031).
   * @throws CrmError
   */
  async make(call: Call): Promise<CrmAnswer> {
    const { tokens } = this.#parts;
    const { answer, token } = await this.#send(call, () => tokens.current());
    if (answer.status !== 401 || isHtml(answer)) return successful(answer);
    return successful((await this.#send(call, () => tokens.renewed(token))).answer);
  }

  /** Paid before anything else: what may not be asked is no reason to renew a token. */
  async #send(call: Call, tokenOf: () => Promise<Secret>): Promise<{ answer: CrmAnswer; token: Secret }> {
    const { http, pacer, purse } = this.#parts;
    const payment = await purse.spend(call.price);
    try {
      const token = await tokenOf();
      const request = this.#request(call, token);
      const answer = await pacer.paced(() => http.send(request));
      payment.answered(answer);
      return { answer, token };
    } catch (error) {
      // Whatever else throws did so before the first byte; of an answer that was lost, the CRM has taken its price.
      if (!(error instanceof CrmError) || error.detail.neverSent) payment.unsent();
      throw error;
    }
  }

  #request({ method, path, query = {}, body }: Call, token: Secret): CrmRequest {
    const { baseUrl, mayBegin, stop } = this.#parts;
    const url = new URL(baseUrl + path);
    for (const [name, value] of Object.entries(query)) if (value !== null) url.searchParams.set(name, String(value));
    const headers: Record<string, string> = {
      authorization: `Bearer ${token.reveal()}`,
      accept: "application/json",
    };
    if (body) headers["content-type"] = "application/json";
    return { method, url: url.href, headers, body: body && JSON.stringify(body), mayBegin, stop };
  }
}

/** A proxy's page: it says nothing of what the CRM did. */
function isHtml({ contentType }: CrmAnswer): boolean {
  return contentType.includes("html");
}

function successful(answer: CrmAnswer): CrmAnswer {
  const { status } = answer;
  if (status >= 200 && status < 300) return answer;
  // The CRM says in JSON what it forbids; the proxy before it blocks with a page, or a line of text.
  const proxys = isHtml(answer) || (status === 403 && jsonOf(answer.text) === undefined);
  throw new CrmError(
    failureOfStatus(status, proxys),
    `The CRM answered ${status}${isHtml(answer) ? " with an HTML page" : ""}.`,
    { ...detailOf(answer), crmCode: proxys ? undefined : codeOfRefusal(answer) },
  );
}
