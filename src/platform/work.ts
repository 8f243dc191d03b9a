import { AsyncLocalStorage } from "node:async_hooks";
import { type Attributes, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { messageOf } from "./errors";

/** The fields of a piece of work in each log line that it causes, however deep: ids and names only. */
export interface WorkFields {
  operationId?: string;
  task?: string;
  jobId?: string;
}

/** What a piece of work has asked for so far. */
export interface WorkCounts {
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
