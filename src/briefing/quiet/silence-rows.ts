/**
 * How a schedule stands in its rows: with what lists need of the deal (decision 0082). In the SQL $1 is the tenant, $2 the
 * copy, and of what judges changed deals $4 deals that are judged in any case and $5 those whose rows have changed.
 */

/** SQL: an amount as a bigint, in the same order: one that an index may compare under row policies, which a numeric is not. */
export const rankOf = (amount: string) => `least(greatest(${amount}, -9e17), 9e17)::bigint`;

/** SQL over `d`, a row of `deal`, by the column of what lists need of it and no verdict hangs on. */
const LISTED = {
  owner_id: "d.owner_id",
  changed_at: "coalesce(d.update_time, '0001-01-01 00:00:00+00'::timestamptz)",
  currency: "CASE WHEN d.value IS NULL OR d.currency IS NULL THEN '~' ELSE d.currency END",
  value_rank: rankOf("-coalesce(d.value, 0)"),
  negative_value: "-coalesce(d.value, 0)",
};

/** SQL: what of a row of `deal` a verdict hangs on, by whatever settings. */
const JUDGED_AS = `concat(d.status, ' ', d.person_id, ' ', d.participants_count, ' ', d.pipeline_id, ' ', d.stage_id, ' ',
  extract(epoch FROM d.stage_change_time), ' ', extract(epoch FROM d.add_time))`;

/** SQL: a deal was judged by the row that it has now. Of one with no participants a page takes what there was of them. */
const IS_JUDGED_ALIKE = `o.judged_as = ${JUDGED_AS} AND d.participants_count <> 0`;

/**
 * SQL: those of the deals $5 whose verdict may change with their rows. Most changes of a deal are of its title, value, owner or
 * fields, and to judge 500 for nothing took several times as long as to write them.
 */
export const JUDGED_OTHERWISE = `SELECT x.id AS deal_id FROM unnest($5::bigint[]) AS x (id) WHERE NOT EXISTS (
  SELECT 1 FROM deal d JOIN deal_silence o ON o.tenant_id = $1 AND o.copy_id = $2 AND o.deal_id = d.crm_id AND o.is_listed
  WHERE d.tenant_id = $1 AND d.copy_id = $2 AND d.crm_id = x.id AND ${IS_JUDGED_ALIKE})`;

/** The others of those keep their schedules, those that are coming as well: lists get what is new in their rows. */
export const KEEP_LISTED = `
  UPDATE deal_silence o SET ${Object.entries(LISTED).map(([column, sql]) => `${column} = ${sql}`)}
  FROM deal d WHERE o.tenant_id = $1 AND o.copy_id = $2 AND o.deal_id = ANY ($5::bigint[])
    AND d.tenant_id = $1 AND d.copy_id = $2 AND d.crm_id = o.deal_id AND ${IS_JUDGED_ALIKE}
    AND (${Object.keys(LISTED).map((column) => `o.${column}`)}) IS DISTINCT FROM (${Object.values(LISTED)})
    AND o.deal_id <> ALL ($4::bigint[])`;

/**
 * What lists need of the deal is as it stands in this transaction.
 * @param phases SQL: an array of phases, and where it stands
 * @param isListed SQL: whether a phase is the one that holds
 */
const storeFrom = (phases: string, isTold: string, isListed: string, where = "") => `
  INSERT INTO deal_silence (tenant_id, copy_id, deal_id, phase, holds_from, holds_until, verdict, quiet_since, is_told,
    is_listed, judged_as, status, pipeline_id, stage_id, ${Object.keys(LISTED)})
  SELECT d.tenant_id, d.copy_id, d.crm_id, r.phase, coalesce(r."from", '-infinity'::timestamptz), coalesce(r.until, 'infinity'::timestamptz),
    r.verdict, r.since, ${isTold}, ${isListed}, ${JUDGED_AS}, d.status, d.pipeline_id, d.stage_id, ${Object.values(LISTED)}
  FROM ${phases}
    AS r ("dealId" bigint, phase integer, "from" timestamptz, until timestamptz, verdict text, since timestamptz, "isTold" boolean)
  JOIN deal d ON d.tenant_id = $1 AND d.copy_id = $2 AND d.crm_id = r."dealId"
  ${where} RETURNING 1 AS stored`;

export const STORE = storeFrom("jsonb_to_recordset($3::jsonb)", 'r."isTold"', "r.phase = 0");

/** What is coming was judged a while before $3. */
export const TAKE_OVER = storeFrom(
  "coming_silence c CROSS JOIN LATERAL jsonb_to_recordset(c.phases)",
  // What has begun since it was judged is part of what is told for the connection.
  'r."isTold" OR r."from" <= $3',
  '(r.phase = 0 OR r."from" <= $3) AND (r.until > $3) IS NOT FALSE',
  "WHERE c.tenant_id = $1 AND c.copy_id = $2",
);

export const STORE_COMING = `
  INSERT INTO coming_silence (tenant_id, copy_id, deal_id, phases)
  SELECT $1, $2, r."dealId", r.phases FROM jsonb_to_recordset($3::jsonb) AS r ("dealId" bigint, phases jsonb)
  RETURNING 1 AS stored`;

/** Of deals whose marked phase is over by $3 the one that holds is marked. */
export const MARK_HOLDING = `
  UPDATE deal_silence s SET is_listed = NOT s.is_listed
  WHERE s.tenant_id = $1 AND s.copy_id = $2 AND s.is_listed <> (s.holds_from <= $3 AND s.holds_until > $3)
    AND s.deal_id IN (SELECT o.deal_id FROM deal_silence o
      WHERE o.tenant_id = $1 AND o.copy_id = $2 AND o.is_listed AND o.holds_until <= $3)`;
