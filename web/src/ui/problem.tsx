import type { CombinedError } from "urql";
import { NOT_UNDERSTOOD } from "../api/client";
import { NoToken, SignedOut } from "../api/tokens";
import { Button, Notice } from "./parts";

interface ProblemProps {
  error: CombinedError | Error;
  /** Absent where the page tries by itself. */
  again?: () => void;
  /** What is to be done would be gone with this page: who signs in does so beside it, and tries again. */
  stays?: boolean;
}

/** Why something could not be read or done, and the way on. */
export function Problem({ error, again, stays = false }: ProblemProps) {
  const cause = causeOf(error);
  if (cause instanceof SignedOut) return <SignInAgain signInUrl={cause.signInUrl} again={stays ? again : undefined} />;
  if (cause instanceof NoToken) {
    return (
      <Notice tone="bad" title="Your sign-in cannot be checked">
        <p>Nothing was done: the product that you are signed in to does not answer.</p>
        {again && <Button onClick={again}>Try again</Button>}
      </Notice>
    );
  }
  const masked = "graphQLErrors" in error ? error.graphQLErrors[0]?.message : undefined;
  const isOfOthers = "response" in error && error.response?.status === NOT_UNDERSTOOD;
  return (
    <Notice tone="bad" title={masked ? "That did not work" : "The service cannot be reached"}>
      <p>{isOfOthers ? OF_TWO_VERSIONS : (masked ?? OUT_OF_DATE)}</p>
      {again && <Button onClick={again}>Try again</Button>}
    </Notice>
  );
}

const OUT_OF_DATE = "What you see may be out of date, and what was asked for may or may not be done.";
const OF_TWO_VERSIONS =
  "Nothing was done: the page and the service are of two versions. Try again in a minute, or load the page again.";

const causeOf = (error: CombinedError | Error): Error =>
  "networkError" in error ? (error.networkError ?? error) : error;

/** The way on is to sign in, whatever was asked for. */
export const isSignedOut = (error: CombinedError | Error): boolean => causeOf(error) instanceof SignedOut;

/** For want of a token nothing was asked of the service. */
export const isUnsent = (error: CombinedError | Error): boolean =>
  isSignedOut(error) || causeOf(error) instanceof NoToken;

/**
 * The host product may bring the person back: it is told the page's own path, and nothing of another origin.
 * @param signInUrl as the host product gave it
 */
function withReturn(signInUrl: string, { pathname, search }: Pick<Location, "pathname" | "search">): string {
  const url = new URL(signInUrl);
  url.searchParams.set("return_to", `${pathname}${search}`);
  return url.href;
}

/** @param again present: this page is to stay */
function SignInAgain({ signInUrl, again }: { signInUrl: string | null; again: (() => void) | undefined }) {
  const beside = again && ({ target: "_blank", rel: "noopener" } as const);
  return (
    <Notice tone="warn" title="You are not signed in">
      <p>Your session has ended or has not begun.</p>
      {signInUrl ? (
        <a className="button button-main" href={withReturn(signInUrl, window.location)} {...beside}>
          Sign in
        </a>
      ) : (
        <p>Sign in to the product and come back to this page.</p>
      )}
      {again && <Button onClick={again}>Try again</Button>}
    </Notice>
  );
}
