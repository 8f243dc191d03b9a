import { hash } from "node:crypto";
import { errors, type JWTVerifyGetKey, type JWTVerifyOptions, type JWTVerifyResult, jwtVerify } from "jose";
import { LRUCache } from "lru-cache";
import { z } from "zod";
import { type Clock, DAY_MS, MINUTE_MS, SECOND_MS, systemClock } from "../platform/clock";
import type { AuthConfig } from "../platform/config";
import { ServiceError } from "../platform/errors";
import type { Logger } from "../platform/logger";
import { KeySet, KeysUnavailableError, PUBLIC_KEY_ALGORITHMS } from "./key-set";

const ACTOR_ROLES = ["owner", "admin", "member"] as const;
export type ActorRole = (typeof ACTOR_ROLES)[number];

/** Who calls. Everything in it was proven by the bearer token. */
export interface Actor {
  readonly userId: string;
  /** The tenant's name at the identity provider. */
  readonly tenant: string;
  /** By which the tenant's rows are kept. */
  readonly tenantId: number;
  readonly role: ActorRole;
  readonly plan: string;
  readonly email: string | null;
  readonly name: string | null;
  readonly expiresAt: Date;
}

/** Policies judge an actor by these alone. */
export type RoleAndPlan = Pick<Actor, "role" | "plan">;

/** An answer that goes to several actors at once may depend on this part of them alone; it is equal for all of them. */
export type Viewer = RoleAndPlan & Pick<Actor, "tenant" | "tenantId">;

/** Holds nothing but the viewer: a resolver that reads more of its actor fails, and shows nobody another's answer. */
export function viewerOf({ tenant, tenantId, role, plan }: Actor): Viewer {
  return new Proxy<Viewer>({ tenant, tenantId, role, plan }, { get: readViewer });
}

function readViewer(viewer: Viewer, name: string | symbol): unknown {
  if (Object.hasOwn(viewer, name)) return Reflect.get(viewer, name);
  throw new Error(`${String(name)} was read of an actor whose answer is shared with others`);
}

/** The bearer token does not prove an actor. The message may be shown; it never repeats the token. */
export class UnauthenticatedError extends ServiceError {
  readonly code = "UNAUTHENTICATED";
}

const CLOCK_TOLERANCE_SECONDS = 5;
const TOLERANCE_MS = CLOCK_TOLERANCE_SECONDS * SECOND_MS;
const SHARED_SECRET_ALGORITHMS = ["HS256"];
/** A token that ends later than this is refused: it could not be taken back but with the key of all others. */
const LONGEST_LIFE_MS = DAY_MS;

/** PostgreSQL would refuse a NUL, take every half surrogate pair for one character, and index no longer text. */
const id = z.string().regex(/^[^\0\p{Surrogate}]{1,255}$/u);

/** The caller as the token names it; the token does not have the id under which we keep the tenant. */
type Proven = Omit<Actor, "tenantId">;

const claims = z
  .object({
    sub: id,
    tenant: id,
    role: z.enum(ACTOR_ROLES),
    plan: z.string(),
    email: z.string().nullish(),
    name: z.string().nullish(),
    exp: z.number(),
  })
  .transform(
    (claim): Proven => ({
      userId: claim.sub,
      tenant: claim.tenant,
      role: claim.role,
      plan: claim.plan,
      email: claim.email ?? null,
      name: claim.name ?? null,
      expiresAt: new Date(claim.exp * 1000),
    }),
  );

/** @throws UnauthenticatedError; KeysUnavailableError where it cannot be known now whether the token is valid */
export type ActorVerifier = (token: string) => Promise<Actor>;

export interface Callers {
  verify: ActorVerifier;
  /** For each minute: known keys count from here, and not from the last caller, who may have come hours before an outage. */
  keepKeys(): Promise<void>;
  /** @throws KeysUnreadableError in a process that has never had them */
  requireKeys(): void;
}

/**
 * For so long a token that was proven is believed without being proven again (decision 0054): a page sends the same one
 * with each request. Never beyond the minute after which the public keys are fetched again.
 */
const BELIEVED_MS = MINUTE_MS;
const MOST_BELIEVED = 10_000;

/**
 * Proves bearer tokens: HS256 with the configured secret, or public keys from the configured JWKS address.
 * @param tenantIdOf the id of the tenant that a proven token names
 */
