import { randomUUID } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import type { FastifyReply, FastifyRequest } from "fastify";
import { type Answer, json, Refusal } from "../api/answer";
import { type Faults, falseAnswer } from "./faults";
import { type LogEntry, type RecordedRequests, withoutSecrets } from "./request-log";

/** What the answering part tells about a request: it alone knows the token and the form. */
export interface Facts {
  userId: number | null;
  grantType?: string;
}

export type Answering = (request: FastifyRequest, facts: Facts) => Answer;

/** One request from its arrival in the log to its answer, or to the loss of it that a fault asks for. */
export class Exchange {
  constructor(
    private readonly now: () => Date,
    private readonly log: RecordedRequests,
    private readonly faults: Faults,
  ) {}

  handler(answering: Answering): (request: FastifyRequest, reply: FastifyReply) => Promise<void> {
    return async (request, reply) => {
      const started = performance.now();
      const entry: LogEntry = {
        at: this.now(),
        method: request.method,
        path: pathOf(request),
        query: withoutSecrets(request.query as Record<string, unknown>),
        status: 0,
        userId: null,
        durationMs: 0,
      };
      this.log.add(entry);
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
    const active = this.faults.take(entry.method, entry.path);
    const kind = active && "kind" in active.fault ? active.fault.kind : null;
    if (active && kind === "hang") await active.removed;
    const socket = request.raw.socket;
    if (kind === "reset") socket.destroy();
    if (socket.destroyed) return 0;
    const answer = (active && falseAnswer(active.fault)) ?? answered(answering, request, entry);
    if (active && "kind" in active.fault && active.fault.kind === "delay") await wait(active.fault.ms);
    if (kind === "lostAfter") socket.destroy();
    if (socket.destroyed) return 0;
    return this.send(reply, answer, kind === "cut");
  }

  private send(reply: FastifyReply, answer: Answer, isCut: boolean): number {
    const body = Buffer.from(answer.body, "utf8");
    reply.raw.writeHead(answer.status, {
      date: this.now().toUTCString(),
      "content-type": answer.contentType,
      "content-length": body.length,
      "x-correlation-id": randomUUID(),
      "set-cookie": ["pipedrive-cdl=simulated; Path=/; HttpOnly", "__cf_bm=simulated; Path=/; HttpOnly; Secure"],
      ...answer.headers,
    });
    if (!isCut) {
      reply.raw.end(body);
      return answer.status;
    }
    reply.raw.write(body.subarray(0, Math.floor(body.length / 2)), () => reply.raw.destroy());
    return 0;
  }
}

function answered(answering: Answering, request: FastifyRequest, facts: Facts): Answer {
  try {
    return answering(request, facts);
  } catch (error) {
    if (error instanceof Refusal) return error.answer;
    return json(500, { success: false, error: error instanceof Error ? error.message : String(error) });
  }
}

function pathOf(request: FastifyRequest): string {
  const mark = request.url.indexOf("?");
  return mark < 0 ? request.url : request.url.slice(0, mark);
}
