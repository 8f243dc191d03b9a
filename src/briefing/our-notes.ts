/** What our notes end with, in whatever marks the CRM puts around it: nothing that a person writes by chance. */
const LAST_LINE = String.raw`'Ref\. CRM-[0-9A-HJKMNP-TV-Z]{10}(<[^>]*>|\s)*$'`;
const LAST_LINE_LETTERS = 200;

/**
 * SQL: whether a note of the copy was written by this service. Its receipt has the CRM's id of it; while the answer is
 * awaited or lost, the receipt's reference inside the note shows it; and where another tenant of the company wrote it, whose
 * receipts nobody sees here, its last line. Notes are compared within one CRM company, whose ids they are.
 * @param note a row of `note`; $1 is the tenant
 */
export const isOurNote = (note: string) => {
  const receiptsOfCompany = `synced_copy our_copy JOIN note_write w
      ON w.tenant_id = $1 AND w.crm_company_id = our_copy.crm_company_id
    WHERE our_copy.tenant_id = $1 AND our_copy.id = ${note}.copy_id`;
  return `(EXISTS (SELECT 1 FROM ${receiptsOfCompany} AND w.crm_note_id = ${note}.crm_id)
    OR EXISTS (SELECT 1 FROM ${receiptsOfCompany} AND w.state IN ('SENDING', 'UNKNOWN')
      AND strpos(${note}.content, w.reference) > 0)
    OR right(${note}.content, ${LAST_LINE_LETTERS}) ~ ${LAST_LINE})`;
};

/** The CRM's clock and ours may differ by so much. */
const SKEW = "interval '1 minute'";
/** A write whose answer was lost may still take effect for so long. */
const LATE_EFFECT = "interval '3 minutes'";

const writesTo = (table: string, deal: string) => `
  SELECT w.deal_updated_before AS before, w.requested_at - ${SKEW} AS opens,
    CASE WHEN w.settled_at = w.sent_at THEN w.sent_at ELSE coalesce(w.sent_at, w.requested_at) + ${LATE_EFFECT} END + ${SKEW} AS closes
  FROM synced_copy our_copy JOIN ${table} w
    ON w.tenant_id = $1 AND w.crm_company_id = our_copy.crm_company_id
  WHERE our_copy.tenant_id = $1 AND our_copy.id = ${deal}.copy_id AND w.deal_id = ${deal}.crm_id
    AND (w.state <> 'FAILED' OR w.error_code = 'NOT_APPLIED')`;

/**
 * SQL: when a deal was last changed by anybody but this service. Each of our writes moves the CRM's update time and its
 * receipt holds the one from before, so the answer is the latest of all known update times that no write of ours made:
 * one is ours where it is later than the one before the write, and lies within the time of the write (decision 0078).
 * @param deal a row of `deal`; $1 is the tenant
 */
export const updatedByOthers = (deal: string) => {
  const ours = `${writesTo("note_write", deal)} UNION ALL ${writesTo("field_write", deal)}`;
  return `(WITH ours AS MATERIALIZED (${ours})
    SELECT max(known.at)
    FROM (SELECT ${deal}.update_time AS at UNION ALL SELECT before FROM ours) known
    WHERE NOT EXISTS (
      SELECT 1 FROM ours WHERE coalesce(known.at > ours.before, true) AND known.at BETWEEN ours.opens AND ours.closes))`;
};
