import type { GapFragment } from "../api/operations.generated";
import { Notice, When } from "./parts";
import { counted, RESOURCE } from "./words";

/** What could not be read, in words, so that nothing missing looks like nothing there. */
export function Gaps({ gaps }: { gaps: readonly GapFragment[] }) {
  if (gaps.length === 0) return null;
  return (
    <Notice tone="warn" title="Some data is missing">
      <ul className="bullets">
        {gaps.map(({ resource, code, count, since, message, expectedBy }) => (
          <li key={`${resource} ${code}`}>
            <strong>{RESOURCE[resource]}</strong>
            {/* It changes with each run, for days: nobody is interrupted by that. */}
            <span aria-live="off">{count > 1 && ` (${counted(count, "record")})`}</span>: {message}{" "}
            <span className="small muted">
              Since <When at={since} />
              {expectedBy && (
                <>
                  ; at this pace it is read by <When at={expectedBy} />
                </>
              )}
              .
            </span>
          </li>
        ))}
      </ul>
    </Notice>
  );
}
