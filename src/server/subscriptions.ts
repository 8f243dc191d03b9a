import {
  createSourceEventStream,
  type ExecutionArgs,
  type ExecutionResult,
  execute,
  GraphQLError,
  type GraphQLSchema,
  type OperationDefinitionNode,
  OperationTypeNode,
} from "graphql";
import type { SubscribePayload } from "graphql-ws";
import type { Viewer } from "../auth/actor";
import { EventStream, type HandOver, StateStream, share } from "../platform/streams";
import { eachInSlices } from "../platform/work";
import { readAgain, SHARED_MS } from "../resolvers/tenant-reads";
import { SENDING } from "./bounds";
import { Documents } from "./documents";
import { errorOf, isOurs, type MaskError } from "./errors";
import { MAX_EVENT_COST, MAX_EVENT_TOKENS, refusalOfSize } from "./limits";

/** Subscriptions of one socket; the page needs two. */
const MAX_SUBSCRIPTIONS = 20;

/** Of a subscription's id; clients take a UUID. The library names it in the reason of a close, which has 123 bytes at most. */
const MAX_ID_BYTES = 90;

const ALL_SKIPPED = "The subscription's field is skipped by @skip or @include: do not subscribe, or do not skip it.";
const SUBSCRIPTIONS_ONLY = "This socket serves subscriptions. Send queries and mutations by POST to /graphql.";

/** Decides which subscriptions are begun. */
export class SubscriptionChecks {
  readonly #documents: Documents;

  constructor(
    private readonly schema: GraphQLSchema,
    introspection: boolean,
  ) {
    this.#documents = new Documents(schema, introspection, MAX_EVENT_TOKENS, refusalOf);
  }

  /**
   * @param open how many subscriptions the socket has, this one among them
   * @returns what to execute, or why it is not begun
   */
  check(payload: SubscribePayload, open: number): ExecutionArgs | readonly GraphQLError[] {
    if (open > MAX_SUBSCRIPTIONS) {
      const what = `This socket has ${MAX_SUBSCRIPTIONS} subscriptions already. End some of them first.`;
      return [errorOf("TOO_MANY_SUBSCRIPTIONS", what)];
    }
    const read = this.#documents.read(payload);
    if (!("size" in read)) return read;
    const tooLarge = refusalOfSize(read.size, MAX_EVENT_COST);
    if (tooLarge) return [tooLarge];
    // Each is an object; graphql-js would fail to find the one field that is listened to.
    if (read.size.cost === 0) return [errorOf("BAD_USER_INPUT", ALL_SKIPPED)];
    const { document, operationName, variables } = read;
    return { schema: this.schema, document, operationName, variableValues: variables };
  }
}

const refusalOf = ({ operation }: OperationDefinitionNode) =>
  operation === OperationTypeNode.SUBSCRIPTION ? null : errorOf("SUBSCRIPTIONS_ONLY", SUBSCRIPTIONS_ONLY);

/**
 * `next` and `error` are a server's to send: the library takes one from a client for a fault of ours (4500, and a stack
 * on stderr). The payload of a `ping` it would send back, whatever its size. Refused while they are read, they are bad
 * requests (4400). Members that the protocol does not have are dropped.
 */
export function readMessage(key: string, value: unknown): unknown {
  if (key !== "" || typeof value !== "object" || value === null || !("type" in value)) return value;
  const { type } = value;
  if (type === "next" || type === "error") throw new Error("a client sent what only a server sends");
  if ((type === "ping" || type === "pong") && "payload" in value) throw new Error("a ping or pong has no payload here");
  const id = "id" in value ? value.id : undefined;
  if (typeof id === "string" && Buffer.byteLength(id) > MAX_ID_BYTES) throw new Error("an id is too long to be kept");
  return { type, ...("id" in value && { id }), ...("payload" in value && { payload: value.payload }) };
}

/** Takes everything out: the library keeps what came for as long as the socket or the subscription is open. */
export function take<T extends object>(payload: T): T {
  const taken = { ...payload };
  for (const name of Object.keys(payload)) Reflect.deleteProperty(payload, name);
  return taken;
}

/** `connection_init` carries what an HTTP request has in its header: `{ authorization: "Bearer ..." }`. */
export function takeToken(parameters: Record<string, unknown> = {}): string {
  const { authorization, Authorization } = take(parameters);
  const header = authorization ?? Authorization;
  return typeof header === "string" ? header.replace(/^Bearer /i, "") : "";
}

/** Subscriptions of a tenant that are not equal: each is kept, and executed at each event. Pages have two for a role and plan. */
export const MAX_DIFFERENT = 100;

/** An answer that many are sent: written once, as it stands at the end of each of their messages. */
export class SharedAnswer {
  readonly errors: ExecutionResult["errors"];
  readonly text: Buffer;

