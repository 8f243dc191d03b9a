import { json, Refusal, refusedV1 } from "./answer";
import type { Call } from "./operation";

export type Body = Readonly<Record<string, unknown>>;

/** The object of a JSON body; anything else is refused. */
export function bodyOf({ body, contentType }: Call): Body {
  if (!/^application\/json\b/i.test(contentType)) {
    throw new Refusal(json(415, { success: false, error: "Unsupported media type", errorCode: 415 }));
  }
  const value = parsed(body);
  if (!isObject(value)) throw refusedV1(400, "Invalid request: the body is not a JSON object");
  return value;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw refusedV1(400, "Invalid request: malformed JSON");
  }
}

export function isObject(value: unknown): value is Body {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function isId(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0;
}

/** A date that the calendar has. */
export function isDate(value: unknown): value is string {
  return typeof value === "string" && /^\d{4}-\d\d-\d\d$/.test(value) && isInstant(`${value}T00:00:00Z`);
}

/** Whether the text names a moment that exists: Date would roll the 30th of February over. */
export function isInstant(text: string): boolean {
  const date = new Date(text);
  return !Number.isNaN(date.getTime()) && date.toISOString().slice(0, 19) === text.slice(0, 19);
}
