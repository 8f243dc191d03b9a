import DataLoader from "dataloader";
import type { GraphQLResolveInfo } from "graphql";
import type { CopyScope } from "../database/database";
import { type Begun } from "../database/joint-reads";
import { type Id, type Ids, NamedIds, type Read } from "../database/rows";
import type { OperationContext } from "./context";
import { crmIdIn, type NodeType } from "./inputs";
import type { Loaders } from "./loaders";
import { MOST_STEPS, type PlanStep, planOf, type Source } from "./look-up-plan";

/** What is read says the value of each id. */
type Finding<I extends Id, Value> = (id: I) => Value;

/** Lists of one size inside records; of one without a size, and of what is no list. */
interface OfSize<I extends Id, Value> {
  ahead: Map<Id, Promise<Finding<I, Value>>>;
  loader: DataLoader<I, Value>;
}

/**
 * What an operation looks up by ids: each once, and all that are asked for on one level by one read. What the next levels
 * will look up can be read ahead, in the statement that finds their ids.
 */
export class LookUp<I extends Id, Value> {
  readonly #sizes = new Map<number, OfSize<I, Value>>();

  constructor(
    private readonly find: (ids: readonly I[], first: number) => Promise<Finding<I, Value>>,
    private readonly findAhead: (copy: CopyScope, ids: Ids<I>, first: number) => Promise<Finding<I, Value>>,
  ) {}

  /** @param first how many of a list; 0: as many as it has, or no list */
  load(id: I, first = 0): Promise<Value> {
    const { ahead, loader } = this.#of(first);
    return ahead.get(id)?.then((find) => find(id)) ?? loader.load(id);
  }

  /**
   * Looks some up at once, or what rows of the same statement name: whoever has those rows finds it here.
   * @returns the read, from whose rows others may take their ids
   */
  ahead(copy: CopyScope, ids: Ids<I>, first: number): Read | null {
    const hear = ids instanceof NamedIds ? (): void => know(ids.known) : null;
    const { done, read }: Begun<Finding<I, Value>> = copy.within(() => this.findAhead(copy, ids, first), hear);
    const know = (known: readonly Id[]) => {
      for (const id of known) this.#of(first).ahead.set(id, done);
    };
    // Whoever looks one of them up hears that it failed.
    done.catch(() => undefined);
    if (!(ids instanceof NamedIds)) know(ids);
    return read;
  }

  #of(first: number): OfSize<I, Value> {
    const known = this.#sizes.get(first);
    if (known) return known;
    const loader = new DataLoader<I, Value>(async (ids) => {
      const find = await this.find(ids, first);
      return ids.map(find);
    });
    const made = { ahead: new Map(), loader };
    this.#sizes.set(first, made);
    return made;
  }
}

/** The one row of each; null where there is none. */
export function oneOf<I extends Id, Row>(rows: readonly Row[], idOf: (row: Row) => I): (id: I) => Row | null {
  const found = new Map(rows.map((row) => [idOf(row), row]));
  return (id) => found.get(id) ?? null;
}

/** All rows of each, in their order. */
export function allOf<I extends Id, Row>(rows: readonly Row[], idOf: (row: Row) => I | null): (id: I) => Row[] {
  const groups = new Map<I | null, Row[]>();
  for (const row of rows) {
    const group = groups.get(idOf(row));
    if (group) group.push(row);
    else groups.set(idOf(row), [row]);
  }
  return (id) => groups.get(id) ?? [];
}

/** The id by which what is known of the copy as a whole is looked up. */
export const THE_COPYS = 0;

interface ById<Row> {
  load(id: number): Promise<Row | null>;
}

/** From a CRM id to its record: null where there is none, or none that this tenant may read. */
export const recordOf = async <Row>(loader: ById<Row>, id: number | null): Promise<Row | null> =>
  id === null ? null : loader.load(id);

/** Those of a list of ids that this tenant may read, in the order given. */
export async function recordsOf<Row>(loader: ById<Row>, ids: readonly number[]): Promise<Row[]> {
  const found = await Promise.all(ids.map((id) => loader.load(id)));
  return found.filter((row) => row !== null);
}

/** A look-up, whatever it finds. */
interface Ahead {
  ahead(copy: CopyScope, ids: Ids<Id>, first: number): Read | null;
}

/** Of operations, how much was planned to be read ahead. */
const stepsTaken = new WeakMap<Loaders, number>();

/** The plan of a field, as far as its operation may still read ahead. */
function takePlan(info: GraphQLResolveInfo, loaders: Loaders): readonly PlanStep[] {
  const taken = stepsTaken.get(loaders) ?? 0;
  if (taken >= MOST_STEPS) return [];
  const plan = planOf(info);
  // What did not fit is no reason to plan the next.
  stepsTaken.set(loaders, Math.min(taken + plan.length, MOST_STEPS));
  return taken + plan.length > MOST_STEPS ? [] : plan;
}

/** Reads what a plan looks up, in the statement of the read that it begins with. */
function readAhead(
  plan: readonly PlanStep[],
  begin: Read,
  copy: CopyScope,
  loaders: Loaders,
  meetingId?: string,
): void {
  const reads = new Map<Source, Read>([["begin", begin]]);
  for (const step of plan) {
    const by = step.by.flatMap(({ of, name }) => {
      const read = reads.get(of);
      return read ? [[read, name] as const] : [];
    });
    const lookUp: Ahead = loaders[step.lookUp];
    const isMeetings = step.by.every(({ of, name }) => of === "begin" && name === "id");
    const known = step.by.length === 0 ? THE_COPYS : isMeetings ? meetingId : undefined;
    const read = lookUp.ahead(copy, known === undefined ? new NamedIds(by) : [known], step.first);
    if (read) reads.set(step, read);
  }
}

/**
 * Looks up a row by its id, and in the same statement what the field's selection looks up from there. What hangs on a record is
 * found by its row alone: one that was never matched has none. A meeting is the tenant's own, and its id needs no row.
 */
export function beginWith<I extends Id, Value>(
  info: GraphQLResolveInfo,
  copy: CopyScope,
  loaders: Loaders,
  lookUp: LookUp<I, Value>,
  id: I,
): Promise<Value> {
  const plan = takePlan(info, loaders);
  const begin = plan.length > 0 ? lookUp.ahead(copy, [id], 0) : null;
  if (begin) readAhead(plan, begin, copy, loaders, typeof id === "string" ? id : undefined);
  return lookUp.load(id);
}

/** The record that a field's global id names; null for unknown, foreign and never-matched ids alike. */
export async function beginWithRecord<Row>(
  info: GraphQLResolveInfo,
  { copy, loaders }: Pick<OperationContext, "copy" | "loaders">,
  lookUp: LookUp<number, Row | null>,
  id: string,
  type: NodeType,
): Promise<Row | null> {
  const seen = await copy();
  const crmId = seen && crmIdIn(id, type, seen.copyId);
  return seen && crmId !== null ? beginWith(info, seen, loaders, lookUp, crmId) : null;
}

/** A read whose first statement finds the rows that the field's selection begins with, and in it what that looks up. */
export function beginWithRead<T>(
  info: GraphQLResolveInfo,
  copy: CopyScope,
  loaders: Loaders,
  read: () => Promise<T>,
): Promise<T> {
  const plan = takePlan(info, loaders);
  if (plan.length === 0) return read();
  const begun = copy.within(read, null);
  if (begun.read) readAhead(plan, begun.read, copy, loaders);
  return begun.done;
}
