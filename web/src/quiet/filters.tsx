import { useId, useState } from "react";
import type { DealOrder, QuietChoicesQuery } from "../api/operations.generated";
import { Choice } from "../ui/choice";
import { VERDICT } from "../ui/tones";
import { useTyped } from "../ui/use-typed";
import { amountOf, typedAmount } from "../ui/words";
import { VERDICTS, type Wishes } from "./wishes";

type Choices = QuietChoicesQuery["connection"];

interface FiltersProps {
  wishes: Wishes;
  choices: Choices | undefined;
  /** Those that values have been seen in. */
  currencies: readonly string[];
  onWish(changed: Partial<Wishes>): void;
}

const ORDER: Partial<Record<DealOrder, string>> = {
  QUIET_DAYS_DESC: "Longest silence",
  VALUE_DESC: "Highest value",
  UPDATED_AT_DESC: "Latest change",
};

/** What is seen of the board. Each choice holds at once, and stands in the address. */
export function Filters({ wishes, choices, currencies, onWish }: FiltersProps) {
  const { verdicts, ownerId, order, snoozed } = wishes;
  const users = choices?.users ?? [];
  return (
    <search className="filters" aria-label="What to show">
      <fieldset className="row verdicts">
        <legend className="visually-hidden">Verdict</legend>
        {VERDICTS.map((verdict) => (
          <label key={verdict} className="row check">
            <input
              type="checkbox"
              checked={verdicts.includes(verdict)}
              disabled={verdicts.length === 1 && verdicts.includes(verdict)}
              onChange={({ target }) =>
                onWish({
                  verdicts: VERDICTS.filter((one) => (one === verdict ? target.checked : verdicts.includes(one))),
                })
              }
            />
            {VERDICT[verdict].text}
          </label>
        ))}
        <label className="row check">
          <input type="checkbox" checked={snoozed} onChange={({ target }) => onWish({ snoozed: target.checked })} />
          Snoozed ones
        </label>
      </fieldset>
      <Choice name="Owner" value={ownerId} onChoose={(id) => onWish({ ownerId: id })} none="Everybody">
        {users.map(({ id, name, active }) => (
          <option key={id} value={id}>
            {active ? name : `${name} (not active)`}
          </option>
        ))}
        <Unlisted id={ownerId} among={users} />
      </Choice>
      <Where wishes={wishes} choices={choices} onWish={onWish} />
      <Least wishes={wishes} currencies={currencies} onWish={onWish} />
      <Choice
        name="Order"
        value={order}
        onChoose={(chosen) => onWish({ order: (Object.keys(ORDER) as DealOrder[]).find((one) => one === chosen) })}
      >
        {Object.entries(ORDER).map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </Choice>
    </search>
  );
}

/** What narrows the board and has no name here: not read yet, or gone. Without it the first choice, "all", would be shown. */
function Unlisted({ id, among }: { id: string | null; among: readonly { id: string }[] }) {
  return id !== null && !among.some((one) => one.id === id) && <option value={id}>Not known</option>;
}

/** A pipeline, and with one a stage of it. */
function Where({ wishes, choices, onWish }: Omit<FiltersProps, "currencies">) {
  const { pipelineId, stageId } = wishes;
  const pipelines = choices?.pipelines ?? [];
  const stages = pipelines.find(({ id }) => id === pipelineId)?.stages ?? [];
  return (
    <>
      <Choice
        name="Pipeline"
        value={pipelineId}
        onChoose={(id) => onWish({ pipelineId: id, stageId: null })}
        none="All pipelines"
      >
        {pipelines.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
        <Unlisted id={pipelineId} among={pipelines} />
      </Choice>
      {pipelineId && (
        <Choice name="Stage" value={stageId} onChoose={(id) => onWish({ stageId: id })} none="All stages">
          {stages.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
          <Unlisted id={stageId} among={stages} />
        </Choice>
      )}
    </>
  );
}

/** An amount and what it is in, whichever is said first: values in other currencies are not compared with it, and leave the board. Without a value there is nothing to ask for. */
function Least({ wishes, currencies, onWish }: Omit<FiltersProps, "choices">) {
  const id = useId();
  const { field, typed, type } = useTyped(wishes.least ? typedAmount(wishes.least) : "");
  const [isFaulty, setFaulty] = useState(false);
  const offered = [...new Set([...currencies, ...(wishes.currency ? [wishes.currency] : [])])].sort();
  const [chosen, choose] = useState<string | null>(null);
  const currency = wishes.currency ?? chosen ?? offered[0] ?? null;
  if (currency === null) return null;
  const take = () => {
    const least = amountOf(typed);
    const isAmount = least !== null || typed.trim() === "";
    setFaulty(!isAmount);
    if (isAmount) onWish({ least, currency });
  };
  return (
    <div className="field">
      <label htmlFor={id}>Least value</label>
      <div className="row least">
        <input
          ref={field}
          id={id}
          className="input"
          inputMode="decimal"
          value={typed}
          aria-invalid={isFaulty}
          aria-describedby={`${id}-fault`}
          onChange={({ target }) => type(target.value)}
          onBlur={take}
          onKeyDown={({ key }) => key === "Enter" && take()}
        />
        <select
          className="input"
          aria-label="Currency of the least value"
          value={currency}
          onChange={({ target }) => {
            choose(target.value);
            onWish({ currency: target.value });
          }}
        >
          {offered.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </div>
      <span id={`${id}-fault`} className="small fault" aria-live="polite">
        {isFaulty && `An amount like ${typedAmount("1200.5")}.`}
      </span>
    </div>
  );
}
