import { request } from "undici";
import { type ActorClaims, tokenFor } from "./actors";

/** One POST with JSON, its status and its JSON answer. */
export async function post(
  url: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<{ status: number; body: unknown }> {
  const answer = await request(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  return { status: answer.statusCode, body: await answer.body.json() };
}

/** One operation as an actor, and its answer as it came. */
export async function askRaw(url: string, body: unknown, as: ActorClaims): Promise<{ status: number; text: string }> {
  const answer = await request(`${url}/graphql`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${await tokenFor(as)}` },
    body: JSON.stringify(body),
  });
  return { status: answer.statusCode, text: await answer.body.text() };
}
