import { useEffect, useRef, useState } from "react";
import { type CombinedError, useClient } from "urql";
import {
  type FieldReceiptFragment,
  type FieldValueInput,
  type MappingFragment,
  WriteFieldsDocument,
} from "../api/operations.generated";

/**
 * SENT: the answer is awaited. LOST: it did not come, and the same is asked again. STOPPED: a person says how to go on.
 * RENOMINATED: as STOPPED, but what was sent must not be sent again, because it would go into another field.
 */
export type FieldWriting =
  | { is: "SENT" }
  | { is: "LOST"; error?: CombinedError }
  | { is: "STOPPED"; error?: CombinedError }
  | { is: "RENOMINATED"; error?: CombinedError }
  | { is: "REFUSED"; message: string }
  | { is: "DONE"; writes: readonly FieldReceiptFragment[] };

const FIRST_PAUSE_MS = 2_000;
const LONGEST_PAUSE_MS = 10_000;
/** Five minutes. After that a person says whether to go on. */
const MOST_TRIES = 30;

type Mappings = readonly MappingFragment[];

interface Asked {
  values: FieldValueInput[];
  /** The field that each value was filled in for: the service takes the one that is nominated when the value arrives. */
  fieldKeys: readonly (string | undefined)[];
  idempotencyKey: string;
}

/** In these what was sent stays as it was. */
const LOCKED: ReadonlySet<FieldWriting["is"] | undefined> = new Set(["SENT", "LOST", "STOPPED", "RENOMINATED"]);

const keysOf = (values: readonly FieldValueInput[], mappings: Mappings) =>
  values.map(({ entity }) => mappings.find((mapping) => mapping.entity === entity)?.fieldKey);

const isForOthers = ({ values, fieldKeys }: Asked, mappings: Mappings): boolean =>
  keysOf(values, mappings).some((key, position) => key !== fieldKeys[position]);

/**
 * Writes values of nominated fields. A lost answer is asked for again with the same key and the same values, which writes
 * nothing a second time and gives the same report; but not once other fields are nominated than it was filled in for.
 */
export function useFieldWriting(
  meetingId: string,
  mappings: Mappings,
  onReport: (writes: readonly FieldReceiptFragment[], sent: readonly FieldValueInput[]) => void,
) {
  const client = useClient();
  const [writing, setWriting] = useState<FieldWriting | null>(null);
  const isGone = useRef(false);
  /** What has no report yet. It may still arrive, so its key goes with whatever is sent next. */
  const [asked, setAsked] = useState<Asked | null>(null);
  const nominated = useRef(mappings);
  useEffect(() => {
    nominated.current = mappings;
  }, [mappings]);
  useEffect(() => {
    isGone.current = false;
    return () => {
      isGone.current = true;
    };
  }, []);

  const ask = async (sent: Asked): Promise<void> => {
    const { values, idempotencyKey } = sent;
    setAsked(sent);
    setWriting({ is: "SENT" });
    for (
      let tries = 1, wait = FIRST_PAUSE_MS;
      !isGone.current;
      tries += 1, wait = Math.min(wait * 2, LONGEST_PAUSE_MS)
    ) {
      const input = { meetingId, values, idempotencyKey };
      const { data, error } = await client.mutation(WriteFieldsDocument, { input }).toPromise();
      if (data && "writes" in data.writeFields) {
        setAsked(null);
        setWriting({ is: "DONE", writes: data.writeFields.writes });
        return onReport(data.writeFields.writes, values);
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
      if (isForOthers(sent, nominated.current)) return setWriting({ is: "STOPPED", error });
    }
  };
  const isRenominated = asked !== null && isForOthers(asked, mappings);
  return {
    writing: writing?.is === "STOPPED" && isRenominated ? { ...writing, is: "RENOMINATED" as const } : writing,
    isLocked: LOCKED.has(writing?.is),
    send: (values: FieldValueInput[]) => {
      // With the first one's key, the same values for another field would be answered with the first one's report.
      const isTwin = isRenominated && JSON.stringify(values) === JSON.stringify(asked.values);
      const idempotencyKey = asked && !isTwin ? asked.idempotencyKey : crypto.randomUUID();
      return ask({ values, fieldKeys: keysOf(values, mappings), idempotencyKey });
    },
    /** The same key and the same values. */
    sendAgain: () => asked && ask(asked),
    /** Gives the values back. */
    edit: () => setWriting(null),
  };
}
