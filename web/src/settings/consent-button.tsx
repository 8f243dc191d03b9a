import { useId } from "react";
import { Button, Notice } from "../ui/parts";
import { Problem } from "../ui/problem";
import { useConsent } from "./use-consent";
import type { Viewer } from "./use-settings";
import { refusalInWords } from "./wording";

/** The one way to the CRM's consent page. Who may not go there sees the button, closed, and why. */
export function ConsentButton({ viewer, children }: { viewer: Viewer; children: string }) {
  const { leave, leaving, refusal, error } = useConsent();
  const explanation = useId();
  const closed = refusalInWords(viewer.connectRefusal);
  return (
    <>
      <Button look="main" busy={leaving} disabled={closed !== null} aria-describedby={explanation} onClick={leave}>
        {leaving ? "Opening the CRM …" : children}
      </Button>
      <p id={explanation} className="small muted">
        {closed ?? "You go to the CRM's consent page and come back here."}
      </p>
      {refusal && <Notice tone="bad" title={refusal} />}
      {error && <Problem error={error} />}
    </>
  );
}
