import { useMutation } from "urql";
import { CancelMeetingDocument, DeleteMeetingDocument, type MeetingLineFragment } from "../api/operations.generated";
import { announce } from "../ui/announcing";
import { Confirm } from "../ui/confirm";
import { Button, Notice } from "../ui/parts";
import { Problem } from "../ui/problem";

export type Withdrawal = "cancel" | "delete";

const WORDS = {
  cancel: {
    question: "Cancel",
    button: "Cancel the meeting",
    busy: "Cancelling …",
    done: "is cancelled",
    means: [
      "It counts as no contact with the buyer, and its briefing shows no records that only this meeting gave.",
      "Nothing is sent to the attendees or to the CRM. The product brings it back by recording it again.",
    ],
  },
  delete: {
    question: "Delete",
    button: "Delete for good",
    busy: "Deleting …",
    done: "is deleted",
    means: [
      "The meeting, its attendees and its matches are erased here. This cannot be taken back.",
      "Notes that were written to the CRM stay there, and so do their receipts.",
    ],
  },
} as const;

interface WithdrawProps {
  what: Withdrawal;
  meeting: MeetingLineFragment;
  onClose(): void;
  onDone(): void;
}

/** Asks before a meeting is taken off the list, and says what that means. */
export function Withdraw({ what, meeting: { id, title }, onClose, onDone }: WithdrawProps) {
  const { question, button, busy, done, means } = WORDS[what];
  const [cancelling, cancel] = useMutation(CancelMeetingDocument);
  const [deleting, erase] = useMutation(DeleteMeetingDocument);
  const { fetching, error } = what === "cancel" ? cancelling : deleting;
  const answer = what === "cancel" ? cancelling.data?.cancelMeeting : deleting.data?.deleteMeeting;
  const refusal = answer && "message" in answer ? answer.message : null;
  const confirmed = async () => {
    const meetingId = { meetingId: id };
    const succeeded =
      what === "cancel"
        ? isDone((await cancel(meetingId)).data?.cancelMeeting)
        : isDone((await erase(meetingId)).data?.deleteMeeting);
    if (!succeeded) return;
    announce(`${title} ${done}`);
    onClose();
    onDone();
  };
  return (
    <Confirm title={`${question} “${title}”?`} busy={fetching} onClose={onClose}>
      <ul className="bullets">
        {means.map((sentence) => (
          <li key={sentence}>{sentence}</li>
        ))}
      </ul>
      {refusal && <Notice tone="bad" title={refusal} />}
      {error && <Problem error={error} />}
      <div className="row">
        <Button look="danger-main" busy={fetching} onClick={confirmed}>
          {fetching ? busy : button}
        </Button>
        <Button disabled={fetching} onClick={onClose}>
          Keep it
        </Button>
      </div>
    </Confirm>
  );
}

/** An answer that is not a refusal. */
const isDone = (answer: object | undefined): boolean => answer !== undefined && !("message" in answer);
