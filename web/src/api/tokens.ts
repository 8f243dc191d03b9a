/** Nobody is signed in, or the session has ended. */
export class SignedOut extends Error {
  override readonly name = "SignedOut";

  constructor(readonly signInUrl: string | null) {
    super("You are not signed in.");
  }
}

interface TokenAnswer {
  token?: unknown;
  signInUrl?: unknown;
}

/**
 * The bearer token of whoever is signed in at the host product. It is asked for with the host's session cookie and
 * kept in memory only: never in storage, never in an address.
 */
export class Tokens {
  private current: Promise<string> | null = null;

  constructor(private readonly url: string) {}

  /** @throws SignedOut */
  get(): Promise<string> {
    if (!this.current) {
      const asked = this.ask();
      this.current = asked;
      asked.catch(() => {
        if (this.current === asked) this.current = null;
      });
    }
    return this.current;
  }

  /** The service did not accept the token: the next need asks for another. */
  forget(): void {
    this.current = null;
  }

  private async ask(): Promise<string> {
    const answer = await fetch(this.url, { method: "POST", credentials: "include", cache: "no-store" });
    const body = (await answer.json().catch(() => ({}))) as TokenAnswer;
    if (answer.ok && typeof body.token === "string") return body.token;
    if (answer.status === 401 || answer.status === 403) throw new SignedOut(webAddress(body.signInUrl));
    throw new Error(`The sign-in of the host product answered ${answer.status}.`);
  }
}

/** A link is shown only where it leads to the web: `javascript:` and its like are no sign-in pages. */
function webAddress(text: unknown): string | null {
  if (typeof text !== "string" || !URL.canParse(text)) return null;
  return ["https:", "http:"].includes(new URL(text).protocol) ? text : null;
}
