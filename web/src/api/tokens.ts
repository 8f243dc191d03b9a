/** Nobody is signed in, or the session has ended. */
export class SignedOut extends Error {
  override readonly name = "SignedOut";

  constructor(readonly signInUrl: string | null) {
    super("You are not signed in.");
  }
}

/** The host product gives no token and does not say why. Nothing was asked of the service. */
export class NoToken extends Error {
  override readonly name = "NoToken";
}

/** Whether the page is loaded anew for somebody else: what one person has not saved holds it for no other. */
export const handover = { isUnderWay: false };

/** Everybody waits for the one that is asked for. */
const TOKEN_WITHIN_MS = 15_000;

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
  private holder: string | null = null;
  /** As the host product said last. */
  isSignedOut = false;

  /** @param onOther somebody else is signed in by now, or in another organization: what the page shows is not theirs */
  constructor(
    private readonly url: string,
    private readonly onOther: () => void,
  ) {}

  /** @throws SignedOut, NoToken */
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
    const signal = AbortSignal.timeout(TOKEN_WITHIN_MS);
    const asked = fetch(this.url, { method: "POST", credentials: "include", cache: "no-store", signal });
    const answer = await asked.catch((cause: unknown) => {
      throw new NoToken("The sign-in of the host product did not answer.", { cause });
    });
    const body = (await answer.json().catch(() => ({}))) as TokenAnswer;
    this.isSignedOut = answer.status === 401 || answer.status === 403;
    if (answer.ok && typeof body.token === "string") return this.ofTheSame(body.token, webAddress(body.signInUrl));
    if (this.isSignedOut) throw new SignedOut(webAddress(body.signInUrl));
    throw new NoToken(`The sign-in of the host product answered ${answer.status}.`);
  }

  /** Nothing that one person has begun is sent as another. */
  private ofTheSame(token: string, signInUrl: string | null): string {
    const holder = holderOf(token);
    this.holder ??= holder;
    if (holder === this.holder) return token;
    this.onOther();
    throw new SignedOut(signInUrl);
  }
}

/** Who a token says it is of, unproven; null where the page cannot read it. */
function holderOf(token: string): string | null {
  try {
    const [, payload = ""] = token.split(".");
    const { tenant, sub } = JSON.parse(atob(payload.replaceAll("-", "+").replaceAll("_", "/")));
    return JSON.stringify([tenant, sub]);
  } catch {
    return null;
  }
}

/** A link is shown only where it leads to the web: `javascript:` and its like are no sign-in pages. */
function webAddress(text: unknown): string | null {
  return typeof text === "string" && /^https?:/.test(schemeOf(text)) ? text : null;
}

/** Empty where it is no address. (`URL.canParse` is newer than browsers that the page is built for.) */
export function schemeOf(address: string): string {
  try {
    return new URL(address).protocol;
  } catch {
    return "";
  }
}
