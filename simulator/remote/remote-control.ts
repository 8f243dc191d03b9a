import fastify, { type FastifyError, type FastifyInstance } from "fastify";
import type { Control } from "../control/control";
import type { Company } from "../model/company";
import type { RequestLog } from "../server/request-log";
import { commands } from "./commands";
import { BadCommand, Input } from "./input";

export interface Controlled {
  readonly company: Company;
  readonly control: Control;
  readonly log: RequestLog;
}

/** The control over HTTP, for a simulator that runs as a program of its own. Loopback only: it knows no password. */
export async function startRemoteControl(simulator: Controlled, port: number): Promise<FastifyInstance> {
  const server = fastify({ forceCloseConnections: true });
  server.removeContentTypeParser("text/plain");
  server.setErrorHandler((error: FastifyError, _request, reply) => {
    const isBad = error instanceof BadCommand || error instanceof RangeError || error instanceof SyntaxError;
    return reply.status(isBad ? 400 : (error.statusCode ?? 500)).send({ error: error.message });
  });
  addLooks(server, simulator);
  for (const [name, command] of Object.entries(commands)) {
    server.post(`/${name}`, async (request) => {
      const input = new Input((request.body ?? {}) as Readonly<Record<string, unknown>>, command.takes);
      return { done: name, ...((await command.run(simulator.control, input)) as object | undefined) };
    });
  }
  server.setNotFoundHandler((_request, reply) =>
    reply.status(404).send({ error: "no such command", ...listOfCommands() }),
  );
  await server.listen({ host: "127.0.0.1", port });
  return server;
}

function addLooks(server: FastifyInstance, { company, control, log }: Controlled): void {
  server.get("/", listOfCommands);
  server.get("/company", () => ({
    users: [...company.users.values()].map(({ id, name, email, is_admin, active_flag }) => ({
      ...{ id, name, email, is_admin, active_flag },
    })),
    stories: company.stories,
  }));
  server.get("/ledger", () => ({ balance: control.balance(), ...control.ledger() }));
  server.get("/log", () => log.all());
  server.delete("/log", () => {
    log.clear();
    return { done: "clear the log" };
  });
  server.get<{ Params: { entity: string; id: string } }>("/notes/:entity/:id", ({ params }) => {
    const { entity, id } = recordFrom(params);
    return control.notesOf(entity, id);
  });
  server.get<{ Params: { entity: string; id: string } }>("/fields/:entity/:id", ({ params }) => {
    const { entity, id } = recordFrom(params);
    return control.fieldsOf(entity, id);
  });
}

function recordFrom({ entity, id }: { entity: string; id: string }) {
  const input = new Input({ entity, id: Number(id) }, ["entity", "id"]);
  return { entity: input.oneOf("entity", ["deal", "person", "organization"]), id: input.id("id") };
}

function listOfCommands(): object {
  const told = Object.entries(commands).map(([name, { takes, does }]) => [
    `POST /${name}`,
    `{${takes.join(", ")}}: ${does}`,
  ]);
  return {
    ...Object.fromEntries(told),
    "GET /company": "the users, and the ids of the stories",
    "GET /ledger": "the company's balance, and what was asked and paid by operation since the start",
    "GET /log": "every request, the oldest first; DELETE /log forgets them",
    "GET /notes/{deal|person|organization}/{id}": "the notes that show on a record",
    "GET /fields/{deal|person|organization}/{id}": "a record's custom fields",
  };
}
