import { createHash } from "node:crypto";
import { refused } from "../platform/outcome";

/** The same input gives the same hash, whoever sends it. */
export function hashOf(input: readonly unknown[]): string {
  return createHash("sha256").update(JSON.stringify(input)).digest("hex");
}

export const KEY_REUSED = refused(
  "IDEMPOTENCY_KEY_REUSED",
  "This idempotency key was used with another input. Choose a new key for each write.",
  "idempotencyKey",
);
