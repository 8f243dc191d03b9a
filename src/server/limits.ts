import type { EventEmitter } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { GraphQLError } from "graphql";
import { deadline as calledOff } from "../database/errors";
import { MINUTE_MS, systemClock, timeLimit } from "../platform/clock";
import { limitWork, workFor } from "../platform/work";
import type { OperationContext } from "../resolvers/context";
import { hasManyItems, type Operation } from "./documents";
import { type ErrorCode, errorOf } from "./errors";
import type { OperationSize } from "./operation-size";

/** Tokens of a document; the longest query of a frontend has some hundreds. The parser stops there. */
export const MAX_TOKENS = 2_000;
/** Tokens of a subscription's document, which is kept parsed while it is open; the page's have some tens. */
export const MAX_EVENT_TOKENS = 500;
/** Nested fields; the briefing with everything in it needs seven. */
const MAX_DEPTH = 12;
/** Aliases in a document: each may ask for the same thing again. */
const MAX_ALIASES = 30;
/** Objects that an answer may hold at most, by the sizes that are asked for and the bounds of lists without one. */
export const MAX_COST = 50_000;
/** The same for an event of a subscription, which comes often and to many: no field that is read from the CRM either. */
export const MAX_EVENT_COST = 1_000;

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
/** After a heavy one the tenant's next waits for twice as long as it took, so that two thirds of the time are others'. */
const REST = { times: 2, mostMs: 2_000 };
/** Operations that wait for that: of one user, whose page asks for far fewer at once, and of all of a tenant. */
const WAITING = { ofUser: 200, ofTenant: 1_000 };
/** Who is refused for that asks again when a heavy one has rested. */
export const RETRY_AFTER_S = 2;

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

  /** Executes an operation in its tenant's turn. @param client says "close" when nobody waits any more. @throws GraphQLError TOO_MANY_OPERATIONS */
  async inTurn<T>(
    { operation, variables, size }: Operation,
    { actor, deadline }: OperationContext,
    execute: () => Promise<T>,
    client?: EventEmitter,
  ): Promise<T> {
    const { tenantId, userId } = actor;
    workFor(tenantId);
    this.#others.note(tenantId, performance.now());
    const isHeavy = size.cost > HEAVY_COST || hasManyItems(operation, variables);
    const limit = DEADLINE_MS[operation.operation];
    const release = await (isHeavy ? this.#heavyTurns : this.#turns).take(tenantId, userId, limit, client);
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

/** @returns why the operation is not executed; null where it may be */
export function refusalOfSize({ depth, aliases, cost, dearest }: OperationSize, maxCost: number): GraphQLError | null {
  if (depth > MAX_DEPTH) return tooLarge("DOCUMENT_TOO_DEEP", `The document is ${depth} fields deep`, MAX_DEPTH);
  if (aliases > MAX_ALIASES) return tooLarge("TOO_MANY_ALIASES", `The document has ${aliases} aliases`, MAX_ALIASES);
  if (cost <= maxCost) return null;
  const most = dearest === null ? "" : `Most of it is ${dearest}. `;
  return tooLarge("OPERATION_TOO_COSTLY", `The operation may answer with ${cost} objects`, maxCost, most);
}

const ADVICE = "Ask for less at once: shorter lists (first), fewer nested lists, or several operations.";

function tooLarge(code: ErrorCode, what: string, most: number, where = ""): GraphQLError {
  return errorOf(code, `${what}; at most ${most} are allowed. ${where}${ADVICE}`);
}

/** The same numbers for a client that asks for them, so that it knows before it is refused. */
export const costTold = ({ size: { cost, dearest, depth, aliases } }: Operation) => ({
  objects: Number.isFinite(cost) ? cost : null,
  mostObjects: MAX_COST,
  dearest,
  depth,
  mostDepth: MAX_DEPTH,
  aliases,
  mostAliases: MAX_ALIASES,
  heavyAbove: HEAVY_COST,
});

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
  /** By user; whose turn was last is last. */
  waiting: Map<string, (() => void)[]>;
}

/**
 * Turns of each tenant: its users take them in turn, so that who asks for hundreds at once waits behind whoever asks for one,
 * and each user is served in the order of asking.
 * @param rest what the tenant's next turn waits for after one that began at this instant; null: nothing
 */
export class TenantTurns {
  readonly #queues = new Map<number, Queue>();

  constructor(
    private readonly atWork: number,
    private readonly waiting: typeof WAITING,
    private readonly rest: (tenantId: number, beganAt: number) => Promise<void> | null = () => null,
  ) {}

  /**
   * @returns gives the turn back
   * @throws GraphQLError TOO_MANY_OPERATIONS where too many wait already, or it has waited for so long, or its client has gone
   */
  async take(tenantId: number, userId: string, withinMs?: number, client?: EventEmitter): Promise<() => void> {
    const queue = this.#queues.get(tenantId) ?? { atWork: 0, waiting: new Map() };
    this.#queues.set(tenantId, queue);
    if (queue.atWork < this.atWork) {
      queue.atWork += 1;
    } else {
      const own = queue.waiting.get(userId) ?? [];
      const all = [...queue.waiting.values()].reduce((sum, { length }) => sum + length, 0);
      if (own.length >= this.waiting.ofUser || all >= this.waiting.ofTenant) throw tooMany();
      await this.#wait(queue, userId, withinMs, client);
    }
    const beganAt = performance.now();
    return () => {
      const rest = this.rest(tenantId, beganAt);
      if (rest) void rest.then(() => this.#giveBack(tenantId, queue));
      else this.#giveBack(tenantId, queue);
    };
  }

  #wait({ waiting }: Queue, userId: string, withinMs?: number, client?: EventEmitter): Promise<void> {
    return new Promise((resolve, reject) => {
      const over = withinMs === undefined ? undefined : setTimeout(() => leave(), withinMs);
      const settle = (end: () => void) => {
        clearTimeout(over);
        client?.off("close", leave);
        end();
      };
      const begin = () => settle(resolve);
      const leave = () => {
        const others = waiting.get(userId)?.filter((other) => other !== begin) ?? [];
        if (others.length > 0) waiting.set(userId, others);
        else waiting.delete(userId);
        settle(() => reject(tooMany()));
      };
      waiting.set(userId, [...(waiting.get(userId) ?? []), begin]);
      client?.once("close", leave);
    });
  }

  /** The turn goes to the user who has gone longest without one. */
  #giveBack(tenantId: number, queue: Queue): void {
    const [next] = queue.waiting;
    if (next) {
      const [userId, [first, ...more]] = next;
      queue.waiting.delete(userId);
      if (more.length > 0) queue.waiting.set(userId, more);
      first?.();
    } else {
      queue.atWork -= 1;
    }
    if (queue.atWork === 0) this.#queues.delete(tenantId);
  }
}

function tooMany(): GraphQLError {
  const what =
    "Too many operations of yours, or of your organization, are under way. Wait for some to end, then send again.";
  return errorOf("TOO_MANY_OPERATIONS", what);
}
