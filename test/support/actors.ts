import { SignJWT } from "jose";

export const JWT_SECRET = "a secret for tests only, with at least 32 bytes";

export interface ActorClaims {
  sub?: string;
  tenant?: string;
  role?: string;
  plan?: string;
  email?: string;
}

/** A bearer token as the identity provider would sign it: an admin on the sales plan unless said otherwise. */
export function tokenFor(claims: ActorClaims = {}, expiresIn: string | number = "1h"): Promise<string> {
  return new SignJWT({ tenant: "acme", role: "admin", plan: "sales", ...claims })
    .setProtectedHeader({ alg: "HS256" })
    .setSubject(claims.sub ?? "anna")
    .setExpirationTime(expiresIn)
    .sign(new TextEncoder().encode(JWT_SECRET));
}
