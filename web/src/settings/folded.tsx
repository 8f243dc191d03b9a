import { type ReactNode, Suspense, useState } from "react";
import { Part } from "../ui/part";
import { Button, Card, Loading } from "../ui/parts";

/** The API's longest page: who needs more looks there. */
const STEPS = [10, 30, 100] as const;

interface FoldedProps {
  title: string;
  about: string;
  /** Read when it is opened, and so many entries of it. */
  children(first: number, more: (hasMore: boolean) => ReactNode): ReactNode;
}

/** A list that few look at: it is read when somebody does, and may come as a script of its own. */
export function Folded({ title, about, children }: FoldedProps) {
  const [isOpen, setOpen] = useState(false);
  const [step, setStep] = useState(0);
  const more = (hasMore: boolean) => (
    <div>
      {hasMore && step < STEPS.length - 1 && <Button onClick={() => setStep(step + 1)}>Show more</Button>}
      {hasMore && step === STEPS.length - 1 && <p className="small muted">Older ones are in the API.</p>}
    </div>
  );
  return (
    <Card title={title}>
      <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
        <summary>{about}</summary>
        {isOpen && (
          <div className="stack folded">
            <Part>
              <Suspense fallback={<Loading what="The list" />}>{children(STEPS[step] ?? STEPS[0], more)}</Suspense>
            </Part>
          </div>
        )}
      </details>
    </Card>
  );
}
