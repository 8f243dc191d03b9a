import { createLocalJWKSet, errors, importJWK, type JSONWebKeySet, type JWK, type JWTVerifyGetKey } from "jose";
import { Agent, request } from "undici";
import { z } from "zod";
import { type Clock, HOUR_MS, MINUTE_MS, SECOND_MS } from "../platform/clock";
import { messageOf, ServiceError } from "../platform/errors";
import type { Logger } from "../platform/logger";

/** The algorithms of identity providers; a set of public keys never proves a shared secret, so no HS here. */
export const PUBLIC_KEY_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];

/** The address is asked once in so long at most, whatever comes; a key that is withdrawn counts for as long. */
export const FETCH_EVERY_MS = MINUTE_MS;
/** While the address gives no usable answer, the last known keys count for so long: a night's outage signs nobody out. */
export const LAST_KNOWN_MS = 12 * HOUR_MS;
/** An outage that was seen so lately is one still: nobody waits to see it again. */
const SAME_OUTAGE_MS = 2 * FETCH_EVERY_MS;
/** From the first byte sent to the last byte read; callers wait for it. */
const FETCH_TIMEOUT_MS = 3 * SECOND_MS;
/** A set has a few keys of some kilobytes, their certificates included. */
const MAX_SET_BYTES = 256 * 1024;

/** Characters of an RSA key's modulus in base64url: 2048 bits. No token is proven by a shorter key. */
const MIN_MODULUS_CHARACTERS = 342;

/** The algorithm of a key of this kind that does not name one itself. */
const ALGORITHM_OF = new Map([
  ["RSA", "RS256"],
  ["P-256", "ES256"],
  ["P-384", "ES384"],
  ["Ed25519", "EdDSA"],
]);

/** The address of the keys gave no answer that could be used; the message says which. */
export class KeysUnreadableError extends ServiceError {
  readonly code = "KEYS_UNREADABLE";
}

/** Whether a token is valid cannot be known now, because its keys cannot be fetched. It is not refused: try again. */
export class KeysUnavailableError extends ServiceError {
  readonly code = "KEYS_UNAVAILABLE";

  constructor(readonly retryAfterSeconds: number) {
    super(
      `Whether the bearer token is valid cannot be checked now: the identity provider does not answer. Keep the token and try again in ${retryAfterSeconds} seconds.`,
    );
  }
}

/**
 * The keys of the identity provider (decision 0054). They are fetched when a token is to be proven, or now and again where none
 * comes, and the last fetch began a minute ago; all who come meanwhile wait for the same one.
 */
export class KeySet {
  #known: { find: JWTVerifyGetKey; askedAt: number } | null = null;
  /** When the last fetch began, whatever came of it. */
  #askedAt = Number.NEGATIVE_INFINITY;
  /** When it began, where the last fetch that has ended came to nothing. */
  #failedAt: number | null = null;
  #fetching: Promise<void> | null = null;

  constructor(
    private readonly url: URL,
    private readonly clock: Clock,
    private readonly logger: Logger,
  ) {}

  /** @throws KeysUnreadableError where they were never fetched: nobody could be let in */
  require(): void {
    if (!this.#known) throw new KeysUnreadableError("The keys of callers were not fetched yet.");
  }

  /** Up to when a token that these keys have just proven may be believed: until they are looked at again. */
  provenUntil(): number {
    return this.#fetching ? Number.NEGATIVE_INFINITY : this.#askedAt + FETCH_EVERY_MS;
  }

  /**
   * For jose: the key that a token names.
   * @throws KeysUnavailableError where that cannot be known now; JWKSNoMatchingKey where there is none
   */
  readonly keyOf: JWTVerifyGetKey = async (header, token) => {
    const outage = this.#inOutage();
    const fetching = this.fetchIfDue();
    const known = outage ? await this.#find(header, token) : null;
    if (known) return known;
    await fetching;
    const key = await this.#find(header, token);
    if (key) return key;
    if (this.#failedAt === null) throw new errors.JWKSNoMatchingKey();
    throw new KeysUnavailableError(this.#secondsToNextFetch());
  };

  #inOutage(): boolean {
    return this.#failedAt !== null && this.clock().getTime() - this.#failedAt < SAME_OUTAGE_MS;
  }

  /** @returns ends with the fetch that is under way, whatever comes of it */
  fetchIfDue(): Promise<void> | null {
    const now = this.clock().getTime();
    // A clock that was set back must not keep old keys for as long.
    if (!this.#fetching && Math.abs(now - this.#askedAt) >= FETCH_EVERY_MS) {
      this.#fetching = this.#fetch(now).finally(() => {
        this.#fetching = null;
      });
    }
    return this.#fetching;
  }

