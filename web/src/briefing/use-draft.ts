import { useEffect, useState } from "react";
import { dropDraft, keepDraft, keptDraft } from "./drafts";

export interface DraftText {
  text: string;
  /** Whether it is there after a reload, wherever the person goes. */
  isKept: boolean;
  type(text: string): void;
  /** It was written: nothing of it stays. */
  drop(sent: string): void;
}

/**
 * Text that is typed for a slot, as long as it is neither sent nor cleared.
 * @param sent what was sent and is not settled yet: it stands in the form until it is; empty where nothing was
 */
export function useDraft(slot: string, sent?: string): DraftText {
  const [text, setText] = useState(() => sent || keptDraft(slot));
  const [isKept, setKept] = useState(true);
  useWarning(!isKept);
  return {
    text,
    isKept,
    type: (typed) => {
      setText(typed);
      setKept(keepDraft(slot, typed));
    },
    drop: (written) => {
      dropDraft(slot, written);
      setText("");
      setKept(true);
    },
  };
}

/** The browser asks before the page is left. */
function useWarning(isDue: boolean): void {
  useEffect(() => {
    if (!isDue) return;
    const warn = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener("beforeunload", warn);
    return () => window.removeEventListener("beforeunload", warn);
  }, [isDue]);
}
