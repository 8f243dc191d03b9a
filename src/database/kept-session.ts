import type { QueryRunner } from "typeorm";

/**
 * Lets an operation's next statement go on in the session of the one before, which is set to its tenant already: the
 * levels of a query follow each other within a turn of the event loop. One that does not come at once finds the session
 * given back, so that an operation which waits for something else holds none.
 * @param make a runner whose session is set to the operation's reach
 */
export function keepingSession(make: () => QueryRunner): () => QueryRunner {
  let kept: { runner: QueryRunner } | null = null;
  return () => {
    const next = kept?.runner;
    kept = null;
    return next && !next.isReleased ? next : keepAfterUse(make());
  };

  function keepAfterUse(runner: QueryRunner): QueryRunner {
    const release = runner.release.bind(runner);
    runner.release = async () => {
      if (kept || runner.isTransactionActive) return release();
      const mine = { runner };
      kept = mine;
      const giveBack = () => {
        if (kept !== mine) return;
        kept = null;
        void release();
      };
      setImmediate(() => setImmediate(giveBack));
    };
    return runner;
  }
}
