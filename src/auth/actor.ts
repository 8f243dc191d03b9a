import { createRemoteJWKSet, type JWTVerifyGetKey, jwtVerify } from "jose";
import { z } from "zod";
import type { AuthConfig } from "../platform/config";
import { ServiceError } from "../platform/errors";

const ACTOR_ROLES = ["owner", "admin", "member"] as const;
export type ActorRole = (typeof ACTOR_ROLES)[number];

/** Who calls. Everything in it was proven by the bearer token. */
export interface Actor {
  userId: string;
  tenantId: string;
  role: ActorRole;
  plan: string;
  email: string | null;
  name: string | null;
  expiresAt: Date;
}

/** The bearer token does not prove an actor. The message may be shown; it never repeats the token. */
export class UnauthenticatedError extends ServiceError {
  readonly code = "UNAUTHENTICATED";
}

const CLOCK_TOLERANCE_SECONDS = 5;
const HS = ["HS256"];
/** What identity providers sign with; a JWKS never holds a shared secret, so no HS here. */
const PUBLIC_KEY = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];

/** PostgreSQL would refuse a NUL, take every half surrogate pair for one character, and index no longer text. */
const id = z.string().regex(/^[^\0\p{Surrogate}]{1,255}$/u);

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
    (claim): Actor => ({
      userId: claim.sub,
      tenantId: claim.tenant,
      role: claim.role,
      plan: claim.plan,
      email: claim.email ?? null,
      name: claim.name ?? null,
      expiresAt: new Date(claim.exp * 1000),
    }),
  );

export type ActorVerifier = (token: string) => Promise<Actor>;

/** Proves bearer tokens: HS256 with the configured secret, or public keys from the configured JWKS address. */
export function createActorVerifier({ proof, issuer, audience }: AuthConfig): ActorVerifier {
  const shared = proof.kind === "secret" ? new TextEncoder().encode(proof.secret.reveal()) : null;
  const key: JWTVerifyGetKey =
    proof.kind === "jwks" ? createRemoteJWKSet(proof.url) : async () => shared ?? new Uint8Array();
  const algorithms = shared ? HS : PUBLIC_KEY;
  const options = { algorithms, issuer, audience, requiredClaims: ["exp"], clockTolerance: CLOCK_TOLERANCE_SECONDS };
  return async (token) => {
    const payload = await jwtVerify(token, key, options).then(
      (verified) => verified.payload,
      (cause: unknown) => {
        throw new UnauthenticatedError("The bearer token is not valid or has ended. Sign in again.", { cause });
      },
    );
    const actor = claims.safeParse(payload);
    if (actor.success) return actor.data;
    const missing = actor.error.issues.map(({ path }) => path.join(".")).join(", ");
    throw new UnauthenticatedError(`The bearer token lacks a usable claim: ${missing}.`);
  };
}
