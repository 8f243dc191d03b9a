/**
 * SQL: what a copy lacks now, as rows of `data_gap`. A record that cannot be read is missing as well, and nobody knows
 * to what it belongs: as the gap of a whole resource (0) it touches everything.
 */
export const KNOWN_GAPS = `(
  SELECT copy_id, resource, crm_id, code, message, since FROM data_gap
  UNION ALL
  SELECT copy_id, resource, 0, 'RECORDS_UNREADABLE', 'Some ' || replace(lower(resource), '_', ' ') || ' of the CRM could not be read; '
    || 'they are missing here, or as they were read before. Tell the operator of this service.', since
  FROM rejected_record)`;
