import { useEffect, useEffectEvent, useId } from "react";
import { useTyped } from "../ui/use-typed";
import { LONGEST_SEARCH, type Wishes } from "./wishes";

/** Whoever types is not asked about each letter. */
const TYPING_MS = 300;

interface NarrowingProps {
  wishes: Wishes;
  /** The host product says which address the viewer has; without it nobody's meetings are theirs. undefined: not known yet. */
  email: string | null | undefined;
  onWish(changed: Partial<Wishes>): void;
}

/** Fewer meetings: by a word, and by whose they are. */
export function Narrowing({ wishes: { tab, search, mine, cancelled }, email, onWish }: NarrowingProps) {
  const id = useId();
  const { field, typed, type } = useTyped(search);
  const settle = useEffectEvent(() => typed !== search && onWish({ search: typed }));
  useEffect(() => {
    const timer = setTimeout(settle, typed === "" ? 0 : TYPING_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return (
    <search className="filters" aria-label="Find meetings">
      <div className="field">
        <label htmlFor={id}>Search</label>
        <input
          ref={field}
          id={id}
          className="input"
          type="search"
          maxLength={LONGEST_SEARCH}
          dir="auto"
          placeholder="Title, person or address"
          value={typed}
          onChange={({ target }) => type(target.value)}
        />
      </div>
      <label className="row check">
        <input
          type="checkbox"
          checked={mine && Boolean(email)}
          disabled={!email}
          onChange={({ target }) => onWish({ mine: target.checked })}
        />
        {email === null ? "Mine (your sign-in does not say your address)" : "Mine"}
      </label>
      {tab === "all" && (
        <label className="row check">
          <input type="checkbox" checked={cancelled} onChange={({ target }) => onWish({ cancelled: target.checked })} />
          Also cancelled ones
        </label>
      )}
    </search>
  );
}
