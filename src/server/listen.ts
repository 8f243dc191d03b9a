import type { FastifyInstance } from "fastify";
import { messageOf, ServiceError } from "../platform/errors";
import { LISTEN_BACKLOG } from "./connection-limits";

export class ServerStartError extends ServiceError {
  readonly code = "SERVER_START_FAILED";
}

/** @param variable the variable of the configuration that names the port. @throws ServerStartError with what to do */
export async function listen(fastify: FastifyInstance, host: string, port: number, variable: string): Promise<string> {
  try {
    return await fastify.listen({ host, port, backlog: LISTEN_BACKLOG });
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "EADDRINUSE") {
      const advice = `Stop what uses it, or set ${variable} to another.`;
      throw new ServerStartError(`Port ${port} on ${host} is in use. ${advice}`, { cause });
    }
    throw new ServerStartError(`The server cannot listen on ${host}:${port}: ${messageOf(cause)}`, { cause });
  }
}
