/** Rows of `data_gap`. A record that cannot be read is missing as well, and nobody knows to what it belongs: it touches all. */
const KNOWN_GAPS = `(
  SELECT copy_id, resource, crm_id, code, message, since FROM data_gap
  UNION ALL
  SELECT copy_id, resource, 0, 'RECORDS_UNREADABLE', 'Some ' || replace(lower(resource), '_', ' ') || ' of the CRM could not be read; '
    || 'they are missing here, or as they were read before. Tell the operator of this service.', since
  FROM rejected_record)`;

/**
 * SQL: what a copy lacks now, by resource and reason.
 * @param which condition on `g`, a row of `data_gap`; the gap of a whole resource has the `crm_id` 0
 */
export const gapsWhere = (which: string) => `
  SELECT resource, code, count(*)::int AS count, min(since) AS since, min(message) AS message
  FROM ${KNOWN_GAPS} g WHERE ${which} GROUP BY resource, code ORDER BY resource, code`;
