import { NOT_SEEN } from "../connections/journal";
import type { CopyScope } from "../database/database";
import { DEAL_CHANGES, type DealChangeKind, type DealChangeRow } from "../entities/deal";
import type { MeetingRow } from "../entities/meeting";
import { DAY_MS } from "../platform/clock";
import { isMatchedDeal } from "./quiet/silence-rows";

/** The journal of deals as people read it (decision 0083): by whom it is written says `connections/journal.ts`. */

/** What is read of a deal's journal: the newest entries since an instant. */
export interface AskedEntries {
  dealId: number;
  first: number;
  /** null: since it began. */
  since: Date | null;
}

/** An entry as it is kept: with ids in the place of names. */
export type Entry = Pick<DealChangeRow, "kind" | "was" | "became" | "seenAt">;

/**
 * The newest first, of matched deals; while an upgrade lasts, without kinds that only the later version knows.
 * @returns beside each entry which of those asked for it is one of
 */
export function readChanges(
  { tenantId, copyId, rows }: CopyScope,
  asked: readonly AskedEntries[],
): Promise<(Entry & { asked: number })[]> {
  return rows<Entry & { asked: number }>(
    `SELECT one.asked::int AS asked, c.kind, c.was, c.became, c.seen_at AS "seenAt"
     FROM unnest($3::bigint[], $4::integer[], $5::timestamptz[]) WITH ORDINALITY AS one (id, first, since, asked)
     CROSS JOIN LATERAL (
       SELECT * FROM deal_change t WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.deal_id = one.id AND t.seen_at >= one.since AND t.seen_at < '${NOT_SEEN}' AND t.kind = ANY ($6)
       ORDER BY t.seen_at DESC, t.id DESC LIMIT one.first) c
     WHERE ${isMatchedDeal("one.id")} ORDER BY one.asked, c.seen_at DESC, c.id DESC`,
    [
      tenantId,
      copyId,
      asked.map(({ dealId }) => dealId),
      asked.map(({ first }) => first),
      // The driver writes years that ISO 8601 has a sign for.
      asked.map(({ since }) => since ?? "-infinity"),
      DEAL_CHANGES,
    ],
    { asked: "number", kind: "text", was: "text", became: "text", seenAt: "instant" },
  );
}

/** The kinds of things that entries name by their ids. */
type Named = "stage" | "user" | "person" | "organization";

const NAMED: Partial<Record<DealChangeKind, Named>> = {
  STAGE: "stage",
  OWNER: "user",
  PERSON: "person",
  ORGANIZATION: "organization",
  PARTICIPANTS: "person",
};

/** More take part in no deal that people keep. */
const MOST_NAMES = 100;

const idsIn = (text: string | null): number[] => (text === null ? [] : text.split(",").map(Number));

const namedIn = (entries: readonly Entry[]): { kind: Named; id: number }[] =>
  entries.flatMap(({ kind, was, became }) => {
    const named = NAMED[kind];
    return named
      ? [was, became].flatMap((ids) =>
          idsIn(ids)
            .slice(0, MOST_NAMES)
            .map((id) => ({ kind: named, id })),
        )
      : [];
  });

/** An entry in words. */
export interface WordedChange {
  kind: DealChangeKind;
  from: string | null;
  to: string | null;
  seenAt: Date;
}

/** Finds a record that this tenant may read, by its id; null where there is none. */
interface LookUp {
  load(id: number): Promise<{ name: string } | null>;
}

/** Entries with the names of what they tell of; what is not known, or may not be read, is its id. */
export async function inWords(entries: readonly Entry[], lookUps: Record<Named, LookUp>): Promise<WordedChange[]> {
  const names = new Map<string, string>();
  const look = async ({ kind, id }: { kind: Named; id: number }) => {
    const row = await lookUps[kind].load(id);
    if (row) names.set(`${kind} ${id}`, row.name);
  };
  await Promise.all(namedIn(entries).map(look));
  return entries.map(({ kind, was, became, seenAt }) => {
    const named = NAMED[kind];
    const words = (text: string | null) => {
      if (!named || text === null) return text;
      const ids = idsIn(text).map((id) => `${named} ${id}`);
      const shown = ids.slice(0, MOST_NAMES).map((id) => names.get(id) ?? id);
      return [...shown, ...(ids.length > MOST_NAMES ? [`${ids.length - MOST_NAMES} more`] : [])].join(", ");
    };
    return { kind, from: words(was), to: words(became), seenAt };
  });
}

/** Where no earlier meeting was about a deal, so long a time is looked back on. */
const LATELY_MS = 30 * DAY_MS;

/** Since when changes of a deal are news to a meeting, by the meeting before it about the same deal. */
export const newsSince = (previous: MeetingRow | null, now: Date): Date =>
  previous?.startsAt ?? new Date(now.getTime() - LATELY_MS);
