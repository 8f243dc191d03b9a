import { setTimeout as sleep } from "node:timers/promises";
import { BREAK, type GraphQLError, Kind, type OperationDefinitionNode, OperationTypeNode, visit } from "graphql";
import { deadline as calledOff } from "../database/errors";
import { MINUTE_MS, systemClock, timeLimit } from "../platform/clock";
import { limitWork, workFor } from "../platform/work";
import type { OperationContext } from "../resolvers/context";
import type { Operation } from "./documents";
import { errorOf } from "./errors";
import { toldOf } from "./operation-size";

/** Operations of one tenant at work in this process; the rest wait, so that one tenant cannot take it all. */
const AT_WORK = 32;
/**
 * Heavy ones of one tenant at work: those whose answer may have very many objects, or whose input has very many items.
 * Between two waits each holds the event loop for a while, and the others' operations stand behind it.
 */
const HEAVY_AT_WORK = 1;
const HEAVY_COST = 10_000;
/** A request with it is told in `extensions.cost` how large its operation is. */
export const COST_HEADER = "x-operation-cost";
/** A meeting of a whole department; a town hall has hundreds. */
const HEAVY_ITEMS = 50;
/** No input type is deeper; what a client nests beyond that is refused later. */
const INPUT_DEPTH = 8;
/** After a heavy one the tenant's next waits for twice as long as it took, so that two thirds of the time are others'. */
const REST = { times: 2, mostMs: 2_000 };
/** Operations of one tenant that wait for that. A page asks for far fewer at once. */
const WAITING = 200;

/** A query reads, and a page waits for it. A mutation may wait for a few calls to the CRM, 30 seconds for each. */
const DEADLINE_MS = { query: 15_000, mutation: 120_000, subscription: 15_000 };

/** From its deadline on, for what is called off to end by itself; one that never does would keep its tenant's turn for ever. */
const AWAITED_MS = MINUTE_MS;

/** Lets no tenant crowd out the others, and calls off what an operation still asks of the database at its deadline. */
export class OperationLimits {
  readonly #turns = new TenantTurns(AT_WORK, WAITING);
  readonly #others = new Others();
  readonly #heavyTurns = new TenantTurns(HEAVY_AT_WORK, WAITING, (tenantId, beganAt) => {
    const took = performance.now() - beganAt;
    return this.#others.since(tenantId, beganAt) ? sleep(Math.min(REST.times * took, REST.mostMs)) : null;
  });

  /** Executes an operation in its tenant's turn. @throws GraphQLError TOO_MANY_OPERATIONS */
  async inTurn<T>(
    { operation, variables, size }: Operation,
    { actor, deadline }: OperationContext,
    execute: () => Promise<T>,
  ): Promise<T> {
    const { tenantId } = actor;
    workFor(tenantId);
    this.#others.note(tenantId, performance.now());
    const isHeavy = size.cost > HEAVY_COST || hasManyItems(operation, variables);
    const release = await (isHeavy ? this.#heavyTurns : this.#turns).take(tenantId);
    const limit = DEADLINE_MS[operation.operation];
    limitWork(timeLimit(systemClock, limit));
    const end = setTimeout(() => deadline.abort(), limit);
    let last: NodeJS.Timeout | undefined;
    const over = new Promise<never>((_, reject) => {
      last = setTimeout(() => reject(calledOff()), limit + AWAITED_MS);
    });
    try {
      return await Promise.race([execute(), over]);
    } finally {
      clearTimeout(end);
      clearTimeout(last);
      release();
    }
  }
}

/** How large it is, for a client that asks. */
export const costTold = ({ size }: Operation) => ({ ...toldOf(size), heavyAbove: HEAVY_COST });

/** Whether any list in the input has very many items, in the variables or in the document. */
function hasManyItems(operation: OperationDefinitionNode, variables: unknown): boolean {
  let isLong = hasLongList(variables, INPUT_DEPTH);
  if (operation.operation !== OperationTypeNode.MUTATION || isLong) return isLong;
  visit(operation, {
    [Kind.LIST]({ values }) {
      isLong ||= values.length > HEAVY_ITEMS;
      return isLong ? BREAK : undefined;
    },
  });
  return isLong;
}

function hasLongList(input: unknown, depth: number): boolean {
  if (typeof input !== "object" || input === null || depth === 0) return false;
  if (Array.isArray(input) && input.length > HEAVY_ITEMS) return true;
  return Object.values(input).some((value) => hasLongList(value, depth - 1));
}

/** Whether anybody else has asked for something lately; two instants tell that of all tenants. */
class Others {
  #last: { tenantId: number | null; at: number } = { tenantId: null, at: Number.NEGATIVE_INFINITY };
  #before = this.#last;

  note(tenantId: number, at: number): void {
    if (tenantId !== this.#last.tenantId) this.#before = this.#last;
    this.#last = { tenantId, at };
  }

  since(tenantId: number, instant: number): boolean {
    const { at } = tenantId === this.#last.tenantId ? this.#before : this.#last;
    return at >= instant;
  }
}

interface Queue {
  atWork: number;
  waiting: (() => void)[];
}

/**
 * Turns of each tenant, first come first served.
 * @param rest what the tenant's next turn waits for after one that began at this instant; null: nothing
 */
export class TenantTurns {
  readonly #queues = new Map<number, Queue>();

  constructor(
    private readonly atWork: number,
    private readonly waiting: number,
    private readonly rest: (tenantId: number, beganAt: number) => Promise<void> | null = () => null,
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
    const beganAt = performance.now();
    return () => {
      const rest = this.rest(tenantId, beganAt);
      if (rest) void rest.then(() => this.#giveBack(tenantId, queue));
      else this.#giveBack(tenantId, queue);
    };
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
  const what = "Too many operations of your organization are under way. Wait for some to end, then send again.";
  return errorOf("TOO_MANY_OPERATIONS", what);
}
