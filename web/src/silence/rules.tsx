import { useId } from "react";
import { Choice } from "../ui/choice";
import { Card } from "../ui/parts";
import { type Draft, faultOfTypes } from "./draft";

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

/** What counts as a word of the buyer's, beside calls, meetings and lunches. */
export function ActivityTypes({ draft: { types }, onWish }: RuleProps) {
  const id = useId();
  const fault = faultOfTypes(types);
  return (
    <Card title="Activities in which the buyer has a part">
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
        <span id={`${id}-fault`} className="small fault" aria-live="polite">
          {fault}
        </span>
      </div>
      <p id={`${id}-hint`} className="small muted">
        With commas between them. Calls, meetings and lunches count anyway; each other activity is our own word.
      </p>
    </Card>
  );
}
