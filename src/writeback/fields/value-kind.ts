import type { CrmFieldOption } from "../../crm/parsing/fields";

/** A value as the CRM takes it, or what is wrong with it: the rest of a sentence that begins with "it". */
export type Reading = { wire: unknown } | { fault: string };

/** How values of one field type are checked, and how the CRM's echo is compared (wire facts 7.2). */
export interface ValueKind {
  /** What is expected, with an example; it follows "expects". */
  shape: string;
  /** @param value never null or "", which clear a field of any type */
  read(value: unknown, options: readonly CrmFieldOption[]): Reading;
  /** Whether the CRM's value means what was sent, whatever it added or spelled otherwise. */
  isSame(sent: unknown, echoed: unknown): boolean;
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The first member that does not belong there. */
export const strayOf = (value: object, known: readonly string[]): string | undefined =>
  Object.keys(value)
    .find((name) => !known.includes(name))
    ?.slice(0, 60);