export function createCallers(
  config: AuthConfig,
  tenantIdOf: (tenant: string) => Promise<number>,
  logger: Logger,
  clock: Clock = systemClock,
): Callers {
  const proof = proofOf(config.proof, logger, clock);
  const believed = new LRUCache<string, { actor: Actor; from: number; until: number }>({ max: MOST_BELIEVED });
  // A database that has taken over may have given it another.
  const isStill = async ({ tenant, tenantId }: Actor) => (await tenantIdOf(tenant)) === tenantId;
  const verify: ActorVerifier = async (token) => {
    // The whole token, signature and all; as a digest, so that no copy of it lies in memory.
    const key = hash("sha256", token, "base64");
    const now = clock().getTime();
    const known = believed.get(key);
    // A clock that was set back must not prolong belief in keys that are withdrawn meanwhile.
    if (known && known.from <= now && now < known.until && (await isStill(known.actor))) return known.actor;
    const proven = await prove(token, proof, config, clock);
    // Before the tenant is looked up: meanwhile the keys may be fetched anew, and this one be gone.
    const provenUntil = proof.until();
    const actor = Object.freeze({ ...proven, tenantId: await tenantIdOf(proven.tenant) });
    const ends = actor.expiresAt.getTime() + TOLERANCE_MS;
    believed.set(key, { actor, from: now, until: Math.min(now + BELIEVED_MS, provenUntil, ends) });
    return actor;
  };
  return { verify, keepKeys: proof.keep, requireKeys: proof.require };
}

interface Proof {
  key: JWTVerifyGetKey;
  algorithms: string[];
  /** Up to when what was just proven may be believed. */
  until(): number;
  keep(): Promise<void>;
  require(): void;
}

function proofOf(proof: AuthConfig["proof"], logger: Logger, clock: Clock): Proof {
  if (proof.kind === "jwks") {
    const keys = new KeySet(proof.url, clock, logger);
    const keep = async () => void (await keys.fetchIfDue());
    const [until, require] = [() => keys.provenUntil(), () => keys.require()];
    return { key: keys.keyOf, algorithms: PUBLIC_KEY_ALGORITHMS, until, keep, require };
  }
  const secret = new TextEncoder().encode(proof.secret.reveal());
  const [until, keep, require] = [() => Number.POSITIVE_INFINITY, async () => undefined, () => undefined];
  return { key: async () => secret, algorithms: SHARED_SECRET_ALGORITHMS, until, keep, require };
}

/** A token that names no key is proven by whichever of those that fit it; during a rotation there are two. */
async function verify(token: string, key: JWTVerifyGetKey, options: JWTVerifyOptions): Promise<JWTVerifyResult> {
  try {
    return await jwtVerify(token, key, options);
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
    for await (const one of error) {
      try {
        return await jwtVerify(token, one, options);
      } catch (failure) {
        if (!(failure instanceof errors.JWSSignatureVerificationFailed)) throw failure;
      }
    }
    throw new errors.JWSSignatureVerificationFailed();
  }
}

const withoutUsable = (claim: string, cause: Error) =>
  new UnauthenticatedError(`The bearer token lacks a usable claim: ${claim}.`, { cause });

async function prove(
  token: string,
  { key, algorithms }: Proof,
  { issuer, audience }: AuthConfig,
  clock: Clock,
): Promise<Proven> {
  const options = { algorithms, issuer, audience, requiredClaims: ["exp"], clockTolerance: CLOCK_TOLERANCE_SECONDS };
  const { payload } = await verify(token, key, { ...options, currentDate: clock() }).catch((cause: unknown) => {
    if (cause instanceof KeysUnavailableError) throw cause;
    // The signature was proven before: nobody but the provider's own callers learns what this service expects.
    if (cause instanceof errors.JWTClaimValidationFailed) throw withoutUsable(cause.claim, cause);
    throw new UnauthenticatedError("The bearer token is not valid or has ended. Sign in again.", { cause });
  });
  const actor = claims.safeParse(payload);
  if (!actor.success) {
    throw withoutUsable(actor.error.issues.map(({ path }) => path.join(".")).join(", "), actor.error);
  }
  // So that an end which no Date holds, NaN, is refused too.
  if (!(actor.data.expiresAt.getTime() - clock().getTime() <= LONGEST_LIFE_MS + TOLERANCE_MS)) {
    throw new UnauthenticatedError("The bearer token ends (exp) more than a day from now. Sign in for a shorter time.");
  }
  return actor.data;
}
