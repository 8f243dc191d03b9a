import { AsyncLocalStorage } from "node:async_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { type Attributes, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import type { Logger } from "pino";
import { messageOf } from "./errors";

/** The fields of a piece of work in each log line that it causes, however deep: ids and names only. */
interface WorkFields {
  operationId?: string;
  task?: string;
  jobId?: string;
}

/** How many statements and calls a piece of work has made so far. */
interface WorkCounts {
  sql: number;
  crm: number;
}

interface Work {
  fields: WorkFields;
  counts: WorkCounts;
  isOver: () => boolean;
  /** Whose it is, so that tenants share what there is; null where it is nobody's. */
  tenantId: number | null;
}

const storage = new AsyncLocalStorage<Work>();

/** Does a piece of work under these names. */
export const inWork = <T>(fields: WorkFields, work: () => T): T =>
  storage.run({ fields, counts: { sql: 0, crm: 0 }, isOver: () => false, tenantId: workTenant() }, work);

export const workFields = (): WorkFields => storage.getStore()?.fields ?? {};
export const workCounts = (): WorkCounts | null => storage.getStore()?.counts ?? null;

/** Says whose work it is, as soon as that is known. */
export function workFor(tenantId: number): void {
  const work = storage.getStore();
  if (work) work.tenantId = tenantId;
}
export const workTenant = (): number | null => storage.getStore()?.tenantId ?? null;

/** From then on the work begins nothing more in the database: nobody waits for it, and others may have gone on. */
export function limitWork(isOver: () => boolean): void {
  const work = storage.getStore();
  if (work) work.isOver = isOver;
}
export const isWorkOver = (): boolean => storage.getStore()?.isOver() ?? false;

/** Does a part of the work as an OpenTelemetry span; without a configured exporter that costs next to nothing. */
export function traced<T>(name: string, attributes: Attributes, work: () => Promise<T>): Promise<T> {
  return trace
    .getTracer("crm-connection")
    .startActiveSpan(name, { kind: SpanKind.CLIENT, attributes }, async (span) => {
      try {
        return await work();
      } catch (error) {
        span.setStatus({ code: SpanStatusCode.ERROR, message: messageOf(error) });
        throw error;
      } finally {
        span.end();
      }
    });
}

/** @param late called where the work has not ended in time; it is waited for all the same */
export function tellWhenLate<T>(work: Promise<T>, withinMs: number, late: () => void): Promise<T> {
  const timer = setTimeout(late, withinMs);
  return work.finally(() => clearTimeout(timer));
}

/** UTF-16 units that are worked through in one turn of the event loop: ten milliseconds at the worst. */
const SLICE = 20_000;
/** The size of a piece that has a turn of the event loop to itself. */
export const ALONE = SLICE;

interface Piece {
  size: number;
  work(): void;
}

/** By who asked, in the order of their turns: who was served goes to the end. */
const waiting = new Map<number | null, Piece[]>();

/**
 * A piece of long work in a later turn of the event loop. Of all that the process has to do there is one slice a turn,
 * small pieces together and a large one alone: requests, timers and the database are served in between. Who asks for
 * many pieces waits behind their own: tenants take turns, and what is asked for outside of any operation or job is one.
 * @param size what the work grows with
 * @param tenantId whose it is, where it is not the work's
 */
export function inSlice<T>(size: number, work: () => T, tenantId = workTenant()): Promise<T> {
  return new Promise((resolve, reject) => {
    if (waiting.size === 0) setImmediate(doSlice);
    const settle = () => {
      try {
        resolve(work());
      } catch (error) {
        reject(error);
      }
    };
    const theirs = waiting.get(tenantId) ?? [];
    theirs.push({ size, work: settle });
    waiting.set(tenantId, theirs);
  });
}

/** Small pieces that are one: sixteen and more are in a slice, and other tenants' come between. */
const TOGETHER = 25;

/** Goes on with each of many in slices. @param size of one */
export async function eachInSlices<T>(
  all: readonly T[],
  size: number,
  work: (one: T) => void,
  tenantId = workTenant(),
): Promise<void> {
  const pieces = [];
  for (let at = 0; at < all.length; at += TOGETHER) {
    const some = all.slice(at, at + TOGETHER);
    pieces.push(inSlice(size * some.length, () => some.forEach(work), tenantId));
  }
  await Promise.all(pieces);
}

function doSlice(): void {
  let size = 0;
  for (const [tenantId, theirs] of waiting) {
    const [next] = theirs;
    if (!next || (size > 0 && size + next.size > SLICE)) break;
    theirs.shift();
    waiting.delete(tenantId);
    if (theirs.length > 0) waiting.set(tenantId, theirs);
    size += Math.max(1, next.size);
    next.work();
  }
  if (waiting.size > 0) setImmediate(doSlice);
}

/**
 * Does the tasks one after the other, now and again and again. One that fails is logged and holds up none of the others.
 * @param tasks by a name for the log; several workers do them at once, which must be harmless
 * @param end no task begins after it, in the first round either, which is over before this returns
 * @returns ends them, when the task in hand has ended
 */
export async function startPeriodic(
  tasks: Readonly<Record<string, () => Promise<void>>>,
  everyMs: number,
  logger: Logger,
  levelOf: (error: unknown) => "error" | "warn",
  end?: AbortSignal,
): Promise<() => Promise<void>> {
  const stopping = new AbortController();
  const signal = AbortSignal.any([stopping.signal, ...(end ? [end] : [])]);
  const round = async () => {
    for (const [task, work] of Object.entries(tasks)) {
      if (signal.aborted) return;
      await work().catch((error: unknown) =>
        logger[levelOf(error)]({ err: error, task }, "a periodic task failed and is tried again"),
      );
    }
  };
  await round();
  const rounds = (async () => {
    for (;;) {
      await sleep(everyMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      await round();
    }
  })();
  return async () => {
    stopping.abort();
    await rounds;
  };
}

/** Does something for each of many things found. One that fails is logged by what it is, and holds up none behind it. */
export async function forEachLogged<T extends object>(
  found: readonly T[],
  work: (one: T) => Promise<unknown>,
  logger: Logger,
): Promise<void> {
  const failed = (one: T, error: unknown) => {
    const fields: object = { ...one, err: error };
    logger.error(fields, "one of many failed, and is left to the next time");
  };
  for (const one of found) await work(one).catch((error: unknown) => failed(one, error));
}

/**
 * Reads one page ahead, from now on, while the caller works on the one before, never more: two pages are in memory at most.
 * What was read ahead of work that fails is dropped.
 */
export function oneAhead<Page>(pages: AsyncGenerator<Page>): AsyncGenerator<Page> {
  const ask = () => {
    const asked = pages.next();
    // It may fail while the page before is being worked on: whoever awaits it hears of it when its turn comes.
    asked.catch(() => undefined);
    return asked;
  };
  const first = ask();
  return (async function* () {
    let next = first;
    for (let page = await next; !page.done; page = await next) {
      next = ask();
      yield page.value;
    }
  })();
}

/** Done by the first who asks, for all who ask. */
export function once<T>(read: () => Promise<T>): () => Promise<T> {
  let known: Promise<T> | null = null;
  return () => {
    known ??= read();
    return known;
  };
}
