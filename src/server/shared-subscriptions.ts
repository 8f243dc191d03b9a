import { createSourceEventStream, type ExecutionArgs, type ExecutionResult, execute, type GraphQLError } from "graphql";
import type { Viewer } from "../auth/actor";
import { LiveValue, share } from "../platform/live-value";
import { SHARED_MS } from "../resolvers/tenant-reads";
import type { FormatError } from "./masked-errors";

/** What a subscriber is shown: null until there is something to show. */
type Answers = LiveValue<ExecutionResult>;

/**
 * Executes equal subscriptions once for each event, whoever of the tenant has them open (decision 0053). Each subscriber
 * takes the newest answer at its own pace.
 */
export class SharedSubscriptions {
  /** A subscription that cannot be begun has an answer and no life. */
  readonly #groups = new Map<string, Promise<Answers | ExecutionResult>>();

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
    const group = this.#groups.get(key) ?? this.#open(key, viewer, args);
    const answers = await group;
    return answers instanceof LiveValue ? answers[Symbol.asyncIterator]() : answers;
  }

  #open(key: string, viewer: Viewer, args: ExecutionArgs): Promise<Answers | ExecutionResult> {
    const end = () => {
      if (this.#groups.get(key) === group) this.#groups.delete(key);
    };
    const group = this.#answers(viewer, args, end);
    this.#groups.set(key, group);
    group.then((answers) => answers instanceof LiveValue || end(), end);
    return group;
  }

  async #answers(viewer: Viewer, args: ExecutionArgs, ended: () => void): Promise<Answers | ExecutionResult> {
    const source = await createSourceEventStream({ ...args, contextValue: this.contextOf(viewer) });
    if (!(Symbol.asyncIterator in source)) return this.#masked(source);
    if (!(source instanceof LiveValue)) throw new Error("only live values can be subscribed to");
    return share(new LiveValue(source.listen, () => this.#answer(viewer, args, source)), SHARED_MS, ended);
  }

  /** One execution in a context of its own, so that what it reads is as new as the event. */
  async #answer(viewer: Viewer, args: ExecutionArgs, source: LiveValue<unknown>): Promise<ExecutionResult | null> {
    try {
      const rootValue = await source.read();
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

/** Subscriptions with equal keys have equal answers. */
export function groupKey(
  { tenantId, role, plan }: Viewer,
  { document, operationName, variableValues }: ExecutionArgs,
): string {
  const text = document.loc?.source.body;
  if (text === undefined) throw new Error("a document without its text equals no other");
  return JSON.stringify([tenantId, role, plan, text, operationName ?? null, variableValues ?? null]);
}
