import { useId } from "react";
import type { SilenceQuery } from "../api/operations.generated";
import { Choice } from "../ui/choice";
import { Card } from "../ui/parts";
import { allOf, number } from "../ui/words";
import { choosable, type Draft, faultOfTypes, hasType, unseenTypes, withType } from "./draft";

interface RuleProps {
  draft: Draft;
  onWish(part: Partial<Draft>): void;
}

interface CalendarProps extends RuleProps {
  /** The zone of the user who authorized, where that is what holds. */
  usersZone: string | null;
}

/** In which days silence is counted. */
export function Calendar({ draft: { businessDays, timeZone }, usersZone, onWish }: CalendarProps) {
  const zones = Intl.supportedValuesOf("timeZone");
  const known = timeZone === "" || zones.includes(timeZone) ? zones : [timeZone, ...zones];
  return (
    <Card title="Days">
      <label className="row check">
        <input
          type="checkbox"
          checked={businessDays}
          onChange={({ target }) => onWish({ businessDays: target.checked })}
        />
        Saturdays and Sundays do not count
      </label>
      <Choice
        name="Days begin at midnight in"
        value={timeZone}
        none={`The zone of the user who authorized${usersZone === null ? "" : ` (${usersZone})`}`}
        onChoose={(zone) => onWish({ timeZone: zone ?? "" })}
      >
        {known.map((zone) => (
          <option key={zone}>{zone}</option>
        ))}
      </Choice>
    </Card>
  );
}

interface TypesProps extends RuleProps {
  /** The kinds of the CRM's newest activities. */
  seen: SilenceQuery["connection"]["activityTypes"];
}

/** What counts as a word of the buyer's, beside calls, meetings and lunches. */
export function ActivityTypes({ draft: { types }, seen, onWish }: TypesProps) {
  const id = useId();
  const fault = faultOfTypes(types);
  const unseen = fault || seen.length === 0 ? [] : unseenTypes(types, seen);
  return (
    <Card title="Activities in which the buyer has a part">
      {choosable(seen).map(({ key, count }) => (
        <label key={key} className="row check">
          <input
            type="checkbox"
            checked={hasType(types, key)}
            onChange={({ target }) => onWish({ types: withType(types, key, target.checked) })}
          />
          {key} <span className="small muted">{number(count)} lately</span>
        </label>
      ))}
      <div className="field">
        <label htmlFor={id}>Keys of activity types in the CRM</label>
        <input
          id={id}
          className="input"
          value={types}
          aria-invalid={fault !== null}
          aria-describedby={`${id}-fault ${id}-hint`}
          placeholder="demo, site_visit"
          onChange={({ target }) => onWish({ types: target.value })}
        />
        <span id={`${id}-fault`} className={`small ${fault ? "fault" : "muted"}`} aria-live="polite">
          {fault}
          {unseen.length > 0 &&
            `None of the CRM's newest activities has the key ${allOf(unseen.map((type) => `“${type}”`))}.`}
        </span>
      </div>
      <p id={`${id}-hint`} className="small muted">
        With commas between them. Calls, meetings and lunches count anyway; any other counts as contact by our side.
      </p>
    </Card>
  );
}
