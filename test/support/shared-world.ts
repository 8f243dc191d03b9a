import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import { buildSchema, type ExecutionArgs, type ExecutionResult, GraphQLError, parse } from "graphql";
import { type Actor, type Viewer, viewerOf } from "../../src/auth/actor";
import { mayManageConnection } from "../../src/auth/policies";
import { StateStream } from "../../src/platform/streams";
import { type SharedAnswer, SharedSubscriptions } from "../../src/server/subscriptions";

const schema = buildSchema(`
  type Query { unused: Int }
  type Subscription { seen(by: String): Seen! other(by: String): Seen! }
  type Seen { tenant: String version: Int canManage: Boolean plan: String by: String userId: String fails: Int }
`);
interface Context {
  actor: Viewer & Partial<Actor>;
}

/** A value for each tenant, and who listens to it. */
export class World {
  readonly listeners = new Map<string, Set<() => void>>();
  readonly failures: GraphQLError[] = [];
  version = 1;
  executions = 0;
  /** Called while a value is read. */
  whileReading = () => {};
  nothingYet = false;
  codeOfFailures = "TEMPORARILY_UNAVAILABLE";
  readonly subscriptions = new SharedSubscriptions(
    (actor) => ({ actor }),
    (error) => {
      this.failures.push(error as GraphQLError);
      const extensions = { code: this.codeOfFailures };
      return { message: `masked ${this.failures.length}`, path: (error as GraphQLError).path, extensions };
    },
  );

  constructor() {
    for (const field of Object.values(schema.getSubscriptionType()?.getFields() ?? {})) {
      field.subscribe = (_source, _args, { actor }: Context) => this.#valueOf(actor.tenant);
      field.resolve = (version, { by }, { actor }: Context) => this.#seen(version as number, by, actor);
    }
  }

  change(tenant: string): void {
    this.version += 1;
    for (const wake of this.listeners.get(tenant) ?? []) wake();
  }

  #valueOf(tenant: string): StateStream<number> {
    const listeners = this.listeners.get(tenant) ?? new Set();
    this.listeners.set(tenant, listeners);
    const listen = (wake: () => void) => {
      listeners.add(wake);
      return () => listeners.delete(wake);
    };
    return new StateStream(listen, async () => {
      const { version } = this;
      await setImmediate();
      this.whileReading();
      return this.nothingYet ? null : version;
    });
  }

  #seen(version: number, by: string | undefined, actor: Context["actor"]) {
    this.executions += 1;
    const fails = () => {
      throw new Error("a secret of ours");
    };
    const canManage = () => mayManageConnection(actor);
    const userId = () => actor.userId;
    return { tenant: actor.tenant, version, canManage, plan: () => actor.plan, by, userId, fails };
  }
}

export const person = (known: Partial<Actor> = {}): Actor => ({
  userId: "mia",
  tenant: "acme",
  tenantId: 1,
  role: "member",
  plan: "sales",
  email: null,
  name: null,
  expiresAt: new Date(0),
  ...known,
});
export const ALL = "subscription { seen { tenant version canManage plan by } }";
export interface Asked {
  query?: string;
  operationName?: string;
  variables?: Record<string, unknown>;
}
export const argsOf = ({ query = ALL, operationName, variables }: Asked = {}): ExecutionArgs => ({
  schema,
  document: parse(query),
  operationName,
  variableValues: variables,
});

export type Reader = AsyncIterableIterator<SharedAnswer>;
export async function join(world: World, known: Partial<Actor> = {}, asked: Asked = {}): Promise<Reader> {
  const joined = await world.subscriptions.subscribe(viewerOf(person(known)), argsOf(asked), person(known).userId);
  if (!(Symbol.asyncIterator in joined)) throw new Error(`refused: ${JSON.stringify(joined)}`);
  return joined;
}
/** As it stands in a message, whose end its text is; nothing where it has ended. */
export const told = ({ value }: IteratorResult<SharedAnswer>) =>
  (value && JSON.parse(String(value.text).slice(0, -1))) as ExecutionResult;
export const next = async (reader: Reader) => told(await reader.next());
export const seen = async (reader: Reader, field = "seen") =>
  (await next(reader)).data?.[field] as Record<string, unknown> | undefined;
export const leave = (...readers: Reader[]) => Promise.all(readers.map((reader) => reader.return?.()));
/** Whether it still waits after everything that is due has been done. */
export const waits = async (answer: Promise<unknown>) => {
  const nothing = Symbol("nothing");
  const later = sleep(20).then(() => nothing);
  return (await Promise.race([answer, later])) === nothing;
};
