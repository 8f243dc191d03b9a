import { useMutation } from "urql";
import { UnchooseDealDocument } from "../api/operations.generated";
import { announce } from "../ui/announcing";
import { Button, Notice } from "../ui/parts";
import { Problem } from "../ui/problem";

/** The way back from a choice: the rules decide again. */
export function TakeBack({ meetingId, onDone }: { meetingId: string; onDone(): void }) {
  const [{ fetching, data, error }, unchoose] = useMutation(UnchooseDealDocument);
  const refusal = data && "message" in data.unchooseDeal ? data.unchooseDeal.message : null;
  const takeBack = async () => {
    const { data: answer } = await unchoose({ meetingId });
    if (!answer || "message" in answer.unchooseDeal) return;
    announce("The choice was taken back.");
    onDone();
  };
  return (
    <div className="on-screen">
      <Button busy={fetching} onClick={takeBack}>
        Take the choice back
      </Button>
      {refusal && <Notice tone="bad" title={refusal} />}
      {error && <Problem error={error} />}
    </div>
  );
}
