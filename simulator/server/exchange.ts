import { randomUUID } from "node:crypto";
import type { OutgoingHttpHeader, OutgoingHttpHeaders } from "node:http";
import { setTimeout as wait } from "node:timers/promises";
import type { FastifyReply, FastifyRequest } from "fastify";
import { type Answer, json, Refusal } from "../api/answer";
import type { Twist } from "../api/operation";
import type { Budget } from "./budget";
import { type Faults, falseAnswer, isPaid, type KindOfFault, twistOf, withHeaders } from "./faults";
import type { LateEffects } from "./late-effects";
import { entryOf, type LogEntry, type RecordedRequests } from "./request-log";

/** What the answering part tells about a request: it alone knows the token and the form. */
export interface Facts {
  userId: number | null;
  companyId?: number;
  grantType?: string;
  tokens?: number;
  balance?: number;
}

/** What is left to do once it is settled who asks. */
export type Work = (twist?: Twist) => Answer;
export type Answering = (request: FastifyRequest, facts: Facts) => Work;

interface Parts {
  now: () => Date;
  log: RecordedRequests;
  faults: Faults;
  late: LateEffects;
  budget: Budget;
}

/** One request from its arrival in the log to its answer, or to the loss of it that a fault asks for. */
export class Exchange {
  constructor(private readonly parts: Parts) {}

  /** @param operation what the budget's ledger counts the request as; absent: it does not */
  handler(answering: Answering, operation?: string): (request: FastifyRequest, reply: FastifyReply) => Promise<void> {
    return async (request, reply) => {
      const started = performance.now();
      if (operation !== undefined) this.parts.budget.asked(operation);
      this.parts.late.doDue();
      const entry = entryOf(request, this.parts.now());
      this.parts.log.add(entry);
      // From here on the socket is ours: a fault must be able to break it without the framework answering instead.
      reply.hijack();
      const status = await this.deliver(answering, request, reply, entry);
      entry.durationMs = performance.now() - started;
      entry.status = status;
    };
  }

  private async deliver(
    answering: Answering,
    request: FastifyRequest,
    reply: FastifyReply,
    entry: LogEntry,
  ): Promise<number> {
    const active = this.parts.faults.take(entry);
    const fault = active && "kind" in active.fault ? active.fault : null;
    if (fault?.kind === "hang") await active?.removed;
    const socket = request.raw.socket;
    if (fault?.kind === "reset") socket.destroy();
    if (socket.destroyed) return 0;
    const instead = active && falseAnswer(active.fault);
    if (instead && isPaid(instead)) settled(answering, request, entry);
    const answer = instead ?? this.answered(answering, request, entry, fault);
    if (fault?.kind === "delay") await wait(fault.ms);
    if (fault?.kind === "hangAfter") await active?.removed;
    if (answer === null || fault?.kind === "lostAfter") socket.destroy();
    if (answer === null || socket.destroyed) return 0;
    return this.send(reply, withHeaders(answer, fault), fault?.kind === "cut");
  }

  /** The true answer with its effect, or what a fault shows of it; null where nothing is shown. */
  private answered(
    answering: Answering,
    request: FastifyRequest,
    facts: Facts,
    fault: KindOfFault | null,
  ): Answer | null {
    try {
      const work = answering(request, facts);
      if (fault?.kind === "meanwhile") fault.act();
      if (fault?.kind !== "late") {
        const answer = answerOf(work, fault);
        return fault?.kind === "failAfter" ? failed(fault.status) : answer;
      }
      this.parts.late.hold(() => answerOf(work, null), fault.ms);
      return fault.status === undefined ? null : failed(fault.status);
    } catch (error) {
      return refusalOf(error);
    }
  }

  private send(reply: FastifyReply, answer: Answer, isCut: boolean): number {
    const body = Buffer.from(answer.body, "utf8");
    const headers = {
      date: this.parts.now().toUTCString(),
      "content-type": answer.contentType,
      "content-length": body.length,
      "x-correlation-id": randomUUID(),
      "set-cookie": ["pipedrive-cdl=simulated; Path=/; HttpOnly", "__cf_bm=simulated; Path=/; HttpOnly; Secure"],
      ...answer.headers,
    };
    // The date is ours to give or to leave out.
    reply.raw.sendDate = false;
    reply.raw.writeHead(answer.status, withoutNulls(headers));
    if (!isCut) {
      reply.raw.end(body);
      return answer.status;
    }
    reply.raw.write(body.subarray(0, Math.floor(body.length / 2)), () => reply.raw.destroy());
    return 0;
  }
}

function withoutNulls(headers: Readonly<Record<string, OutgoingHttpHeader | null>>): OutgoingHttpHeaders {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => (value === null ? [] : [[name, value]])),
  );
}

function answerOf(work: Work, fault: KindOfFault | null): Answer {
  try {
    return work(twistOf(fault));
  } catch (error) {
    return refusalOf(error);
  }
}

/** Who asks is settled, and it is paid for; the work is not done. */
function settled(answering: Answering, request: FastifyRequest, facts: Facts): void {
  try {
    answering(request, facts);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
  }
}

function refusalOf(error: unknown): Answer {
  if (error instanceof Refusal) return error.answer;
  return json(500, { success: false, error: error instanceof Error ? error.message : String(error) });
}

function failed(status: number): Answer {
  return json(status, { success: false, error: "Simulated fault" });
}
