/** What the CRM sent the browser back with. */
export interface Redirect {
  code: string | null;
  state: string;
  error: string | null;
}

/**
 * Takes what the redirect address received out of the address bar, so that it is in no history, bookmark or
 * Referer. null on any other page.
 */
export function takeRedirect(location: Location, history: History): Redirect | null {
  const parameters = new URLSearchParams(location.search);
  const [code, state, error] = ["code", "state", "error"].map((name) => parameters.get(name));
  if (!state || !(code || error)) return null;
  history.replaceState(null, "", "/settings");
  return { code: code ?? null, state, error: error ?? null };
}
