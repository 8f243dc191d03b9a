/** The CRM's clock and ours may differ by so much. */
const SKEW = "interval '1 minute'";

const writesOf = (table: string) => `
  SELECT deal_updated_before, requested_at, settled_at FROM ${table}
  WHERE tenant_id = $1 AND crm_company_id = $3 AND deal_id = $4 AND state <> 'FAILED'`;

/**
 * SQL, with $1 tenant, $2 copy, $3 CRM company, $4 deal (may be null): when the deal was last changed by anybody but us.
 * Where the change that the copy knows is a write of ours, it is what was known before that one.
 */
export const updateTimeBeforeOurs = `(
  SELECT coalesce((
    SELECT w.deal_updated_before FROM (${writesOf("note_write")} UNION ALL ${writesOf("field_write")}) w
    WHERE d.update_time BETWEEN w.requested_at - ${SKEW} AND coalesce(w.settled_at, w.requested_at) + ${SKEW}
    ORDER BY w.requested_at DESC LIMIT 1
  ), d.update_time)
  FROM deal d WHERE d.copy_id = $2 AND d.crm_id = $4)`;
