import type { ApolloServerPlugin, GraphQLRequestListener } from "@apollo/server";
import { GraphQLError, OperationTypeNode } from "graphql";
import type { OperationContext } from "../resolvers/context";
import { refusalOfSize, sizeOf } from "./operation-size";

/** Operations of one tenant at work in this process; the rest wait, so that one tenant cannot take it all. */
const AT_WORK = 32;
/** Operations of one tenant that wait for that. A page asks for far fewer at once. */
const WAITING = 200;

/** A query reads, and a page waits for it. A mutation may wait for a few calls to the CRM, 30 seconds for each. */
const DEADLINE_MS = { query: 15_000, mutation: 120_000, subscription: 15_000 };

/**
 * Refuses operations that are too large before they are executed, lets no tenant crowd out the others, and calls off
 * what an operation still asks of the database at its deadline.
 */
export function limitOperations(): ApolloServerPlugin<OperationContext> {
  const turns = new TenantTurns(AT_WORK, WAITING);
  return {
    async requestDidStart(): Promise<GraphQLRequestListener<OperationContext>> {
      let release: (() => void) | null = null;
      let deadline: NodeJS.Timeout | undefined;
      return {
        async didResolveOperation({ schema, document, operation, request, contextValue }) {
          const size = operation && sizeOf(schema, document, operation, request.variables ?? {});
          const refusal = size && refusalOfSize(size);
          if (refusal) throw refusal;
          release = await turns.take(contextValue.actor.tenantId);
          const limit = DEADLINE_MS[operation?.operation ?? OperationTypeNode.QUERY];
          deadline = setTimeout(() => contextValue.deadline.abort(), limit);
        },
        async willSendResponse() {
          clearTimeout(deadline);
          release?.();
          release = null;
        },
      };
    },
  };
}

interface Queue {
  atWork: number;
  waiting: (() => void)[];
}

/** Turns of each tenant, first come first served. */
export class TenantTurns {
  readonly #queues = new Map<number, Queue>();

  constructor(
    private readonly atWork: number,
    private readonly waiting: number,
  ) {}

  /** @returns gives the turn back. @throws GraphQLError TOO_MANY_OPERATIONS where too many wait already */
  async take(tenantId: number): Promise<() => void> {
    const queue = this.#queues.get(tenantId) ?? { atWork: 0, waiting: [] };
    this.#queues.set(tenantId, queue);
    if (queue.atWork < this.atWork) {
      queue.atWork += 1;
    } else {
      if (queue.waiting.length >= this.waiting) throw tooMany();
      await new Promise<void>((resolve) => queue.waiting.push(resolve));
    }
    return () => this.#giveBack(tenantId, queue);
  }

  /** The turn goes to the one who has waited longest. */
  #giveBack(tenantId: number, queue: Queue): void {
    const next = queue.waiting.shift();
    if (next) next();
    else queue.atWork -= 1;
    if (queue.atWork === 0) this.#queues.delete(tenantId);
  }
}

function tooMany(): GraphQLError {
  return new GraphQLError(
    "Too many operations of your organization are under way. Wait for some to end, then send again.",
    {
      extensions: { code: "TOO_MANY_OPERATIONS", http: { status: 429 } },
    },
  );
}
