import { lazy, Suspense, useId, useState } from "react";
import { useMutation } from "urql";
import { WriteNoteDocument } from "../api/operations.generated";
import { Button, Notice } from "../ui/parts";
import { Problem } from "../ui/problem";

/** Only who looks at a preview needs what renders it. */
const NotePreview = lazy(() => import("./note-preview"));

export interface Target {
  id: string;
  name: string;
}

interface NoteFormProps {
  meetingId: string;
  targets: readonly Target[];
  onWritten(): void;
}

/** Text, a look at it, and one key for one intent: pressing again after a lost answer never writes a second note. */
export function NoteForm({ meetingId, targets, onWritten }: NoteFormProps) {
  const [content, setContent] = useState("");
  const [targetId, setTargetId] = useState(targets[0]?.id ?? "");
  const [preview, showPreview] = useState(false);
  const [key, setKey] = useState(() => crypto.randomUUID());
  const [{ fetching, data, error }, write] = useMutation(WriteNoteDocument);
  const refusal = data && "message" in data.writeNote ? data.writeNote.message : null;
  const empty = content.trim() === "";

  // Another text or another record is another intent.
  const renew = () => setKey(crypto.randomUUID());
  const edit = (text: string) => {
    setContent(text);
    renew();
  };
  const send = async () => {
    const { data: answer } = await write({ input: { meetingId, targetId, content, idempotencyKey: key } });
    if (!answer || !("write" in answer.writeNote)) return;
    const { state } = answer.writeNote.write;
    if (state === "WRITTEN") edit("");
    // Certainly not written: another try is another intent. UNKNOWN keeps the key, so that nothing is sent twice.
    if (state === "FAILED") renew();
    showPreview(false);
    onWritten();
  };
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault();
        if (!fetching) send();
      }}
    >
      <Where
        targets={targets}
        targetId={targetId}
        onChange={(id) => {
          setTargetId(id);
          renew();
        }}
      />
      {preview ? (
        <section className="preview" aria-label="Preview">
          <Suspense fallback={<p className="muted">Preparing the preview …</p>}>
            <NotePreview content={content} />
          </Suspense>
        </section>
      ) : (
        <Text content={content} onChange={edit} />
      )}
      {refusal && <Notice tone="bad" title={refusal} />}
      {error && <Problem error={error} />}
      <div className="row">
        <button type="submit" className="button button-main" aria-busy={fetching} disabled={empty}>
          {fetching ? "Writing …" : "Write to the CRM"}
        </button>
        <Button disabled={empty} onClick={() => showPreview(!preview)}>
          {preview ? "Edit" : "Preview"}
        </Button>
      </div>
      <p className="small muted">The note shows the user who authorized the connection as its author.</p>
    </form>
  );
}

interface WhereProps {
  targets: readonly Target[];
  targetId: string;
  onChange(id: string): void;
}

function Where({ targets, targetId, onChange }: WhereProps) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>Write on</label>
      <select id={id} className="input" value={targetId} onChange={({ target }) => onChange(target.value)}>
        {targets.map((target) => (
          <option key={target.id} value={target.id}>
            {target.name}
          </option>
        ))}
      </select>
    </div>
  );
}

function Text({ content, onChange }: { content: string; onChange(text: string): void }) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>Note</label>
      <textarea
        id={id}
        className="input note-text"
        rows={7}
        value={content}
        placeholder="What was said and agreed. Markdown works."
        onChange={({ target }) => onChange(target.value)}
      />
    </div>
  );
}
