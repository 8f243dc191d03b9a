import type { CrmDeal } from "../crm/parsing/records";
import type { CopyScope } from "../database/database";
import type { QueuedDeal } from "./participant-queue";

/**
 * Whether a deal's one participant is its person: the CRM does not say, and for most deals it would save the request. A
 * company's own answers decide it, and one that says otherwise for ever (decision 0073).
 */
export interface RuleOfOne {
  holds: boolean;
  refuted: boolean;
}

/** Deals that have to agree, without exception, before a deal is not asked. */
const ENOUGH = 50;

/** A deal with what the CRM answered. */
type Answered = QueuedDeal & { personIds: readonly number[] };

const isLonely = ({ count, personId }: QueuedDeal) => count === 1 && personId !== null;
const isOwn = (personId: number | null, personIds: readonly number[]) =>
  personIds.length === 1 && personIds[0] === personId;

/** Deals that answered for the first time, and as the rule says. */
export const agreeing = (answers: readonly Answered[]): number =>
  answers.filter((deal) => isLonely(deal) && !deal.wasAsked && isOwn(deal.personId, deal.personIds)).length;

/** Deals that answered otherwise: perhaps they have changed since their list was read. */
export const odd = (answers: readonly Answered[]): Answered[] =>
  answers.filter((deal) => isLonely(deal) && !isOwn(deal.personId, deal.personIds));

/** Whether one of them, as the CRM shows it now, still has that person and one participant. */
export function isRefutedBy(oddOnes: readonly Answered[], shown: readonly CrmDeal[]): boolean {
  const now = new Map(shown.map((deal) => [deal.id, deal]));
  return oddOnes.some(({ dealId, personId }) => {
    const deal = now.get(dealId);
    return deal?.participantsCount === 1 && deal.personId === personId;
  });
}

const RULE = `NOT lone_participants_refuted AND lone_participants_confirmed >= ${ENOUGH} AS holds, lone_participants_refuted AS refuted`;
const SHAPE = { holds: "flag", refuted: "flag" } as const;

export async function readRule({ tenantId, copyId, rows }: CopyScope): Promise<RuleOfOne> {
  const sql = `SELECT ${RULE} FROM synced_copy WHERE tenant_id = $1 AND id = $2`;
  const [rule] = await rows<RuleOfOne>(sql, [tenantId, copyId], SHAPE);
  return rule ?? { holds: false, refuted: true };
}

/** A statement of its own: a transaction of a run shares the copy's row with others, and two that change it would wait for each other. */
export async function confirmRule(copy: CopyScope, deals: number): Promise<RuleOfOne> {
  if (deals === 0) return readRule(copy);
  const { tenantId, copyId, rows } = copy;
  const sql = `UPDATE synced_copy SET lone_participants_confirmed = lone_participants_confirmed + $3
    WHERE tenant_id = $1 AND id = $2 RETURNING ${RULE}`;
  const [rule] = await rows<RuleOfOne>(sql, [tenantId, copyId, deals], SHAPE);
  return rule ?? { holds: false, refuted: true };
}

/** From now on every deal is asked, and those that were not are due; one statement, so that no death leaves one half. */
export async function refuteRule({ tenantId, copyId, rows }: CopyScope): Promise<void> {
  await rows(
    `WITH refuted AS (
       UPDATE synced_copy SET lone_participants_refuted = true
       WHERE tenant_id = $1 AND id = $2 AND NOT lone_participants_refuted RETURNING 1
     )
     UPDATE deal d SET participants_due = true, participants_known = false
     WHERE d.tenant_id = $1 AND d.copy_id = $2 AND d.participants_count = 1 AND d.participants_asked_at IS NULL
       AND d.participants_known AND EXISTS (SELECT 1 FROM refuted)`,
    [tenantId, copyId],
  );
}
