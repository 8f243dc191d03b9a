import { createConnection } from "node:net";
import type { PoolClient } from "pg";
import type { QueryRunner } from "typeorm";
import { ServiceError } from "../platform/errors";

/** The operation has taken longer than it may; what it asked of the database was called off. */
export class DeadlineError extends ServiceError {
  readonly code = "DEADLINE_EXCEEDED";
}

/** The code of PostgreSQL's CancelRequest message. */
const CANCEL_REQUEST = 80_877_102;
const CANCEL_TIMEOUT_MS = 2_000;

/** A statement that runs at the deadline is cancelled in the database, and its session is free again before it is reused. */
export function callOffAt(signal: AbortSignal, runner: QueryRunner): void {
  const query = runner.query.bind(runner) as (...args: unknown[]) => Promise<unknown>;
  runner.query = async (...args: unknown[]): Promise<never> => {
    if (signal.aborted) throw deadline();
    let cancelling: Promise<void> | null = null;
    const callOff = () => {
      cancelling = cancel(runner);
    };
    signal.addEventListener("abort", callOff, { once: true });
    try {
      return (await query(...args)) as never;
    } catch (error) {
      if (signal.aborted) throw deadline({ cause: error });
      throw error;
    } finally {
      signal.removeEventListener("abort", callOff);
      await cancelling;
    }
  };
}

type Session = PoolClient & { host: string; port: number; processID: number; secretKey: number };

/**
 * PostgreSQL's CancelRequest, on a connection of its own: it needs no free session and no right over the one that it
 * names. Ends when the server has taken it.
 */
async function cancel(runner: QueryRunner): Promise<void> {
  const { host, port, processID, secretKey }: Session = await runner.connect();
  const packet = Buffer.alloc(16);
  for (const [index, value] of [16, CANCEL_REQUEST, processID, secretKey].entries())
    packet.writeInt32BE(value, index * 4);
  await new Promise<void>((resolve) => {
    const socket = host.startsWith("/") ? createConnection(`${host}/.s.PGSQL.${port}`) : createConnection(port, host);
    socket.setTimeout(CANCEL_TIMEOUT_MS, () => socket.destroy());
    // Where it cannot be sent, the statement goes on until it ends by itself.
    socket.on("error", () => undefined);
    socket.on("close", () => resolve());
    socket.on("connect", () => socket.end(packet));
    socket.resume();
  });
}

export const deadline = (options?: ErrorOptions) =>
  new DeadlineError("This took too long and was called off. Ask for less at once, or try again.", options);
