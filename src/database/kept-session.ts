import type { QueryRunner } from "typeorm";

/**
 * Lets an operation's next statement go on in the session of the one before, which is set to its tenant already: the
 * levels of a query follow each other within a turn of the event loop. One that does not come at once finds the session
 * given back, so that an operation which waits for something else holds none.
 * @param make a runner whose session is set to the operation's reach
 */
export function keepingSession(make: () => QueryRunner): () => QueryRunner {
  let kept: { runner: QueryRunner; giveBack(): void } | null = null;
  return () => {
    const next = kept;
    // A session that has ended lets go of its runner by itself; what else was taken with it is given back here.
    if (next?.runner.isReleased) next.giveBack();
    else kept = null;
    return next && !next.runner.isReleased ? next.runner : keepAfterUse(make());
  };

  function keepAfterUse(runner: QueryRunner): QueryRunner {
    const release = runner.release.bind(runner);
    runner.release = async () => {
      if (kept || runner.isTransactionActive || runner.isReleased) return release();
      const giveBack = () => {
        if (kept !== mine) return;
        kept = null;
        void release();
      };
      const mine = { runner, giveBack };
      kept = mine;
      setImmediate(() => setImmediate(giveBack));
    };
    return runner;
  }
}
