import { useEffect, useRef, useState } from "react";
import { type CombinedError, useClient } from "urql";
import { type FieldReceiptFragment, type FieldValueInput, WriteFieldsDocument } from "../api/operations.generated";

/** SENT: the answer is awaited. LOST: it did not come, and the same is asked again. STOPPED: a person says how to go on. */
export type FieldWriting =
  | { is: "SENT" }
  | { is: "LOST"; error?: CombinedError }
  | { is: "STOPPED"; error: CombinedError }
  | { is: "REFUSED"; message: string }
  | { is: "DONE"; writes: readonly FieldReceiptFragment[] };

const FIRST_PAUSE_MS = 2_000;
const LONGEST_PAUSE_MS = 10_000;
/** Five minutes. After that a person says whether to go on. */
const MOST_TRIES = 30;

interface Asked {
  values: FieldValueInput[];
  idempotencyKey: string;
}

/** In these what was sent stays as it was. */
const LOCKED: ReadonlySet<FieldWriting["is"] | undefined> = new Set(["SENT", "LOST", "STOPPED"]);

/**
 * Writes values of nominated fields. A lost answer is asked for again with the same key and the same values, which writes
 * nothing a second time and gives the same report.
 */
export function useFieldWriting(meetingId: string, onReport: (writes: readonly FieldReceiptFragment[]) => void) {
  const client = useClient();
  const [writing, setWriting] = useState<FieldWriting | null>(null);
  const isGone = useRef(false);
  /** What has no report yet. It may still arrive, so its key goes with whatever is sent next. */
  const asked = useRef<Asked | null>(null);
  useEffect(() => {
    isGone.current = false;
    return () => {
      isGone.current = true;
    };
  }, []);

  const ask = async (sent: Asked): Promise<void> => {
    asked.current = sent;
    setWriting({ is: "SENT" });
    for (
      let tries = 1, wait = FIRST_PAUSE_MS;
      !isGone.current;
      tries += 1, wait = Math.min(wait * 2, LONGEST_PAUSE_MS)
    ) {
      const { data, error } = await client.mutation(WriteFieldsDocument, { input: { meetingId, ...sent } }).toPromise();
      if (data && "writes" in data.writeFields) {
        asked.current = null;
        setWriting({ is: "DONE", writes: data.writeFields.writes });
        return onReport(data.writeFields.writes);
      }
      if (data && "message" in data.writeFields) {
        // What was sent before the edit has arrived after all: this is written after it, as another.
        if (data.writeFields.code === "IDEMPOTENCY_KEY_REUSED")
          return ask({ ...sent, idempotencyKey: crypto.randomUUID() });
        return setWriting({ is: "REFUSED", message: data.writeFields.message });
      }
      if (error && (error.graphQLErrors.length > 0 || tries === MOST_TRIES))
        return setWriting({ is: "STOPPED", error });
      setWriting({ is: "LOST", error });
      await new Promise((done) => setTimeout(done, wait));
    }
  };
  return {
    writing,
    isLocked: LOCKED.has(writing?.is),
    send: (values: FieldValueInput[]) =>
      ask({ values, idempotencyKey: asked.current?.idempotencyKey ?? crypto.randomUUID() }),
    /** The same key and the same values. */
    sendAgain: () => asked.current && ask(asked.current),
    /** Gives the values back. */
    edit: () => setWriting(null),
  };
}
