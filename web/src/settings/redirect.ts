/** What the CRM sent the browser back with. */
export interface Redirect {
  code: string | null;
  state: string;
  error: string | null;
}

/** Where what the CRM answered is completed. */
export const RETURNED_TO = "/settings";

/**
 * Takes what the redirect address received out of the address bar, so that it is in no history, bookmark, Referer or
 * address to return to. null on any other page, and where nobody here began it: without a state, as an install in the
 * CRM's marketplace comes, a code may be anybody's. It is dropped, and the settings say how to connect.
 */
export function takeRedirect(location: Location, history: History): Redirect | null {
  const parameters = new URLSearchParams(location.search);
  const [code, state, error] = ["code", "state", "error"].map((name) => parameters.get(name));
  if (!code && !error) return null;
  history.replaceState(null, "", RETURNED_TO);
  return state ? { code: code ?? null, state, error: error ?? null } : null;
}
