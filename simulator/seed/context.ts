import type { Company } from "../model/company";
import type { FieldEntity } from "../model/fields";
import type { CustomFields } from "../model/records";
import type { Random } from "./random";

/** What every part of the generator needs. The company fills up in the order users, pipelines, organizations, persons, deals. */
export interface SeedContext {
  readonly random: Random;
  /** The start instant in whole seconds; every time in the data is relative to it. */
  readonly now: number;
  /** How many of each kind are still to be made beside the stories. */
  readonly counts: { organizations: number; persons: number; deals: number; activities: number; notes: number };
  /** Of the deals beside the stories; the rest is deleted. */
  readonly percent: { open: number; closed: number };
  readonly company: Omit<Company, "stories">;
  /** What random records may be linked to: nothing of the stories is in here. */
  readonly pool: Pool;
  readonly customFields: (entity: FieldEntity, random: Random) => CustomFields;
}

interface Pool {
  readonly sellers: number[];
  readonly organizations: number[];
  readonly persons: number[];
  readonly personsByOrganization: Map<number, number[]>;
  readonly deals: number[];
  /** Deals our side wrote to without an answer: nothing happens on them after the given second. */
  readonly silentSince: Map<number, number>;
}

// Ranges of ids lie apart, so that code which mixes two kinds of id meets a record that does not exist.
export const firstId = {
  user: 21_000_001,
  pipeline: 1,
  stage: 101,
  organization: 500_001,
  person: 1_000_001,
  deal: 1,
  activity: 3_000_001,
  note: 7_000_001,
  participant: 9_000_001,
} as const;

export function nextId(table: ReadonlyMap<number, unknown>, first: number): number {
  return first + table.size;
}

export function must<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("the generator asked for a record that does not exist");
  return value;
}
