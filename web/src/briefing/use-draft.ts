import { useEffect, useState } from "react";
import { type Draft, dropDraft, keepDraft, keptDraft } from "./drafts";

export interface DraftText extends Draft {
  /** Whether it is there after a reload, wherever the person goes. */
  isKept: boolean;
  type(text: string): void;
  /** It was written: nothing of it stays. */
  drop(sent: string): void;
}

/**
 * Text that is typed for a slot, as long as it is neither sent nor cleared.
 * @param sent what was sent and is not settled yet: it stands in the form until it is; its text is empty where only a key is kept
 */
export function useDraft(slot: string, sent?: Draft | null): DraftText {
  const [draft, setDraft] = useState(() => (sent?.text ? sent : keptDraft(slot)));
  const [isKept, setKept] = useState(true);
  useWarning(!isKept);
  return {
    ...draft,
    isKept,
    type: (text) => {
      const typed = { text, at: Date.now() };
      setDraft(typed);
      setKept(keepDraft(slot, typed));
    },
    drop: (written) => {
      dropDraft(slot, written);
      setDraft({ text: "", at: 0 });
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
