import { lazy, Suspense, useId, useState } from "react";
import { Button, Notice } from "../ui/parts";
import { isSignedOut, Problem } from "../ui/problem";
import type { Target } from "./kept-notes";
import { type Outcome, type Sending, useSending } from "./use-sending";

/** Only who looks at a preview needs what renders it. */
const NotePreview = lazy(() => import("./note-preview"));

interface NoteFormProps {
  meetingId: string;
  viewerId: string;
  targets: readonly Target[];
  /** Where the match says that a note goes; null where it does not. */
  matched: Target | null;
  onChange(): void;
}

/**
 * A text, a look at it, and where it goes: where the match says until a person says it. What was sent stays as it was
 * until it is known what became of it.
 */
export function NoteForm({ meetingId, viewerId, targets, matched, onChange }: NoteFormProps) {
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const { sending, ...sender } = useSending(`note:${viewerId}:${meetingId}`, meetingId, (settled) => {
    setOutcome(settled);
    if (settled?.is === "WRITTEN" && !settled.isMixed) setContent("");
    onChange();
  });
  const [content, setContent] = useState(sending?.note.content ?? "");
  const [chosen, choose] = useState<Target | null>(null);
  const [preview, showPreview] = useState(false);
  const target = chosen ? (targets.find(({ id }) => id === chosen.id) ?? null) : matched;
  const isEmpty = content.trim() === "";

  if (targets.length === 0 && !sending && isEmpty && !outcome) {
    return (
      <p className="muted">Nobody in this meeting is matched to the CRM, so there is nothing to write a note on.</p>
    );
  }
  const submit = () => {
    setOutcome(null);
    showPreview(false);
    if (sending) sender.sendAgain();
    else if (target) sender.send(target, content);
  };
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <Where targets={targets} target={sending?.note.target ?? target} isLocked={sending !== null} onChoose={choose} />
      {chosen && !target && !sending && (
        <Notice tone="warn" title={`“${chosen.name}” no longer belongs to this meeting`}>
          <p>Choose where to write. Nothing is written anywhere else by itself.</p>
        </Notice>
      )}
      {preview ? (
        <section className="preview" aria-label="Preview">
          <Suspense fallback={<p className="muted">Preparing the preview …</p>}>
            <NotePreview content={content} />
          </Suspense>
        </section>
      ) : (
        <Text content={content} isLocked={sending !== null} onChange={setContent} />
      )}
      {sending ? <Fate sending={sending} /> : outcome && <Settled outcome={outcome} />}
      <div className="row">
        <Submit sending={sending} target={sending?.note.target ?? target} isEmpty={isEmpty} />
        {sending?.fate === "NOT_RECEIVED" && <Button onClick={sender.edit}>Edit</Button>}
        {!sending && (
          <Button disabled={isEmpty} onClick={() => showPreview(!preview)}>
            {preview ? "Edit" : "Preview"}
          </Button>
        )}
      </div>
      <p className="small muted">The note shows the user who authorized the connection as its author.</p>
    </form>
  );
}

/** The button, and beside it where it writes. */
function Submit({ sending, target, isEmpty }: { sending: Sending | null; target: Target | null; isEmpty: boolean }) {
  const id = useId();
  const isWaiting = sending?.fate === "NOT_KNOWN";
  const label = { SENT: "Writing …", NOT_KNOWN: "Write to the CRM", NOT_RECEIVED: "Send again" };
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
      <span id={id} className="small" aria-live="polite">
        {target ? `On ${target.name}` : "Nothing is chosen yet to write it on"}
      </span>
    </>
  );
}

/** What is known of a note that was sent and not settled. */
function Fate({ sending: { fate, error } }: { sending: Sending }) {
  if (fate === "SENT") return null;
  if (error && isSignedOut(error)) return <Problem error={error} />;
  if (fate === "NOT_KNOWN") {
    return (
      <Notice tone="warn" title="We do not know yet whether the note was written">
        <p>It is being looked up, and nothing is sent meanwhile. The text stays as it was sent until that is known.</p>
      </Notice>
    );
  }
  return (
    <>
      <Notice tone="warn" title="The service has not taken the note">
        <p>Send it again, or edit it first. However often it arrives, one note is written.</p>
      </Notice>
      {error && <Problem error={error} />}
    </>
  );
}

function Settled({ outcome }: { outcome: Outcome }) {
  if (outcome.is === "REFUSED") return <Notice tone="bad" title={outcome.message} />;
  if (outcome.is === "FAILED")
    return (
      <Notice tone="bad" title="The note was not written">
        {outcome.message}
      </Notice>
    );
  if (!outcome.isMixed) return <Notice tone="ok" title="The note was written" />;
  return (
    <Notice tone="warn" title="One note was written, and it may be the text as it was before">
      <p>An earlier try has arrived after all. Look at the note in the CRM before you write more.</p>
    </Notice>
  );
}

interface WhereProps {
  targets: readonly Target[];
  target: Target | null;
  isLocked: boolean;
  onChoose(target: Target): void;
}

function Where({ targets, target, isLocked, onChoose }: WhereProps) {
  const id = useId();
  // A note that was sent is shown where it was sent to, also where the match says otherwise by now.
  const shown = target && !targets.some((other) => other.id === target.id) ? [target, ...targets] : targets;
  return (
    <div className="field">
      <label htmlFor={id}>Write on</label>
      <select
        id={id}
        className="input"
        value={target?.id ?? ""}
        disabled={isLocked}
        onChange={({ target: { value } }) => {
          const chosen = targets.find((other) => other.id === value);
          if (chosen) onChoose(chosen);
        }}
      >
        {!target && <option value="">Choose where to write …</option>}
        {shown.map(({ id: value, name }) => (
          <option key={value} value={value}>
            {name}
          </option>
        ))}
      </select>
    </div>
  );
}

function Text({ content, isLocked, onChange }: { content: string; isLocked: boolean; onChange(text: string): void }) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>Note</label>
      <textarea
        id={id}
        className="input note-text"
        rows={7}
        value={content}
        readOnly={isLocked}
        placeholder="What was said and agreed. Markdown works."
        onChange={({ target }) => onChange(target.value)}
      />
    </div>
  );
}
