import { Notice } from "../ui/parts";
import { isSignedOut, Problem } from "../ui/problem";
import { recordOf } from "./receipts";
import type { Outcome, Sending } from "./use-sending";

const TWICE = "Look for it in the CRM before you write it again: it may be there twice.";

/** What is known of a note that was sent and not settled. */
export function Fate({ sending: { fate, error, said } }: { sending: Sending }) {
  if (fate === "SENT") return null;
  if (error && isSignedOut(error)) return <Problem error={error} />;
  if (fate === "NOT_KNOWN") {
    return (
      <Notice tone="warn" title="We do not know yet whether the note was written">
        <p>{said ?? "It is being looked up."}</p>
        <p>Nothing is sent meanwhile, and the text stays as it was sent until that is known.</p>
      </Notice>
    );
  }
  if (fate === "STAYS_UNKNOWN") {
    return (
      <Notice tone="warn" title="We do not know whether the note was written, and may never know">
        <p>{said ?? "The service has no receipt of it."}</p>
        <p>{TWICE}</p>
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

/** @param author whom the CRM shows as the note's author; null where that is not known */
export function Settled({ outcome, author }: { outcome: Outcome; author: string | null }) {
  if (outcome.is === "REFUSED") return <Notice tone="bad" title={outcome.message} />;
  if (outcome.is === "GIVEN_BACK") {
    return (
      <Notice tone="warn" title="The note may have been written">
        <p>{TWICE}</p>
      </Notice>
    );
  }
  if (outcome.is === "FAILED") {
    return (
      <Notice tone="bad" title="The note was not written">
        {outcome.message}
      </Notice>
    );
  }
  const link = recordOf(outcome.receipt)?.crmUrl;
  return outcome.isMixed ? (
    <Notice tone="warn" title="One note was written, and it may be the text as it was before">
      <p>An earlier try has arrived after all. Look at the note in the CRM before you write more.</p>
      {link && <InTheCrm link={link} />}
    </Notice>
  ) : (
    <Notice tone="ok" title="The note was written">
      <p>
        <bdi>{outcome.note.target.name}</bdi>
        {author && (
          <>
            {", by "}
            <bdi>{author}</bdi> as the CRM shows it
          </>
        )}
        .
      </p>
      {link && <InTheCrm link={link} />}
    </Notice>
  );
}

const InTheCrm = ({ link }: { link: string }) => (
  <a href={link} target="_blank" rel="noreferrer">
    See it in the CRM
  </a>
);
