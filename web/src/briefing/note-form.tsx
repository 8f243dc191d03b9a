import { lazy, Suspense, useId, useState } from "react";
import { Part } from "../ui/part";
import { Button, Notice } from "../ui/parts";
import { keptDraft } from "./drafts";
import { keptNote, unsettledNote } from "./kept-notes";
import { Fate, Settled } from "./note-fate";
import { NoteText, Where } from "./note-inputs";
import type { Target } from "./targets";
import { useDraft } from "./use-draft";
import { type Outcome, type Sending, useSending } from "./use-sending";

/** Only who looks at a preview needs what renders it. */
const NotePreview = lazy(() => import("./note-preview"));

interface NoteFormProps {
  meetingId: string;
  /** Of the text that is typed here. */
  slot: string;
  /** Of what was sent of it. */
  sentSlot: string;
  targets: readonly Target[];
  /** Where the match says that a note goes; null where it does not. */
  matched: Target | null;
  /** Whether the match may come to say otherwise. */
  mayChange: boolean;
  /** Whom the CRM will show as the note's author. */
  author: string | null;
  onChange(): void;
}

/**
 * A text, a look at it, and where it goes: where the match says until a person says it. What was sent stays as it was
 * until it is known what became of it.
 */
export function NoteForm({ meetingId, slot, sentSlot, targets, matched, mayChange, author, onChange }: NoteFormProps) {
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const [kept] = useState(() => keptNote(sentSlot) ?? (keptDraft(slot).text ? null : unsettledNote(sentSlot)));
  const draft = useDraft(slot, kept && { text: kept.content, at: kept.at });
  const chosen = draft.target;
  const target = chosen ? (targets.find(({ id }) => id === chosen.id) ?? null) : matched;
  /** What was sent and comes back is for the record that it was sent to. */
  const chosenBy = (sentTo: Target) => (sentTo.id === target?.id ? chosen : sentTo);
  const { sending, ...sender } = useSending(sentSlot, meetingId, draft, (settled, sentTo) => {
    setOutcome(settled);
    if (settled?.is === "WRITTEN" && !settled.isMixed) draft.drop(settled.note.content);
    // What stays is there on purpose from here on, so it is newer than what was written.
    else if (settled?.is === "WRITTEN") draft.type(draft.text, chosenBy(sentTo));
    else if (settled && sentTo.id !== target?.id) draft.choose(sentTo);
    onChange();
  });
  const [preview, showPreview] = useState(false);
  const isEmpty = draft.text.trim() === "";

  if (targets.length === 0 && !sending && isEmpty && !outcome) {
    return (
      <p className="muted">Nobody in this meeting is matched to the CRM, so there is nothing to write a note on.</p>
    );
  }
  const submit = () => {
    setOutcome(null);
    showPreview(false);
    if (sending) sender.sendAgain();
    else if (target) sender.send(target);
  };
  const unlock = (give: () => void) => {
    // From here on the browser keeps it as a draft alone.
    if (sending) draft.type(draft.text, chosenBy(sending.note.target));
    give();
  };
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <Where
        targets={targets}
        target={sending?.note.target ?? target}
        isLocked={sending !== null}
        onChoose={draft.choose}
      />
      {chosen && !target && !sending && (
        <Notice tone="warn" title={`“${chosen.name}” no longer belongs to this meeting`}>
          <p>Choose where to write. Nothing is written anywhere else by itself.</p>
        </Notice>
      )}
      {preview ? (
        <section className="preview" aria-label="Preview" dir="auto">
          <Part>
            <Suspense fallback={<p className="muted">Preparing the preview …</p>}>
              <NotePreview content={draft.text} />
            </Suspense>
          </Part>
        </section>
      ) : (
        <NoteText draft={draft} isLocked={sending !== null} />
      )}
      {sending ? <Fate sending={sending} /> : outcome && <Settled outcome={outcome} author={author} />}
      <div className="row">
        <Submit
          sending={sending}
          target={sending?.note.target ?? target}
          lacking={mayChange && !chosen ? MAY_CHANGE : "Nothing is chosen yet to write it on"}
          isEmpty={isEmpty}
        />
        {sending?.fate === "NOT_RECEIVED" && <Button onClick={() => unlock(sender.edit)}>Edit</Button>}
        {sending?.fate === "STAYS_UNKNOWN" && (
          <Button onClick={() => unlock(sender.giveBack)}>Write it again, though it may be there twice</Button>
        )}
        {!sending && (
          <Button disabled={isEmpty} onClick={() => showPreview(!preview)}>
            {preview ? "Edit" : "Preview"}
          </Button>
        )}
      </div>
      <p className="small muted">
        The CRM shows <bdi>{author ?? "the user who authorized the connection"}</bdi> as the note's author.
      </p>
    </form>
  );
}

const MAY_CHANGE = "The CRM is still being read, and another record may come to be meant: choose where to write";

interface SubmitProps {
  sending: Sending | null;
  target: Target | null;
  /** Said where there is no target. */
  lacking: string;
  isEmpty: boolean;
}

/** The button, and beside it where it writes. */
function Submit({ sending, target, lacking, isEmpty }: SubmitProps) {
  const id = useId();
  const isWaiting = sending?.fate === "NOT_KNOWN" || sending?.fate === "STAYS_UNKNOWN";
  const label = {
    SENT: "Writing …",
    NOT_KNOWN: "Write to the CRM",
    STAYS_UNKNOWN: "Write to the CRM",
    NOT_RECEIVED: "Send again",
  };
  return (
    <>
      <button
        type="submit"
        className="button button-main"
        aria-busy={sending?.fate === "SENT"}
        aria-describedby={id}
        disabled={isEmpty || !target || isWaiting}
      >
        {label[sending?.fate ?? "NOT_KNOWN"]}
      </button>
      <span id={id} className="small where-to" aria-live="polite">
        {target ? (
          <>
            On <bdi>{target.name}</bdi>
          </>
        ) : (
          lacking
        )}
      </span>
    </>
  );
}
