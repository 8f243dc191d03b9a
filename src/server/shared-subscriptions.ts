import { createSourceEventStream, type ExecutionArgs, type ExecutionResult, execute, GraphQLError } from "graphql";
import type { Viewer } from "../auth/actor";
import { EventStream, StateStream, share } from "../platform/streams";
import { SHARED_MS } from "../resolvers/tenant-reads";
import type { FormatError } from "./masked-errors";

/** Subscriptions of a tenant that are not equal: each is kept, and executed at each event. Pages have two for a role and plan. */
export const MAX_DIFFERENT = 100;

/** What a subscriber is shown: null until there is something to show. */
type Answers = StateStream<ExecutionResult> | EventStream<ExecutionResult>;

/**
 * Executes equal subscriptions once for each event, whoever of the tenant has them open (decision 0053). Each subscriber
 * takes the newest answer at its own pace.
 */
export class SharedSubscriptions {
  /** By tenant and key. A subscription that cannot be begun has an answer and no life. */
  readonly #tenants = new Map<number, Map<string, Promise<Answers | ExecutionResult>>>();

  /** @param contextOf what an execution is given: all that is shared may depend on the viewer, and on nothing else of the actor */
  constructor(
    private readonly contextOf: (viewer: Viewer) => object,
    private readonly mask: FormatError,
  ) {}

  async subscribe(
    viewer: Viewer,
    args: ExecutionArgs,
  ): Promise<AsyncIterableIterator<ExecutionResult> | ExecutionResult> {
    const key = groupKey(viewer, args);
    const groups = this.#tenants.get(viewer.tenantId);
    const known = groups?.get(key);
    if (!known && groups && groups.size >= MAX_DIFFERENT) return { errors: [TOO_MANY] };
    const answers = await (known ?? this.#open(key, viewer, args));
    return isLive(answers) ? answers[Symbol.asyncIterator]() : answers;
  }

  #open(key: string, viewer: Viewer, args: ExecutionArgs): Promise<Answers | ExecutionResult> {
    const groups = this.#tenants.get(viewer.tenantId) ?? new Map<string, Promise<Answers | ExecutionResult>>();
    const end = () => {
      if (groups.get(key) !== group) return;
      groups.delete(key);
      if (groups.size === 0) this.#tenants.delete(viewer.tenantId);
    };
    const group = this.#answers(viewer, args, end);
    this.#tenants.set(viewer.tenantId, groups.set(key, group));
    group.then((answers) => isLive(answers) || end(), end);
    return group;
  }

  async #answers(viewer: Viewer, args: ExecutionArgs, ended: () => void): Promise<Answers | ExecutionResult> {
    const source = await createSourceEventStream({ ...args, contextValue: this.contextOf(viewer) });
    if (!(Symbol.asyncIterator in source)) return this.#masked(source);
    if (source instanceof EventStream)
      return source.shared((event) => this.#answer(viewer, args, async () => event), ended);
    if (!(source instanceof StateStream)) throw new Error("only what is live can be subscribed to");
    return share(
      new StateStream(source.listen, () => this.#answer(viewer, args, () => source.read())),
      SHARED_MS,
      ended,
    );
  }

  /** One execution in a context of its own, so that what it reads is as new as the event. */
  async #answer(viewer: Viewer, args: ExecutionArgs, read: () => Promise<unknown>): Promise<ExecutionResult | null> {
    try {
      const rootValue = await read();
      if (rootValue === null) return null;
      return this.#masked(await execute({ ...args, rootValue, contextValue: this.contextOf(viewer) }));
    } catch (error) {
      return { errors: [this.mask({ message: "" }, error) as GraphQLError] };
    }
  }

  /** Masked once, so that one failure is one line of the log and one id for everybody. */
  #masked(result: ExecutionResult): ExecutionResult {
    if (!result.errors) return result;
    return { ...result, errors: result.errors.map((error) => this.mask(error.toJSON(), error) as GraphQLError) };
  }
}

const isLive = (answers: Answers | ExecutionResult): answers is Answers =>
  answers instanceof StateStream || answers instanceof EventStream;

const TOO_MANY = new GraphQLError(
  `Your organization has ${MAX_DIFFERENT} different subscriptions open. End some of them first, or make them equal.`,
  { extensions: { code: "TOO_MANY_SUBSCRIPTIONS" } },
);

/** Subscriptions with equal keys have equal answers. */
export function groupKey(
  { tenantId, role, plan }: Viewer,
  { document, operationName, variableValues }: ExecutionArgs,
): string {
  const text = document.loc?.source.body;
  if (text === undefined) throw new Error("a document without its text equals no other");
  return JSON.stringify([tenantId, role, plan, text, operationName ?? null, variableValues ?? null]);
}
