import { createHash } from "node:crypto";
import { refused } from "../platform/outcome";

const LONGEST_KEY = 200;

/** Why a key cannot be kept and found again; null: it can. */
export function faultOfKey(key: string): string | null {
  if (key.trim() === "") return "must not be empty: choose a new one for each intent, for example a UUID";
  if (key.length > LONGEST_KEY) return `must have at most ${LONGEST_KEY} characters`;
  return /\0|\p{Surrogate}/u.test(key) ? "must not contain a NUL character or half a surrogate pair" : null;
}

/** The same input gives the same hash, whoever sends it. */
export function hashOf(input: readonly unknown[]): string {
  return createHash("sha256").update(JSON.stringify(input)).digest("hex");
}

export const KEY_REUSED = refused(
  "IDEMPOTENCY_KEY_REUSED",
  "This idempotency key was used with another input. Choose a new key for each write.",
  "idempotencyKey",
);
