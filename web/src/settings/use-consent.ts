import { useState } from "react";
import { useMutation } from "urql";
import { StartConnectDocument } from "../api/operations.generated";

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
    if (answer && "authorizationUrl" in answer) return window.location.assign(answer.authorizationUrl);
    if (answer) setRefusal(answer.message);
    setLeaving(false);
  };
  return { leave, leaving, refusal, error };
}
