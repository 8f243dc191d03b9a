import { ServiceError } from "../platform/errors";

/**
 * What a failed call to the CRM means for the caller, sorted once here:
 * - UNAUTHORIZED: the access token is refused (401)
 * - ACCOUNT_CLOSED: the company's CRM account is not open: trial over or unpaid (402)
 * - REFUSED: a right or a scope is missing, or the CRM does not accept the request (other 4xx, and 401 where it knows the token)
 * - NOT_FOUND: gone, or not visible to the authorizing user (404, 410)
 * - RATE_LIMITED: over the CRM's limit, or that of the proxy before it (429)
 * - BUDGET_LOW: not sent, so that the customer's other apps have tokens left
 * - UNAVAILABLE: no connection, time-out, 408, 409, 5xx, an HTML page or a block of a proxy: temporary
 * - UNREADABLE: a success that is not in the documented form, or too large, and a redirect, which is never followed
 */
export type CrmFailure =
  | "UNAUTHORIZED"
  | "ACCOUNT_CLOSED"
  | "REFUSED"
  | "NOT_FOUND"
  | "RATE_LIMITED"
  | "BUDGET_LOW"
  | "UNAVAILABLE"
  | "UNREADABLE";

/** An explanation for people in two parts: what happened, and what to do about it. */
export interface Explanation {
  what: string;
  todo: string;
}

const TRY_AGAIN = "Try again in a while.";

/** NO_TOKEN: the call itself was not made, because no access token could be had. */
const EXPLANATIONS: Record<CrmFailure | "NO_TOKEN", Explanation> = {
  UNAUTHORIZED: {
    what: "The CRM refuses a token that it has just renewed.",
    todo: "If it lasts, disconnect and connect again.",
  },
  ACCOUNT_CLOSED: {
    what: "The CRM company's account is not open: its trial is over or it is unpaid.",
    todo: "Settle that with the CRM.",
  },
  REFUSED: {
    what: "The CRM refused the request: the authorizing user or the app lacks a permission.",
    todo: "Ask the CRM's admin.",
  },
  NOT_FOUND: { what: "The CRM does not know a list that it documents.", todo: "Tell the operator." },
  RATE_LIMITED: { what: "The CRM's request limit is used up; others share it.", todo: "Try again later." },
  BUDGET_LOW: {
    what: "This service's share of the CRM's daily tokens is used up, or little is left for other apps.",
    todo: "Try again later.",
  },
  UNAVAILABLE: { what: "The CRM could not be reached or is down.", todo: TRY_AGAIN },
  UNREADABLE: { what: "The CRM sent an answer that cannot be read.", todo: TRY_AGAIN },
  NO_TOKEN: { what: "The access token could not be renewed for now.", todo: TRY_AGAIN },
};

/** The one explanation of a failure. @param better what a caller knows better: what it asked for, or what happens next */
export function explain(failure: keyof typeof EXPLANATIONS, better: Partial<Explanation> = {}): string {
  const { what, todo } = { ...EXPLANATIONS[failure], ...better };
  return `${what} ${todo}`;
}

export interface CrmErrorDetail {
  status?: number;
  correlationId?: string;
  /** The CRM's own word for a refusal, for example ERR_DEAL_DELETED. */
  crmCode?: string;
  /** True where no byte of the request was written, as no connection came about or free: the CRM certainly did not get it. */
  neverSent?: boolean;
  /** True where the answer is larger than is read; of a list, less may be asked for. */
  tooLarge?: boolean;
  /** True where no whole answer came in time; of a list, less may be asked for. */
  tooSlow?: boolean;
  /** True where a list goes on for ever: what was read of it leads nowhere. */
  endless?: boolean;
}

export class CrmError extends ServiceError {
  constructor(
    readonly code: CrmFailure,
    message: string,
    readonly detail: CrmErrorDetail = {},
    options?: ErrorOptions,
  ) {
    super(message, options);
  }

  /** By which the CRM's support finds the call. */
  get correlationId(): string | undefined {
    return this.detail.correlationId;
  }
}

/** Nothing was sent: the operator has stopped all calls to the CRM. */
export class CrmStoppedError extends CrmError {
  constructor(readonly reason: string) {
    super("UNAVAILABLE", `The operator of this service has stopped all calls to the CRM: ${reason}`, {
      neverSent: true,
    });
  }
}

/** Nothing was sent: this service leaves the rest of the company's day to others, or it knows that nothing is left. */
export class BudgetLowError extends CrmError {
  /** @param retryAt when it may go on, as far as that can be known now */
  constructor(readonly retryAt: Date | null) {
    super("BUDGET_LOW", "The share of the CRM's daily tokens that this service may spend is used up for now.", {
      neverSent: true,
    });
  }
}

/** The stop that kept a call, or the renewal of its token, from being sent; null where something else went wrong. */
export function stopBehind(error: unknown): CrmStoppedError | null {
  if (error instanceof CrmStoppedError) return error;
  return error instanceof ServiceError && error.cause instanceof CrmStoppedError ? error.cause : null;
}

/**
 * Failures that are one list's: it becomes a gap, and the lists behind it are read. All others would meet every call: no
 * connection at all, a refused authorization, the CRM's limit, our own restraint.
 */
export function isListFailure(error: unknown): error is CrmError {
  if (!(error instanceof CrmError) || stopBehind(error) || error.detail.neverSent) return false;
  return OF_ONE_LIST.has(error.code);
}

const OF_ONE_LIST: ReadonlySet<CrmFailure> = new Set(["REFUSED", "NOT_FOUND", "UNREADABLE", "UNAVAILABLE"]);

/** A right or a scope has to be given: that takes longer than a fault may last. */
export const isRefusal = ({ code }: CrmError): boolean => code === "REFUSED" || code === "NOT_FOUND";

const REFUSED_PROOF: ReadonlySet<CrmFailure> = new Set(["REFUSED", "RATE_LIMITED", "ACCOUNT_CLOSED"]);

/**
 * Why the CRM did not say whose a renewed token is: for want of a right, of tokens, or of an open account. null where
 * something else went wrong, which may end by itself.
 */
export function proofRefusedBehind(error: unknown): CrmFailure | null {
  const cause = error instanceof ServiceError ? error.cause : null;
  return cause instanceof CrmError && REFUSED_PROOF.has(cause.code) ? cause.code : null;
}

/** Sorts an answer that is not a success. What a proxy says under a status is nothing that the CRM says. */
export function failureOfStatus(status: number, proxys: boolean): CrmFailure {
  if (status === 429) return "RATE_LIMITED";
  if (status === 408 || status === 409 || status >= 500 || proxys) return "UNAVAILABLE";
  if (status < 400) return "UNREADABLE";
  if (status === 401) return "UNAUTHORIZED";
  if (status === 402) return "ACCOUNT_CLOSED";
  if (status === 404 || status === 410) return "NOT_FOUND";
  return "REFUSED";
}
