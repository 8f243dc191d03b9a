import { useCallback, useEffect, useEffectEvent, useRef } from "react";
import { type CombinedError, useMutation } from "urql";
import { ConnectDocument, type RefusalCode } from "../api/operations.generated";
import { PageHead } from "../ui/page";
import { Button, Card, Notice } from "../ui/parts";
import { isSignedOut, isUnsent, Problem } from "../ui/problem";
import type { Redirect } from "./redirect";

interface ReturningPageProps {
  redirect: Redirect;
  onConnected(): void;
  /** It is said why not, and what can be done. */
  onRefused(): void;
  onGiveUp(): void;
}

/** Back from the CRM: hands its answer to the service, signed in as whoever started, and only then is anything connected. */
export function ReturningPage({ redirect, onConnected, onRefused, onGiveUp }: ReturningPageProps) {
  const [{ data, error }, connect] = useMutation(ConnectDocument);
  const sent = useRef(false);
  const tell = useEffectEvent(onRefused);
  /** Whoever asks again is told the same. */
  const send = useCallback(async () => {
    const answer = await connect({ input: redirect });
    if (answer.data && "connection" in answer.data.connect) onConnected();
  }, [connect, redirect, onConnected]);
  useEffect(() => {
    if (sent.current) return;
    sent.current = true;
    void send();
  }, [send]);

  const refusal = data && "message" in data.connect ? data.connect : null;
  const isTold = Boolean(refusal ?? error);
  useEffect(() => {
    if (isTold) tell();
  }, [isTold]);
  return (
    <div className="stack">
      <PageHead title="CRM connection" above={<span className="muted">Settings</span>} />
      <Card title={titleOf(refusal, error)}>
        {!refusal && !error && (
          <p role="status">The authorization is being checked. Nothing is stored before it holds.</p>
        )}
        {refusal && (
          <Notice tone={refusal.code === "AUTHORIZATION_DENIED_BY_USER" ? "info" : "bad"} title={refusal.message} />
        )}
        {error && <Problem error={error} again={send} stays />}
        {(refusal || error) && (
          <div>
            <Button look="main" onClick={onGiveUp}>
              Back to the CRM connection
            </Button>
          </div>
        )}
      </Card>
    </div>
  );
}

/** An error may be a lost answer: the service may have connected the CRM all the same. */
function titleOf(refusal: { code: RefusalCode } | null, error: CombinedError | undefined): string {
  if (refusal?.code === "ANOTHER_CRM_CONNECTED") return "Nothing was changed";
  if (refusal) return "The CRM was not connected";
  if (error && isSignedOut(error)) return "Sign in to complete the connection";
  return error && !isUnsent(error) ? "It is not known whether the CRM was connected" : "Completing the connection";
}
