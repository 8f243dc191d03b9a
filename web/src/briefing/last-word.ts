import type { ContactFragment } from "../api/operations.generated";
import type { Briefing } from "./targets";
import { inWords } from "./wording";

type Person = Briefing["persons"][number];

export interface PersonWithWord {
  person: Person;
  /** What was last heard of them and when; `what` is null for a mail of theirs. null: nothing is known. */
  last: { what: string | null; at: string; day: string | null } | null;
}

/** Who was heard of last comes first; those of whom nothing is known keep their order. */
export function withLastWord(persons: readonly Person[], timeline: readonly ContactFragment[]): PersonWithWord[] {
  const found = persons.map((person) => ({ person, last: lastWordOf(person, timeline) }));
  return found.sort((a, b) => (b.last?.at ?? "").localeCompare(a.last?.at ?? ""));
}

function lastWordOf({ id, lastIncomingMailAt }: Person, timeline: readonly ContactFragment[]): PersonWithWord["last"] {
  const done = timeline.find(({ kind, person }) => person?.id === id && kind === "ACTIVITY");
  if (done && done.at > (lastIncomingMailAt ?? "")) return { what: inWords(done), at: done.at, day: done.day };
  return lastIncomingMailAt ? { what: null, at: lastIncomingMailAt, day: null } : null;
}
