import type { TenantScope } from "../database/database";
import type { LastDeal } from "../entities/meeting-match";
import type { ChoiceFact } from "./matching/facts";

/** What was stored of a meeting's match, for the next one. */
export interface StoredMatch {
  fingerprint: string;
  /** The deal that the rules may not change. */
  kept: ChoiceFact | null;
  lastDeal: LastDeal | null;
}

/**
 * A choice holds in the CRM company where it was made. Without one, what was written to the CRM holds the deal that the
 * meeting was about then, until it is about another: what another match wrote holds nothing.
 */
const READ_STORED = `
  SELECT m.meeting_id, m.fingerprint, m.last_deal, kept.deal_id, kept.by_user, EXISTS (
    SELECT 1 FROM synced_copy c JOIN deal d ON d.tenant_id = $1 AND d.copy_id = c.id
    WHERE c.tenant_id = $1 AND c.id = $2 AND c.crm_company_id = kept.company_id AND d.crm_id = kept.deal_id) AS is_there
  FROM meeting_match m LEFT JOIN LATERAL (
    SELECT m.chosen_deal_id AS deal_id, m.chosen_company_id AS company_id, true AS by_user
    WHERE m.chosen_deal_id IS NOT NULL
    UNION ALL
    SELECT (m.last_deal ->> 'dealId')::bigint, w.crm_company_id, false FROM (
      SELECT meeting_id, crm_company_id, state, requested_at FROM note_write WHERE tenant_id = $1
      UNION ALL
      SELECT meeting_id, crm_company_id, state, requested_at FROM field_write WHERE tenant_id = $1
    ) w
    WHERE w.meeting_id = m.meeting_id AND w.state <> 'FAILED' AND m.chosen_deal_id IS NULL
      AND w.requested_at >= (m.last_deal ->> 'since')::timestamptz
    LIMIT 1
  ) kept ON true
  WHERE m.tenant_id = $1 AND m.meeting_id = ANY ($3)`;

interface StoredRow {
  meeting_id: string;
  fingerprint: string;
  last_deal: LastDeal | null;
  deal_id: number | null;
  by_user: boolean | null;
  is_there: boolean;
}

/** By meeting; those without a match are left out. */
export async function readStored(
  { tenantId, rows }: TenantScope,
  copyId: number | null,
  meetingIds: readonly string[],
): Promise<Map<string, StoredMatch>> {
  const found = await rows<StoredRow>(READ_STORED, [tenantId, copyId, meetingIds], {
    ...{ meeting_id: "text", fingerprint: "text", last_deal: "json" },
    ...{ deal_id: "number", by_user: "flag", is_there: "flag" },
  });
  return new Map(
    found.map(({ meeting_id, fingerprint, last_deal: lastDeal, deal_id: dealId, by_user, is_there: isThere }) => {
      const kept = dealId === null ? null : { dealId, isThere, written: by_user ? null : lastDeal };
      return [meeting_id, { fingerprint, kept, lastDeal }];
    }),
  );
}