  constructor(result: ExecutionResult) {
    this.errors = result.errors;
    this.text = Buffer.from(`${JSON.stringify(result)}}`);
  }
}

const FINAL_TEXT = 0x81;
/** A message as one frame, which a server does not mask (RFC 6455, 5.2). */
export function textFrame(text: string, end: Uint8Array): Buffer {
  const [begin, rest] = [Buffer.byteLength(text), end.length];
  const length = begin + rest;
  const [announced, more] = length < 126 ? [length, 0] : length < 65_536 ? [126, 2] : [127, 8];
  const frame = Buffer.allocUnsafe(2 + more + length);
  frame.set([FINAL_TEXT, announced]);
  if (more === 2) frame.writeUInt16BE(length, 2);
  if (more === 8) frame.writeBigUInt64BE(BigInt(length), 2);
  frame.write(text, 2 + more);
  frame.set(end, 2 + more + begin);
  return frame;
}

/** The answers of one subscription, for each user who shares it. */
type Answers = (userId: string) => StateStream<SharedAnswer> | EventStream<SharedAnswer>;

/**
 * Executes equal subscriptions once for each event, whoever of the tenant has them open (decision 0041). Each subscriber
 * takes the newest answer at its own pace.
 */
export class SharedSubscriptions {
  /** By tenant and key. A subscription that cannot be begun has an answer and no life. */
  readonly #tenants = new Map<number, Map<string, Promise<Answers | ExecutionResult>>>();

  /** @param contextOf what an execution is given: all that is shared may depend on the viewer, and on nothing else of the actor */
  constructor(
    private readonly contextOf: (viewer: Viewer) => object,
    private readonly mask: MaskError,
  ) {}

  /** @param userId whose it is: what is for one user alone is delivered to that user's subscriptions */
  async subscribe(
    viewer: Viewer,
    args: ExecutionArgs,
    userId: string,
  ): Promise<AsyncIterableIterator<SharedAnswer> | ExecutionResult> {
    const key = groupKey(viewer, args);
    const groups = this.#tenants.get(viewer.tenantId);
    const known = groups?.get(key);
    if (!known && groups && groups.size >= MAX_DIFFERENT) return { errors: [TOO_MANY] };
    const answers = await (known ?? this.#open(key, viewer, args));
    return isLive(answers) ? answers(userId)[Symbol.asyncIterator]() : answers;
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
    const handOver: HandOver = (readers, tell = () => {}) => eachInSlices(readers, SENDING, tell, viewer.tenantId);
    if (source instanceof EventStream)
      return source.shared((event) => this.#answer(viewer, args, event), ended, handOver);
    if (!(source instanceof StateStream)) throw new Error("only what is live can be subscribed to");
    const read = (reader: () => void) => this.#answer(viewer, args, () => source.read(reader));
    const answers = readAgain(new StateStream(source.listen, read), ({ errors = [] }) => errors.some(isOurs));
    const states = share(answers, SHARED_MS, ended, handOver);
    return () => states;
  }

  /** One execution in a context of its own, so that what it reads is as new as the event. */
  async #answer(viewer: Viewer, args: ExecutionArgs, read: () => Promise<unknown>): Promise<SharedAnswer | null> {
    try {
      const rootValue = await read();
      if (rootValue === null) return null;
      return new SharedAnswer(
        this.#masked(await execute({ ...args, rootValue, contextValue: this.contextOf(viewer) })),
      );
    } catch (error) {
      return new SharedAnswer({ errors: [this.#mask(error)] });
    }
  }

  /** Masked once, so that one failure is one line of the log and one id for everybody. */
  #masked(result: ExecutionResult): ExecutionResult {
    const errors = result.errors?.map((error) => this.#mask(error));
    return { ...result, ...(errors && { errors }) };
  }

  /** As plain data, which is all that is sent of an error; an execution's answer has the class. */
  #mask(error: unknown): GraphQLError {
    return this.mask(error) as GraphQLError;
  }
}

const isLive = (answers: Answers | ExecutionResult): answers is Answers => typeof answers === "function";

const TOO_MANY = errorOf(
  "TOO_MANY_SUBSCRIPTIONS",
  `Your organization has ${MAX_DIFFERENT} different subscriptions open. End some of them first, or make them equal.`,
);

/** Subscriptions with equal keys have equal answers. */
function groupKey(
  { tenantId, role, plan }: Viewer,
  { document, operationName, variableValues }: ExecutionArgs,
): string {
  const text = document.loc?.source.body;
  if (text === undefined) throw new Error("a document without its text equals no other");
  return JSON.stringify([tenantId, role, plan, text, operationName ?? null, variableValues ?? null]);
}
