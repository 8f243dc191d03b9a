import { useEffect, useEffectEvent, useRef, useState } from "react";
import { type CombinedError, useClient } from "urql";
import {
  NoteByKeyDocument,
  type ReceiptFragment,
  WriteNoteDocument,
  type WriteNoteMutation,
} from "../api/operations.generated";
import type { Draft } from "./drafts";
import {
  dropNote,
  dropWritten,
  isMixedElsewhere,
  keepHere,
  keepNote,
  keptNote,
  noteElsewhere,
  onNoteElsewhere,
  over,
  type SentNote,
} from "./kept-notes";
import type { Target } from "./targets";

/**
 * SENT: the answer is awaited. NOT_KNOWN: it was lost. NOT_RECEIVED: the service has no such write, as it says now.
 * STAYS_UNKNOWN: as NOT_KNOWN, and it will hardly become known by itself.
 */
export interface Sending {
  note: SentNote;
  fate: "SENT" | "NOT_KNOWN" | "NOT_RECEIVED" | "STAYS_UNKNOWN";
  /** A request with this key was sent whose answer never came. */
  isLost: boolean;
  /** What came in place of an answer. */
  error?: CombinedError;
  /** What the service's receipt says of it. */
  said?: string;
}

/** What became of a note; `isMixed`: of this text, or of one before it. */
export type Outcome =
  | { is: "WRITTEN"; isMixed: boolean; note: SentNote; receipt: ReceiptFragment }
  | { is: "FAILED"; message: string }
  | { is: "REFUSED"; message: string; code: string }
  /** A person does not wait any longer: it may have been written. */
  | { is: "GIVEN_BACK" };

/** So the service also says that a database that was restored has lost its receipt: under this key alone the note is found. */
const RECEIPT_GONE = "NOT_CONNECTED";
/** Longer than the CRM usually takes; a slower answer is looked up like one that was lost, which does no harm. */
const ANSWER_WITHIN_MS = 20_000;
/** Between a loss and the first look: what is on its way to the service may still arrive. Later ones are further apart. */
const FIRST_LOOK_MS = 2_000;
const LONGEST_PAUSE_MS = 10_000;
/** So long the service looks for a note. */
const LOOKED_FOR_MS = 86_400_000;
/** What can be found out of a note on a record that cannot be read here any more is known by then. */
const OUT_OF_SIGHT_MS = 600_000;

/**
 * Sends a note so that a lost answer never makes a second one: the same key until it is settled, and in between nothing
 * but looks by that key. It survives a reload, and its tab: another one with the same text takes it for its own.
 * @param slot whose note, and of which meeting
 * @param shown what stands in the form
 * @param onChange told of an outcome and where it was to go, and with null of a receipt that is not settled yet
 */
export function useSending(
  slot: string,
  meetingId: string,
  shown: Draft,
  onChange: (outcome: Outcome | null, target: Target) => void,
) {
  const client = useClient();
  const [begun] = useState(() => begunBefore(slot, shown));
  const [sending, setSending] = useState(() => (begun && !begun.isOver ? unanswered(begun) : null));
  /** A key under which something was sent and perhaps taken: the next text is sent with it as well. */
  const [openKey, setOpenKey] = useState(() => (begun?.isOver ? begun.key : null));
  /** Known at once, not with the next rendering: two clicks may come before it. */
  const isPosting = useRef(false);

  const take = ({ next, outcome }: Step, { note, isLost }: Sending) => {
    setSending(next);
    if (outcome) {
      const isOpen = outcome.is === "REFUSED" && (isLost || note.isMixed || outcome.code === RECEIPT_GONE);
      setOpenKey(isOpen ? note.key : null);
      if (outcome.is === "WRITTEN") dropWritten(slot, outcome.note);
      else if (!isOpen) dropNote(slot, note.key);
      else if (keptNote(slot)?.key === note.key) keepNote(slot, over(note));
      // What ended here may have been sent again in another tab meanwhile, with a new key.
      const other = outcome.is === "WRITTEN" ? null : noteElsewhere(slot, shown);
      if (other && !other.isOver && other.key !== note.key) {
        adopt(other);
        return onChange(null, other.target);
      }
    }
    onChange(outcome, note.target);
  };
  const post = async (note: SentNote, isLost: boolean) => {
    if (isPosting.current) return;
    isPosting.current = true;
    const sent: Sending = { note, fate: "SENT", isLost };
    keepNote(slot, note);
    setSending(sent);
    const input = { meetingId, targetId: note.target.id, content: note.content, idempotencyKey: note.key };
    const answered = client.mutation(WriteNoteDocument, { input }).toPromise();
    const answer = await Promise.race([answered, pause(ANSWER_WITHIN_MS)]);
    isPosting.current = false;
    // Another tab may have edited it meanwhile.
    const kept = keptNote(slot);
    const told = kept?.key === note.key && kept.isMixed ? { ...sent, note: kept } : sent;
    take(answer?.data ? afterAnswer(answer.data, told, Date.now()) : lost(told, answer?.error), told);
  };
  const lookedUp = sending && sending.fate !== "SENT" ? sending.note.key : null;
  useLooks(lookedUp, (found) => sending && take(afterLook(found, sending, Date.now()), sending));
  const adopt = (note: SentNote) => {
    keepHere(slot, note);
    setSending(unanswered(note));
  };
  useNotesElsewhere(slot, (other) => {
    if (!sending && !other.isOver && other.content === shown.text) adopt(other);
    // Its text was given back there: another one may be written with this key.
    if (sending?.note.key !== other.key || !(other.isOver || other.isMixed)) return;
    const note = { ...sending.note, isMixed: true };
    keepHere(slot, note);
    setSending({ ...sending, note });
  });

  const absent = sending?.fate === "NOT_RECEIVED" ? sending : null;
  return {
    sending,
    send: (target: Target) => {
      // The page may have slept while another tab sent it, and was told of nothing.
      const other = isPosting.current ? null : noteElsewhere(slot, shown);
      if (other && !other.isOver) return adopt(other);
      const open = openKey ?? other?.key;
      const { before } = [other, keptNote(slot)].find((one) => one?.key === open) ?? {};
      const key = open ?? crypto.randomUUID();
      return post({ key, target, content: shown.text, at: Date.now(), isMixed: open !== undefined, before }, false);
    },
    /** The same key and the same input: safe however often it arrives. */
    sendAgain: () => absent && post(absent.note, true),
    /** Gives the text back. What was sent may still arrive, so its key goes with whatever is sent next. */
    edit: () => {
      if (!absent) return;
      keepNote(slot, over(absent.note));
      setOpenKey(absent.note.key);
      setSending(null);
    },
    /** Gives the text back where that is not known: sent again it is another note, beside the first. */
    giveBack: () => {
      if (sending?.fate === "STAYS_UNKNOWN") take(ends({ is: "GIVEN_BACK" }), sending);
    },
  };
}

