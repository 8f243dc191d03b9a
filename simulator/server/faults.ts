import { type Answer, html, overLimit, refusedV1 } from "../api/answer";
import type { Twist } from "../api/operation";
import { Random } from "../seed/random";
import { type LogEntry, matchesPath } from "./request-log";

export type Fault =
  | { status: number; body?: unknown; headers?: Record<string, string>; contentType?: string }
  /** The socket is destroyed before an answer. */
  | { kind: "reset" }
  /** Headers and half of the true body, then the socket is destroyed. */
  | { kind: "cut" }
  /** 200, application/json, unparsable. */
  | { kind: "garbage" }
  /** A page where JSON is due: 403 unless said otherwise, as the CRM's front door answers. */
  | { kind: "html"; status?: number }
  /** A refusal of the CRM's own, in JSON: 403 for a right that is missing. */
  | { kind: "forbidden" }
  | { kind: "throttle" }
  /** The true answer with other headers, a `date` of another year for instance; null leaves one out. A function is asked for each answer. */
  | { kind: "headers"; headers: OtherHeaders | (() => OtherHeaders) }
  /** The true answer, later. The effect happens at once. */
  | { kind: "delay"; ms: number }
  /** No answer until the rule is removed or the simulator stops. The effect has not happened. */
  | { kind: "hang" }
  /** 200 with the body `null`. */
  | { kind: "null" }
  /** The effect happens, then the socket is destroyed. */
  | { kind: "lostAfter" }
  /** The effect happens, then no answer until the rule is removed or the simulator stops. */
  | { kind: "hangAfter" }
  /** The effect happens, then the answer says that it failed. */
  | { kind: "failAfter"; status: number }
  /**
   * The answer is lost at once, or is the status; the effect comes later: when `ms` have passed by the simulator's clock, or
   * with `releaseLateEffects`. Who asks is settled on arrival, what the record is like when the effect comes.
   */
  | { kind: "late"; ms?: number; status?: number }
  /** The function runs after the request has arrived and before its effect: a record deleted in between, for instance. */
  | { kind: "meanwhile"; act: () => void }
  | Twist;

type OtherHeaders = Readonly<Record<string, string | null>>;
export type KindOfFault = Extract<Fault, { kind: string }>;

export interface FaultRule {
  /** A path's beginning, or an expression. */
  match: string | RegExp;
  method?: string;
  /** Which of these requests, by their parameters: only those with a cursor, for instance. */
  where?: (query: Readonly<Record<string, string>>) => boolean;
  /** How many requests it hits; default: all. */
  times?: number;
  /** How many matching requests pass first. */
  after?: number;
  /** How likely it hits a matching request, drawn from the simulator's seed; default: 1. */
  chance?: number;
  with: Fault;
}

export interface ActiveFault {
  fault: Fault;
  /** Resolves when the rule is removed. */
  removed: Promise<void>;
}

interface RuleState extends FaultRule {
  passed: number;
  hit: number;
  removed: Promise<void>;
  release: () => void;
}

export class Faults {
  private rules: RuleState[] = [];
  private readonly random: Random;

  constructor(seed: number) {
    this.random = new Random(`faults/${seed}`);
  }

  add(rule: FaultRule): () => void {
    let release = () => {};
    const removed = new Promise<void>((resolve) => {
      release = resolve;
    });
    const state: RuleState = { ...rule, passed: 0, hit: 0, removed, release };
    this.rules.push(state);
    return () => {
      this.rules = this.rules.filter((other) => other !== state);
      release();
    };
  }

  clear(): void {
    for (const rule of this.rules) rule.release();
    this.rules = [];
  }

  /** The first rule that hits this request; counts it. */
  take({ method, path, query }: Pick<LogEntry, "method" | "path" | "query">): ActiveFault | null {
    for (const rule of this.rules) {
      if (rule.method !== undefined && rule.method !== method) continue;
      if (!matchesPath(rule.match, path) || rule.where?.(query) === false) continue;
      if (rule.passed < (rule.after ?? 0)) {
        rule.passed++;
      } else if (rule.chance !== undefined && !this.random.chance(rule.chance)) {
        rule.passed++;
      } else if (rule.hit < (rule.times ?? Number.POSITIVE_INFINITY)) {
        rule.hit++;
        return { fault: rule.with, removed: rule.removed };
      }
    }
    return null;
  }
}

/** The answer a fault gives in place of the true one; null where the true one is needed. */
export function falseAnswer(fault: Fault): Answer | null {
  if (!("kind" in fault)) return plainFault(fault);
  switch (fault.kind) {
    case "garbage":
      return { status: 200, body: '{"success":true,"data":[{"id":1,', contentType: "application/json" };
    case "html":
      return html(fault.status ?? 403, "<!doctype html><html><body><h1>Just a moment...</h1></body></html>");
    case "forbidden":
      return refusedV1(403, "You do not have permissions to do this.").answer;
    case "throttle":
      return { ...overLimit(), headers: { "x-ratelimit-remaining": "0", "x-ratelimit-reset": "2" } };
    case "null":
      return { status: 200, body: "null", contentType: "application/json" };
    default:
      return null;
  }
}

const REFUSED = new Set([400, 403, 404]);

/** Whether an answer in place of the true one costs what that would have cost. A page comes from the CRM's front door, before any price. */
export function isPaid({ status, contentType }: Answer): boolean {
  return !contentType.startsWith("text/html") && (REFUSED.has(status) || status >= 500);
}

function plainFault(fault: Extract<Fault, { body?: unknown }>): Answer {
  const { body, contentType = "application/json; charset=utf-8" } = fault;
  const text = typeof body === "string" ? body : JSON.stringify(body ?? { success: false, error: "Simulated fault" });
  return { status: fault.status, body: text, contentType, headers: fault.headers };
}

/** The part of a fault that the answering operation itself has to play. */
export function twistOf(fault: KindOfFault | null): Twist | undefined {
  switch (fault?.kind) {
    case "ignored":
    case "storedAs":
    case "again":
    case "empty":
    case "circle":
    case "part":
      return fault;
    default:
      return undefined;
  }
}

export function withHeaders(answer: Answer, fault: KindOfFault | null): Answer {
  if (fault?.kind !== "headers") return answer;
  const { headers } = fault;
  return { ...answer, headers: { ...answer.headers, ...(typeof headers === "function" ? headers() : headers) } };
}