  async #fetch(askedAt: number): Promise<void> {
    this.#askedAt = askedAt;
    try {
      const { keys } = await fetchKeys(this.url);
      this.#known = { find: createLocalJWKSet({ keys }), askedAt };
      this.#failedAt = null;
    } catch (error) {
      this.#failedAt = askedAt;
      const until = this.#known && new Date(this.#known.askedAt + LAST_KNOWN_MS);
      if (until && until > this.clock())
        this.logger.warn({ err: error, until }, "the keys of callers could not be fetched: the last known ones count");
      else this.logger.error({ err: error }, "the keys of callers could not be fetched: none is known, nobody gets in");
    }
  }

  /** @returns null where there are no keys, or none that fits */
  async #find(...of: Parameters<JWTVerifyGetKey>): Promise<Awaited<ReturnType<JWTVerifyGetKey>> | null> {
    if (!this.#known || this.clock().getTime() - this.#known.askedAt >= LAST_KNOWN_MS) return null;
    try {
      return await this.#known.find(...of);
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey) return null;
      throw error;
    }
  }

  #secondsToNextFetch(): number {
    const wait = this.#askedAt + FETCH_EVERY_MS - this.clock().getTime();
    return Math.max(1, Math.ceil(wait / SECOND_MS));
  }
}

const jwkSet = z.object({ keys: z.array(z.unknown()) });
/** Serializers of some providers write null for what a key does not have. */
const withoutNulls = (members: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null));
const publicKey = z
  .record(z.string(), z.unknown())
  .transform(withoutNulls)
  .pipe(
    z.looseObject({
      kty: z.enum(["RSA", "EC", "OKP"]),
      n: z.string().min(MIN_MODULUS_CHARACTERS).optional(),
      crv: z.string().optional(),
      alg: z.string().optional(),
      use: z.literal("sig").optional(),
      key_ops: z
        .array(z.string())
        .refine((operations) => operations.includes("verify"))
        .optional(),
      d: z.undefined().optional(),
    }),
  );

/**
 * One request, no redirect. Keys that are not for proving signatures, of a shared secret or of no known kind are left
 * out. A set without one that can be used is no answer: who withdraws all keys puts others in their place.
 * @returns also how many were left out
 * @throws KeysUnreadableError
 */
export async function fetchKeys(url: URL): Promise<JSONWebKeySet & { ignored: number }> {
  const all = jwkSet.safeParse(await readJson(url));
  if (!all.success) throw new KeysUnreadableError("The answer is no JWK set.");
  const usable = await Promise.all(all.data.keys.map(usableKey));
  const keys = usable.filter((key) => key !== null);
  if (keys.length === 0) throw new KeysUnreadableError("The JWK set has no key that tokens could be proven with.");
  return { keys, ignored: all.data.keys.length - keys.length };
}

async function usableKey(candidate: unknown): Promise<JWK | null> {
  const { data: key } = publicKey.safeParse(candidate);
  const algorithm = key?.alg ?? ALGORITHM_OF.get(key?.crv ?? key?.kty ?? "");
  if (!key || !algorithm || !PUBLIC_KEY_ALGORITHMS.includes(algorithm)) return null;
  return importJWK(key, algorithm).then(
    () => key,
    () => null,
  );
}

async function readJson(url: URL): Promise<unknown> {
  // A socket for each: at one request a minute there is nothing to keep open.
  const dispatcher = new Agent({ maxResponseSize: MAX_SET_BYTES, pipelining: 0 });
  try {
    const signal = AbortSignal.timeout(FETCH_TIMEOUT_MS);
    const answer = await request(url, { dispatcher, signal, headers: { accept: "application/json" } });
    const text = await answer.body.text();
    if (answer.statusCode !== 200) throw new KeysUnreadableError(`The answer has the status ${answer.statusCode}.`);
    return JSON.parse(text);
  } catch (cause) {
    if (cause instanceof KeysUnreadableError) throw cause;
    throw new KeysUnreadableError(`No usable answer came: ${messageOf(cause)}`, { cause });
  } finally {
    await dispatcher.destroy();
  }
}
