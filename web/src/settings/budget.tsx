import type { BudgetFragment } from "../api/operations.generated";
import { When } from "../ui/parts";
import { number } from "../ui/words";

/** What this service takes of the tokens that the CRM gives the company for a day. */
export function Budget({ budget }: { budget: BudgetFragment }) {
  const { spentToday, allowance, remaining, limit, resetsAt } = budget;
  const left = remaining === null ? "" : `; your company has ${number(remaining)} left`;
  return (
    <section className="stack stack-tight" aria-label="Tokens of the CRM's day">
      <p id="budget-words">
        {spentToday <= allowance
          ? `This service has used ${number(spentToday)} of its ${number(allowance)} tokens today${left}.`
          : `This service has used ${number(spentToday)} tokens today, more than its usual ${number(allowance)}${left}.`}
      </p>
      <progress
        className="bar"
        max={allowance}
        value={Math.min(spentToday, allowance)}
        aria-labelledby="budget-words"
      />
      <p className="muted small">
        The CRM gives your company {limit === null ? "so many tokens" : `${number(limit)} tokens`} a day for all its
        apps together.{" "}
        {resetsAt ? (
          <>
            Its next day begins <When at={resetsAt} />.
          </>
        ) : (
          "When its next day begins is not known yet."
        )}
      </p>
    </section>
  );
}
