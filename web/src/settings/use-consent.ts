import { useState } from "react";
import { useMutation } from "urql";
import { StartConnectDocument } from "../api/operations.generated";

/** Who stops the browser on its way, or comes back by its button, finds the page as it was, and may leave again. */
const LEAVING_MS = 10_000;

/** Leaves for the CRM's consent page; the CRM sends the browser back to the redirect address. */
export function useConsent() {
  const [, start] = useMutation(StartConnectDocument);
  const [leaving, setLeaving] = useState(false);
  const [refusal, setRefusal] = useState<string | null>(null);
  const [error, setError] = useState<Error | null>(null);

  const leave = async () => {
    setLeaving(true);
    setRefusal(null);
    const { data, error: failed } = await start({});
    setError(failed ?? null);
    const answer = data?.startConnect;
    if (answer && "authorizationUrl" in answer) {
      window.location.assign(answer.authorizationUrl);
      setTimeout(() => setLeaving(false), LEAVING_MS);
      return;
    }
    if (answer) setRefusal(answer.message);
    setLeaving(false);
  };
  return { leave, leaving, refusal, error };
}
