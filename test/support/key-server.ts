import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, type GenerateKeyPairResult, generateKeyPair, type JWK, type JWTPayload, SignJWT } from "jose";

export type KeyAnswer = (response: ServerResponse) => void;

/** The key server of an identity provider: over real HTTP, and it counts what it is asked. */
export interface KeyServer {
  url: URL;
  requests: number;
  /** What it answers from now on. */
  answer: KeyAnswer;
  stop(): Promise<void>;
}

export async function startKeyServer(): Promise<KeyServer> {
  const server: Server = createServer((_request, response) => {
    keyServer.requests += 1;
    keyServer.answer(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const stop = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks`);
  const keyServer: KeyServer = { url, requests: 0, answer: withBody(500, ""), stop };
  return keyServer;
}

export const withBody =
  (status: number, body: string, headers: Record<string, string> = {}): KeyAnswer =>
  (response) =>
    response.writeHead(status, headers).end(body);

export const withKeys = (...keys: unknown[]) =>
  withBody(200, JSON.stringify({ keys }), { "content-type": "application/json" });

export const withNothing: KeyAnswer = () => undefined;

export interface SigningKey extends GenerateKeyPairResult {
  jwk: JWK;
  /** A token of this key: `more` changes its claims, `header` its header. */
  sign(more?: JWTPayload, header?: { alg?: string; kid?: string }): Promise<string>;
}

export async function makeKey(kid: string, now: () => Date, alg = "RS256"): Promise<SigningKey> {
  const pair = await generateKeyPair(alg, { extractable: true });
  const jwk = { ...(await exportJWK(pair.publicKey)), kid, alg, use: "sig" };
  const sign = (more: JWTPayload = {}, header = {}) =>
    new SignJWT({ ...claimsAt(now()), ...more }).setProtectedHeader({ alg, kid, ...header }).sign(pair.privateKey);
  return { ...pair, jwk, sign };
}

/** An actor's claims with an hour to go. */
export const claimsAt = (now: Date): JWTPayload => ({
  sub: "anna",
  tenant: "acme",
  role: "admin",
  plan: "sales",
  exp: Math.floor(now.getTime() / 1_000) + 3_600,
});
