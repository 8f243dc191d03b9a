import type { TokenSource } from "../crm/api";
import type { Clock } from "../platform/clock";
import { BEGIN_WITHIN_MS } from "./look-up-plan";
import { NotSentInTimeError } from "./write-failure";

/** Waiting for a token may take long; what is sent after its receipt counts as abandoned could come to light too late. */
export function inTime(tokens: TokenSource, requestedAt: Date, clock: Clock): TokenSource {
  const still = <T>(token: T): T => {
    if (clock().getTime() <= requestedAt.getTime() + BEGIN_WITHIN_MS) return token;
    throw new NotSentInTimeError("The access token came too late.");
  };
  return {
    current: async () => still(await tokens.current()),
    renewed: async (stale) => still(await tokens.renewed(stale)),
  };
}
