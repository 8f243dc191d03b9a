/** Rows of `data_gap`. A record that cannot be read is missing as well, and nobody knows to what it belongs: it touches all. */
const KNOWN_GAPS = `(
  SELECT resource, crm_id, code, message, since FROM data_gap WHERE tenant_id = $1 AND copy_id = $2
  UNION ALL
  SELECT resource, 0, 'RECORDS_UNREADABLE', 'Some ' || replace(lower(resource), '_', ' ') || ' of the CRM could not be read; '
    || 'they are missing here, or as they were read before. Tell the operator of this service.', since
  FROM rejected_record WHERE tenant_id = $1 AND copy_id = $2)`;

/**
 * SQL: what a copy lacks now, by resource and reason. $1 is the tenant and $2 the copy.
 * @param which condition on `g`, a row of `data_gap`; the gap of a whole resource has the `crm_id` 0
 */
export const gapsWhere = (which = "true") => `
  SELECT resource, code, count(*)::int AS count, min(since) AS since, min(message) AS message
  FROM ${KNOWN_GAPS} g WHERE ${which} GROUP BY resource, code ORDER BY resource, code`;
