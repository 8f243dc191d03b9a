import DataLoader from "dataloader";
import type { CopyScope } from "../database/database";
import { type Begun, type Id, type Ids, NamedIds, type Read } from "../database/joint-reads";

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