function useNotesElsewhere(slot: string, onNote: (note: SentNote) => void): void {
  const tell = useEffectEvent(onNote);
  useEffect(() => onNoteElsewhere(slot, (note) => tell(note)), [slot]);
}

/** Looks what the service has of a key until there is nothing more to look for. */
function useLooks(key: string | null, onLook: (found: ReceiptFragment | undefined) => void): void {
  const client = useClient();
  const tell = useEffectEvent(onLook);
  useEffect(() => {
    if (key === null) return;
    let isOver = false;
    const look = async () => {
      for (let wait = FIRST_LOOK_MS; ; wait = Math.min(wait * 2, LONGEST_PAUSE_MS)) {
        await pause(wait);
        if (isOver) return;
        const { data, error } = await client
          .query(NoteByKeyDocument, { key }, { requestPolicy: "network-only" })
          .toPromise();
        if (isOver) return;
        // Of an answer in part it is not known whether its record is out of sight.
        if (data && !error) tell(data.crmWrites.nodes.find((write) => write.__typename === "NoteWrite"));
      }
    };
    look();
    return () => {
      isOver = true;
    };
  }, [client, key]);
}

/** What comes after an answer, a loss or a look: still a sending, or its outcome. */
type Step = { next: Sending; outcome: null } | { next: null; outcome: Outcome };

const goesOn = (next: Sending): Step => ({ next, outcome: null });
const ends = (outcome: Outcome): Step => ({ next: null, outcome });

const lost = (sent: Sending, error?: CombinedError): Step =>
  goesOn({ ...sent, fate: "NOT_KNOWN", isLost: true, error });

function afterAnswer({ writeNote }: WriteNoteMutation, sent: Sending, now: number): Step {
  // The service compares the input with that of the key: it is this text that was taken.
  if ("write" in writeNote)
    return afterWrite(writeNote.write, { ...sent, note: { ...sent.note, isMixed: false } }, now);
  if (writeNote.code !== "IDEMPOTENCY_KEY_REUSED") return ends({ ...writeNote, is: "REFUSED" });
  // What was sent with this key before has arrived after all. It is looked up, and this text was not written.
  return goesOn({ note: { ...sent.note, isMixed: true }, fate: "NOT_KNOWN", isLost: true });
}

function afterLook(found: ReceiptFragment | undefined, sending: Sending, now: number): Step {
  if (found) return afterWrite(found, sending, now);
  // Its receipt may be gone by now: then its key would write it a second time.
  if (now - sending.note.at > LOOKED_FOR_MS)
    return goesOn({ ...sending, fate: "STAYS_UNKNOWN", error: undefined, said: undefined });
  // What the service itself answered still tells why; that it could not be asked is over.
  const error = sending.error?.graphQLErrors.length ? sending.error : undefined;
  return goesOn({ ...sending, fate: "NOT_RECEIVED", error });
}

function afterWrite(receipt: ReceiptFragment, sending: Sending, now: number): Step {
  const { state, error } = receipt;
  const { note } = sending;
  if (state === "WRITTEN") return ends({ is: "WRITTEN", isMixed: note.isMixed, note, receipt });
  if (state === "FAILED") return ends({ is: "FAILED", message: error?.message ?? "" });
  const fate = staysUnknown(receipt, now) ? "STAYS_UNKNOWN" : "NOT_KNOWN";
  return goesOn({ ...sending, fate, error: undefined, said: error?.message });
}

const staysUnknown = ({ requestedAt, target }: ReceiptFragment, now: number): boolean =>
  now - Date.parse(requestedAt) > (target ? LOOKED_FOR_MS : OUT_OF_SIGHT_MS);

const pause = (ms: number): Promise<null> => new Promise((done) => setTimeout(done, ms, null));

const unanswered = (note: SentNote): Sending => ({ note, fate: "NOT_KNOWN", isLost: true });

/** What this tab has sent and not settled; else what any other has, of what is shown. */
function begunBefore(slot: string, shown: Draft): SentNote | null {
  const own = keptNote(slot);
  if (own && !own.isOver) return { ...own, isMixed: own.isMixed || isMixedElsewhere(slot, own) };
  const other = noteElsewhere(slot, shown);
  if (other) keepHere(slot, other);
  return other ?? own;
}
