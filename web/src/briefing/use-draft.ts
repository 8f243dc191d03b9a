import { useState } from "react";
import { isLoss } from "../ui/losses";
import { type Draft, dropDraft, keepDraft, keptDraft } from "./drafts";
import type { Target } from "./targets";

export interface DraftText extends Draft {
  /** Whether it is there after a reload, wherever the person goes. */
  isKept: boolean;
  /** @param target absent: as chosen before */
  type(text: string, target?: Target): void;
  choose(target: Target): void;
  /** It was written: nothing of it stays. */
  drop(sent: string): void;
}

/**
 * Text that is typed for a slot, as long as it is neither sent nor cleared.
 * @param sent what was sent and is not settled yet: it stands in the form until it is; its text is empty where only a key is kept
 */
export function useDraft(slot: string, sent?: Draft | null): DraftText {
  const [draft, setDraft] = useState(() => ({ ...keptDraft(slot), ...(sent?.text && sent) }));
  const [isKept, setKept] = useState(() => !isLoss(slot));
  const keep = (next: Draft) => {
    setDraft(next);
    setKept(keepDraft(slot, next));
  };
  return {
    ...draft,
    isKept,
    type: (text, target = draft.target) => keep({ text, at: Date.now(), target }),
    // Without a text there is nothing to keep, and what was typed since, elsewhere or in a form after this one, stays.
    choose: (target) => (draft.text === "" || keptDraft(slot).at > draft.at ? setDraft : keep)({ ...draft, target }),
    drop: (written) => {
      dropDraft(slot, written);
      setDraft({ text: "", at: 0, target: draft.target });
      setKept(true);
    },
  };
}
