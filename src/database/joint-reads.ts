import { type Asked, type Read, type Row, rowsIn } from "./rows";
import { jointStatement } from "./statement-texts";

/** A piece of work, and the first read that it asks for at once; null: it asks for none. */
export interface Begun<T> {
  done: Promise<T>;
  read: Read | null;
}

/**
 * Reads that are asked for together go to PostgreSQL as one statement: one round trip for each level of a query,
 * however many kinds of records stand on it. Each read comes back as one JSON value.
 */
export class JointReads {
  #waiting: Read[] = [];

  /** @param namesTenant each table's comparison names the tenant by its id, as statements that go to one of many nodes have to */
  constructor(
    private readonly ask: <T>(sql: string, parameters: readonly unknown[]) => Promise<T[]>,
    private readonly namesTenant: boolean,
  ) {}

  rows(asked: Asked): Promise<Row[]> {
    return new Promise((resolve, reject) => {
      // After this turn of the event loop: loaders, which gather for a moment themselves, have then all asked.
      if (this.#waiting.length === 0) setImmediate(() => void this.#send());
      this.#waiting.push({ ...asked, found: [], hearers: [], resolve, reject });
    });
  }

  /** @param hear told when the work's read is found, before any that wait for rows of its statement go on */
  within<T>(work: () => Promise<T>, hear: (() => void) | null): Begun<T> {
    const at = this.#waiting.length;
    const done = work();
    const read = this.#waiting[at] ?? null;
    if (hear) read?.hearers.push(hear);
    return { done, read };
  }

  async #send(): Promise<void> {
    const reads = this.#waiting;
    this.#waiting = [];
    try {
      const { sql, places } = jointStatement(reads, this.namesTenant);
      const parameters = places.map(([read, index]) => reads[read]?.parameters[index]);
      const [row] = await this.ask<{ found: unknown[][][][] }>(sql, parameters);
      const found = row?.found.flat() ?? [];
      for (const [index, read] of reads.entries()) read.found = rowsIn(found[index] ?? [], read.layout);
      for (const read of reads) for (const tell of read.hearers) tell();
      for (const read of reads) read.resolve(read.found);
    } catch (error) {
      for (const read of reads) read.reject(error);
    }
  }
}
