import type { QueryRunner } from "typeorm";

/** Reads whose plans are kept by the sessions. The texts are the code's own, so there are few; the rest is not prepared. */
const MAX_PREPARED = 500;
const preparedNames = new Map<string, string>();
/** PostgreSQL's code for a kept plan whose result has changed, as `SELECT t.*` does when a newer release adds a column. */
const STALE_PLAN = "0A000";

/** A read that comes again is parsed and planned once in a session. Transactions are left alone: they could not try again. */
export function prepareReads(runner: QueryRunner): void {
  const query = runner.query.bind(runner) as (text: unknown, ...rest: unknown[]) => Promise<unknown>;
  runner.query = async (text: string, ...rest: unknown[]): Promise<never> => {
    const name = runner.isTransactionActive ? null : nameOf(text);
    if (!name) return (await query(text, ...rest)) as never;
    try {
      return (await query({ name, text }, ...rest)) as never;
    } catch (error) {
      if ((error as { code?: string }).code !== STALE_PLAN) throw error;
      return (await query(text, ...rest)) as never;
    }
  };
}

function nameOf(text: string): string | null {
  const known = preparedNames.get(text);
  if (known || preparedNames.size >= MAX_PREPARED || !/^\s*(SELECT|WITH)\b/i.test(text)) return known ?? null;
  const name = `read_${preparedNames.size + 1}`;
  preparedNames.set(text, name);
  return name;
}
