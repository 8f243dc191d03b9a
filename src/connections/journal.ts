import { CONNECTION_CHANGED, notify } from "../database/between-processes";
import { type CopyScope, type Database } from "../database/database";
import { rowsOf, rowsOfEach } from "../database/rows";
import { forgetOld, jsonRows, type WrittenRow } from "../database/upsert";
import type { DealChangeKind, DealChangeRow } from "../entities/deal";
import { ERASED } from "../platform/email-address";
import type { Logger } from "../platform/logger";
import { holdLiveCopy } from "./copies";

/**
 * The journal of a copy's deals (decision 0083): what syncs saw change, and flips of verdicts. Whoever changes a deal writes
 * it in the same transaction, by what the statement that wrote the row said of it before and after.
 */

/** In place of an instant: what became of a verdict while each answer said UNKNOWN was not seen, and waits. */
export const NOT_SEEN = "infinity";

/** A change of a deal. @property seenAt where it is not now */
export type DealChange = Pick<DealChangeRow, "dealId" | "kind" | "was" | "became"> & {
  seenAt?: Date | typeof NOT_SEEN;
};

/** Within the transaction that makes the changes, which holds the copy. */
export async function writeChanges(
  { tenantId, copyId, rows }: CopyScope,
  changes: readonly DealChange[],
  now: Date,
): Promise<void> {
  if (changes.length > 0) await rows(WRITE, [tenantId, copyId, jsonRows(changes), now]);
}

const WRITE = `
  INSERT INTO deal_change (tenant_id, copy_id, deal_id, seen_at, kind, was, became)
  SELECT $1::bigint, $2::bigint, r."dealId", coalesce(r."seenAt", $4::timestamptz), r.kind, r.was, r.became
  FROM jsonb_to_recordset($3::jsonb) AS r ("dealId" bigint, "seenAt" timestamptz, kind text, was text, became text)
  RETURNING 1 AS written`;

/**
 * Of what has waited each deal's first state and its last are an entry. One that has come back to it is none.
 * @param isSeen false: nobody will ever see it, and it waits no more
 */
export async function noteWaiting(copy: CopyScope, now: Date, isSeen = true): Promise<void> {
  const { tenantId, copyId, rows } = copy;
  const shape = { id: "number", dealId: "number", was: "text", became: "text" } as const;
  const waiting = await rows<Waiting>(TAKE_WAITING, [tenantId, copyId], shape);
  const ofDeals = new Map<number, Waiting>();
  for (const { id, dealId, was, became } of waiting.sort((a, b) => a.id - b.id))
    ofDeals.set(dealId, { id, dealId, was: ofDeals.get(dealId)?.was ?? was, became });
  const changes = [...ofDeals.values()].filter(({ was, became }) => isSeen && was !== became);
  await writeChanges(
    copy,
    changes.map(({ dealId, was, became }) => ({ dealId, kind: "VERDICT", was, became })),
    now,
  );
}
type Waiting = Pick<DealChangeRow, "id" | "dealId" | "was" | "became">;

const TAKE_WAITING = `
  DELETE FROM deal_change t WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.seen_at = '${NOT_SEEN}'
  RETURNING t.id, t.deal_id AS "dealId", t.was, t.became`;

/** A copy that was too old to judge by is so no more, which no deal is told of. */
export const tellFresh = (scope: CopyScope, now: Date): Promise<void> =>
  scope.transaction(async (inner) => {
    const copy = { ...inner, copyId: scope.copyId };
    if (await holdLiveCopy(inner, scope.copyId)) await noteWaiting(copy, now);
    await notify(copy, CONNECTION_CHANGED);
  });

/** What of a deal's row the journal tells, as text: it is compared, and kept, as it is written here. */
export const JOURNALED: readonly { kind: DealChangeKind; sql: string }[] = [
  { kind: "STAGE", sql: "t.stage_id::text" },
  { kind: "VALUE", sql: "trim_scale(t.value) || ' ' || t.currency" },
  { kind: "CLOSE_DATE", sql: "t.expected_close_date::text" },
  { kind: "STATUS", sql: "t.status" },
  { kind: "OWNER", sql: "t.owner_id::text" },
  { kind: "PERSON", sql: "t.person_id::text" },
  { kind: "ORGANIZATION", sql: "t.organization_id::text" },
  { kind: "TITLE", sql: "t.title" },
];

/** A deal whose close date was moved later so often is pushed by any count; what came before adds nothing. */
export const MOST_PUSHES = 100;

/**
 * SQL: when the close dates of the deals `known.ids` were seen to be a later day than before, of each the newest. The words
 * are those of the index that has these entries alone. As text days are in their order; one that was set or taken away is no later one.
 */
export const PUSHES = `unnest(known.ids) AS one (id) CROSS JOIN LATERAL (SELECT t.deal_id, t.seen_at FROM deal_change t
  WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.deal_id BETWEEN one.id AND one.id
    AND t.kind = 'CLOSE_DATE' AND t.became > t.was COLLATE "C"
  ORDER BY t.deal_id DESC, t.seen_at DESC LIMIT ${MOST_PUSHES}) p`;

/** A new deal has no history; nor has a text from which a person was erased, and which a sync brings back. */
export function changesOf({ id, told }: WrittenRow): DealChange[] {
  if (told === null || told === "NEW") return [];
  return JOURNALED.map(({ kind }, index) => ({
    dealId: id,
    kind,
    was: told.was[index] ?? null,
    became: told.became[index] ?? null,
  })).filter(({ was, became }) => was !== became && !was?.includes(ERASED));
}

/** Who was known to take part in a deal before a statement. */
export interface KnownParticipants {
  dealId: number;
  personIds: number[];
}

/** SQL: those of deals as the statement's snapshot has them; what was never known is no earlier state. @param ids an array */
export const KNOWN_PARTICIPANTS = (ids: string) => `
  SELECT coalesce(jsonb_agg(jsonb_build_object('dealId', d.crm_id, 'personIds', ARRAY (
      SELECT x.person_id FROM ${rowsOf("deal_participant", "deal_id", "d.crm_id")} x))), '[]')
  FROM ${rowsOfEach("deal", "crm_id", ids)} d WHERE d.participants_once_known`;

/** @param now who takes part by now */
export function participantChanges(
  known: readonly KnownParticipants[],
  now: (deal: KnownParticipants) => readonly number[],
): DealChange[] {
  const text = (ids: readonly number[]) => [...new Set(ids)].sort((a, b) => a - b).join() || null;
  return known
    .map((deal) => ({
      dealId: deal.dealId,
      kind: "PARTICIPANTS" as const,
      was: text(deal.personIds),
      became: text(now(deal)),
    }))
    .filter(({ was, became }) => was !== became);
}

/** Deletes entries that are older than they are kept. */
export const sweepChanges = (database: Database, logger: Logger, now: Date): Promise<void> =>
  forgetOld(database, { table: "deal_change", instant: "seen_at" }, logger, now);
