import { useEffect, useRef, useState } from "react";
import { type CombinedError, useClient } from "urql";
import { type FieldReceiptFragment, type FieldValueInput, WriteFieldsDocument } from "../api/operations.generated";

/** SENT: the answer is awaited. LOST: it did not come, and the same is asked again. */
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

/**
 * Writes values of nominated fields. A lost answer is asked for again with the same key and the same values, which writes
 * nothing a second time and gives the same report.
 */
export function useFieldWriting(meetingId: string, onReport: (writes: readonly FieldReceiptFragment[]) => void) {
  const client = useClient();
  const [writing, setWriting] = useState<FieldWriting | null>(null);
  const isGone = useRef(false);
  const asked = useRef<{ values: FieldValueInput[]; idempotencyKey: string } | null>(null);
  useEffect(() => {
    isGone.current = false;
    return () => {
      isGone.current = true;
    };
  }, []);

  const ask = async () => {
    if (!asked.current) return;
    const input = { meetingId, ...asked.current };
    setWriting({ is: "SENT" });
    for (
      let tries = 1, wait = FIRST_PAUSE_MS;
      !isGone.current;
      tries += 1, wait = Math.min(wait * 2, LONGEST_PAUSE_MS)
    ) {
      const { data, error } = await client.mutation(WriteFieldsDocument, { input }).toPromise();
      if (data && "writes" in data.writeFields) {
        setWriting({ is: "DONE", writes: data.writeFields.writes });
        return onReport(data.writeFields.writes);
      }
      if (data && "message" in data.writeFields)
        return setWriting({ is: "REFUSED", message: data.writeFields.message });
      if (error && (error.graphQLErrors.length > 0 || tries === MOST_TRIES))
        return setWriting({ is: "STOPPED", error });
      setWriting({ is: "LOST", error });
      await new Promise((done) => setTimeout(done, wait));
    }
  };
  return {
    writing,
    isLocked: writing?.is === "SENT" || writing?.is === "LOST",
    send: (values: FieldValueInput[]) => {
      asked.current = { values, idempotencyKey: crypto.randomUUID() };
      return ask();
    },
    /** The same key and the same values. */
    again: ask,
  };
}
