import DataLoader from "dataloader";
import type { CopyScope, TenantScope } from "../database/database";
import { type Id, type Ids, NamedIds, type Read } from "../database/reads";

/** A list inside a record: whose, and how many. Where it has no size of its own that is 0, as it is where there is no list. */
interface Key<I extends Id> {
  id: I;
  first: number;
}

/** Reads what many ask for; what is read says the value of each id. */
type Find<Scope, I extends Id, Value> = (
  scope: Scope,
  ids: Ids<I>,
  first: number,
) => Promise<(id: I) => Value | Promise<Value>>;

/**
 * What an operation looks up by ids: each once, and all that are asked for on one level by one read. What the next levels
 * will look up can be read ahead, in the statement that finds their ids.
 */
export class LookUp<Scope extends TenantScope, I extends Id, Value> {
  readonly #loader: DataLoader<Key<I>, Value, Id>;

  /** @param scope null, and all is `nothing`, while no CRM is connected */
  constructor(
    scope: () => Promise<Scope | null>,
    private readonly find: Find<Scope, I, Value>,
    nothing: Value,
  ) {
    this.#loader = new DataLoader(
      async (keys) => {
        const from = await scope();
        if (!from) return keys.map(() => nothing);
        const sizes = new Set(keys.map(({ first }) => first));
        const found = new Map<number, Awaited<ReturnType<typeof find>>>();
        const findSize = async (first: number) => {
          const alike = keys.filter((key) => key.first === first).map(({ id }) => id);
          found.set(first, await find(from, alike, first));
        };
        await Promise.all([...sizes].map(findSize));
        return Promise.all(keys.map(({ id, first }) => found.get(first)?.(id) ?? nothing));
      },
      { cacheKeyFn: ({ id, first }) => (first === 0 ? id : `${id}:${first}`) },
    );
  }

  load(id: I, first = 0): Promise<Value> {
    return this.#loader.load({ id, first });
  }

  /**
   * Looks some up at once, or what rows of the same statement name: whoever has those rows finds it here.
   * @returns the read, from whose rows others may take their ids
   */
  ahead(scope: Scope, ids: Ids<I>, first: number): Read | null {
    const { done, read } = scope.within(() => this.find(scope, ids, first));
    // Where it fails, whoever looks something up asks again, and hears of it.
    done.catch(() => undefined);
    if (!(ids instanceof NamedIds)) this.#know(done, ids, first);
    else if (read) read.told = () => this.#know(done, ids.known, first);
    return read;
  }

  #know(found: Promise<(id: I) => Value | Promise<Value>>, ids: readonly I[], first: number): void {
    for (const id of ids) {
      const value = found.then((valueOf) => valueOf(id));
      value.catch(() => undefined);
      this.#loader.prime({ id, first }, value);
    }
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
