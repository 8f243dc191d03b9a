import type { CopyScope } from "../../database/database";
import type { Shape } from "../../database/reads";
import { updatedByOthers } from "../our-notes";
import type { CopyFacts, DealFacts } from "./facts";
import { contactsOf, meetingsOf, plannedOf, quietCopy } from "./silence-sql";

/** So many steps ahead are looked at; more within the day that a judgement can look ahead is no deal's life. */
const MOST_AHEAD = 20;

const ms = (instant: string) => `(extract(epoch FROM ${instant}) * 1000)::bigint`;

/** The latest and the earliest contact of each kind. */
const CONTACTS = `SELECT coalesce(jsonb_agg(jsonb_build_object('kind', c.kind, 'at', ${ms("c.at")}, 'crmId', c.ref)), '[]')
  FROM (SELECT c.*, row_number() OVER (PARTITION BY c.kind ORDER BY c.at DESC, c.ref) AS newest,
          row_number() OVER (PARTITION BY c.kind ORDER BY c.at, c.ref) AS oldest
        FROM (${contactsOf("d")}) c) c
  WHERE c.newest = 1 OR c.oldest = 1`;

/** Those ahead, and the latest held one with a buyer. */
const MEETINGS = `SELECT coalesce(jsonb_agg(jsonb_build_object('meetingId', m.meeting_id, 'startsAt', ${ms("m.starts_at")},
    'endsAt', ${ms("m.ends_at")}, 'withBuyer', m.with_buyer)), '[]')
  FROM ((SELECT * FROM (${meetingsOf("d")}) ahead WHERE ends_at > $3 ORDER BY starts_at, meeting_id LIMIT ${MOST_AHEAD})
        UNION ALL
        (SELECT * FROM (${meetingsOf("d")}) held WHERE ends_at <= $3 AND with_buyer
         ORDER BY ends_at DESC, meeting_id LIMIT 1)) m`;

/** Those ahead, and the one that is due first. */
const PLANNED = `SELECT coalesce(jsonb_agg(jsonb_build_object('crmId', p.crm_id, 'dueAt', ${ms("p.due_at")},
    'wholeDay', p.whole_day)), '[]')
  FROM ((SELECT * FROM (${plannedOf("d", "$3")}) ahead WHERE ahead ORDER BY due_at, crm_id LIMIT ${MOST_AHEAD})
        UNION
        (SELECT * FROM (${plannedOf("d", "$3")}) every ORDER BY due_end, crm_id LIMIT 1)) p`;

/** Since when participants or activities of the deal are missing: not answered when asked for, or in a form that cannot be read. */
const INCOMPLETE = `SELECT min(missing.since) FROM (
    SELECT g.since FROM data_gap g
    WHERE g.tenant_id = $1 AND g.copy_id = d.copy_id AND g.resource IN ('DEAL_PARTICIPANTS', 'ACTIVITIES') AND g.crm_id IN (0, d.crm_id)
    UNION ALL
    SELECT r.since FROM rejected_record r
    WHERE r.tenant_id = $1 AND r.copy_id = d.copy_id AND r.resource = 'ACTIVITIES' AND left(r.payload ->> 'deal_id', 20) = d.crm_id::text
  ) missing`;

export interface QuietFacts {
  copy: CopyFacts;
  deals: DealFacts[];
}

type FactsRow = DealFacts & CopyFacts;
const FACTS: Shape<FactsRow> = {
  ...{ dealId: "number", isOpen: "flag", addedAt: "number", inStageSince: "number", stageId: "number" },
  ...{ daysToRotten: "number", updatedAt: "number", closeDayEndsAt: "number", inactiveOwnerId: "number" },
  ...{ isIncomplete: "flag", incompleteSince: "number", contacts: "json", meetings: "json", planned: "json" },
  ...{ readAt: "number", asOf: "number", hasMail: "flag" },
};

/**
 * What the silence of these deals is judged by, at one instant and in one statement. The caller has read the deals as
 * matched ones.
 */
export async function readQuietFacts(
  { tenantId, copyId, rows }: CopyScope,
  dealIds: readonly number[],
  now: Date,
): Promise<QuietFacts> {
  const found = await rows<FactsRow>(
    `WITH ${quietCopy}
     SELECT d.crm_id AS "dealId", d.status = 'open' AS "isOpen", ${ms("d.add_time")} AS "addedAt",
       ${ms("coalesce(d.stage_change_time, d.add_time)")} AS "inStageSince", d.stage_id AS "stageId",
       s.days_to_rotten AS "daysToRotten", ${ms(updatedByOthers("d"))} AS "updatedAt",
       ${ms("(d.expected_close_date + 1)::timestamp AT TIME ZONE 'UTC'")} AS "closeDayEndsAt",
       u.crm_id AS "inactiveOwnerId",
       NOT d.participants_known OR gap.since IS NOT NULL AS "isIncomplete", ${ms("gap.since")} AS "incompleteSince",
       (${CONTACTS}) AS contacts, (${MEETINGS}) AS meetings, (${PLANNED}) AS planned,
       ${ms("quiet_copy.read_at")} AS "readAt", ${ms("quiet_copy.as_of")} AS "asOf", quiet_copy.has_mail AS "hasMail"
     FROM deal d CROSS JOIN quiet_copy
     LEFT JOIN stage s ON s.tenant_id = $1 AND s.copy_id = d.copy_id AND s.crm_id = d.stage_id AND s.days_to_rotten > 0
     LEFT JOIN crm_user u ON u.tenant_id = $1 AND u.copy_id = d.copy_id AND u.crm_id = d.owner_id AND NOT u.active
     CROSS JOIN LATERAL (${INCOMPLETE}) gap (since)
     WHERE d.tenant_id = $1 AND d.copy_id = $2 AND d.crm_id = ANY ($4)`,
    [tenantId, copyId, now, dealIds],
    FACTS,
  );
  const [first] = found;
  const copy = { readAt: first?.readAt ?? null, asOf: first?.asOf ?? null, hasMail: first?.hasMail ?? false };
  return { copy, deals: found };
}
