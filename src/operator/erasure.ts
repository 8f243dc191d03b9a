import { recordAudit } from "../auth/policies";
import { lockMeeting, lockMeetings, matchMeetings } from "../briefing/match-meeting";
import { searchTextOf } from "../briefing/meeting-rows";
import { hangingOn, judgeChanged } from "../briefing/quiet/stored-silence";
import { lockConnection, moveToNotConnected } from "../connections/connection";
import { eraseTexts, holdCopyToJudge, purgeCopy, retireCopy } from "../connections/copies";
import type { KeepOut } from "../connections/keep-out";
import type { Database, TenantScope } from "../database/database";
import { inWindow, isWithin, windowsOf } from "../database/keyset";
import { inBatches } from "../database/upsert";
import { ConnectionRow, CredentialRow, SyncedCopyRow } from "../entities/connection";
import { CrmUserRow } from "../entities/crm-company";
import { isOfTenants, type Texts, textsOf } from "../entities/index";
import { MeetingRow } from "../entities/meeting";
import type { Clock } from "../platform/clock";
import { ERASED, nameBeside } from "../platform/email-address";
import type { Logger } from "../platform/logger";
import { mentionsOf, type Patterns, withoutMentions } from "../platform/mentions";
import { cancelRuns } from "../sync/runs";
import { removeErased } from "../sync/writers";
import { IS_SETTLED, reduceReceipts } from "../writeback/write-history";
import { findPerson, isOf, mentions, NotDoneError, type Person, patternFor, type Said } from "./person";

/** Meetings that are matched again for one synced person. */
const MOST_KNOWN = 1_000;

export interface ErasingParts {
  database: Database;
  keepOut: KeepOut;
  clock: Clock;
  logger: Logger;
}

/** Who was meant, and how many rows of a kind were changed or removed. */
export type Erased = Record<"texts" | "meetings" | "records" | "receipts" | "unsettled", number> & { person: Person };

/**
 * Erases what is held about a person, in batches. By whom the rest is found goes last, so that an erasure that was cut off
 * goes on when it is begun again: texts by the names, then meetings by the addresses, then the synced persons themselves.
 * @param keepsOut whether the addresses are kept out from now on, which comes first: what is stored meanwhile has them no more
 */
export async function erasePerson(
  parts: ErasingParts,
  tenantId: number,
  address: string,
  keepsOut: boolean,
  said?: Said,
): Promise<Erased> {
  const { database, clock, logger } = parts;
  const scope = database.tenant(tenantId);
  const person = await (keepsOut ? keepPersonOut(parts, scope, address, said) : findPerson(scope, address, said));
  const patterns = mentionsOf(person.mailboxes, person.names);
  await dropRejected(scope, patterns);
  // Before texts: what is settled meanwhile takes its value away by itself.
  const { receipts, unsettled } = await reduceReceipts(scope, person.targets, patterns, clock());
  await inWindow(scope, (rows) => rows(KEPT_FOR_OTHERS, [tenantId, person.meetingIds, [...person.mailboxes]]));
  let texts = 0;
  for (const { copyId, crmId } of person.records) texts += await eraseTexts(scope, copyId, crmId);
  for (const one of textsOf(database)) for (const pair of patterns) texts += await eraseMentions(scope, one, pair);
  for (const meetingId of person.meetingIds) await leaveMeeting(parts, scope, person, meetingId);
  for (const record of person.records) await removePerson(parts, scope, person, record);
  await eraseUsers(scope, person);
  await scope.transaction((held) => recordAudit(held, logger, { action: "PERSON_ERASED", actor: null, at: clock() }));
  const records = person.records.filter(({ name }) => name !== null).length;
  return { person, texts, meetings: person.meetingIds.length, records, receipts, unsettled };
}

/** Looks for the person again once nothing more of the person is stored. */
async function keepPersonOut(parts: ErasingParts, scope: TenantScope, address: string, said?: Said): Promise<Person> {
  const { keepOut, clock, logger } = parts;
  const person = await findPerson(scope, address, said);
  await scope.transaction(async (held) => {
    await keepOut.add(held, person, clock());
    await recordAudit(held, logger, { action: "PERSON_KEPT_OUT", actor: null, at: clock() });
  });
  return findPerson(scope, address, said);
}

/** Lets a person come again who was kept out. @returns how many addresses */
export function letPersonIn({ database, keepOut, clock, logger }: ErasingParts, tenantId: number, address: string) {
  return database.tenant(tenantId).transaction(async (held) => {
    const addresses = await keepOut.letIn(held, address);
    if (addresses > 0) await recordAudit(held, logger, { action: "PERSON_LET_IN", actor: null, at: clock() });
    return addresses;
  });
}

/** A person's record that was kept aside is the person's, whatever else it holds. */
const dropRejected = (scope: TenantScope, patterns: readonly Patterns[]) =>
  inBatches(scope, {
    table: "rejected_record",
    where: "resource = 'PERSONS' AND payload::text ~* ANY ($2::text[])",
    parameters: [patterns.map(([, inJson]) => inJson)],
  });

async function eraseMentions(scope: TenantScope, texts: Texts, pair: Patterns): Promise<number> {
  const { table, columns } = texts;
  const changes = columns.map(
    (one) =>
      `${one.name} = regexp_replace(${one.name}::text, ${patternFor(one)}, '\\1${ERASED}', 'gi')${one.isJson ? "::jsonb" : ""}`,
  );
  const stays = table === "field_write" ? `AND ${IS_SETTLED}` : "";
  let erased = 0;
  for await (const window of windowsOf(scope, texts)) {
    const sql = `UPDATE ${table} SET ${changes.join(", ")}
      WHERE tenant_id = $1 AND ${isWithin(texts, window)} AND (${mentions(texts)}) ${stays} RETURNING 1 AS changed`;
    erased += (await inWindow(scope, (rows) => rows(sql, [scope.tenantId, [pair], ...window]))).length;
  }
  return erased;
}

/** Where the person is a user of the CRM as well: what the user did keeps the id, and so does the connection. */
async function eraseUsers({ tenantId, typed }: TenantScope, { users, hasAuthorized }: Person): Promise<void> {
  const bound = { boundEmail: ERASED, boundUserName: ERASED };
  if (hasAuthorized) await typed((orm) => orm.update(ConnectionRow, { tenantId }, bound));
  const erased = { name: ERASED, email: ERASED, mailbox: null };
  for (const user of users) await typed((orm) => orm.update(CrmUserRow, { tenantId, ...user }, erased));
}

/** A deal is kept for the others for whom it was, or for want of them those who are left. Before texts: who had left stays one of them. */
const KEPT_FOR_OTHERS = `UPDATE meeting_match SET last_deal = jsonb_set(last_deal, '{people}', coalesce(last_deal -> 'people', '[]') - $3::text[])
  WHERE tenant_id = $1 AND meeting_id = ANY ($2)`;
/** The meeting goes on without the attendee, as its invitation called him: matched again, and what hangs on it judged again. */
function leaveMeeting(parts: ErasingParts, scope: TenantScope, person: Person, meetingId: string): Promise<void> {
  return scope.transaction(async (held) => {
    const meeting = await lockMeeting(held, meetingId);
    if (!meeting) return;
    const { row } = meeting;
    const attendees = meeting.attendees.filter(({ email }) => !isOf(person, email));
    const gone = meeting.attendees.filter((one) => !attendees.includes(one));
    const names = gone.flatMap(({ name, email }) => [name?.trim() || [], nameBeside(email) ?? []].flat());
    row.title = withoutMentions(row.title, [], names);
    const changed = { title: row.title, searchText: searchTextOf(row.title, attendees) };
    await held.typed((orm) => orm.update(MeetingRow, { tenantId: row.tenantId, id: row.id }, changed));
    await matchMeetings(held, [{ row, attendees }], parts.clock(), "SYNCED", parts.logger);
  });
}

/** The synced person with its addresses; meetings that knew it otherwise and deals that hung on it are looked at again. */
async function removePerson(
  parts: ErasingParts,
  scope: TenantScope,
  person: Person,
  { copyId, crmId }: Person["records"][number],
): Promise<void> {
  const inHand = await scope.transaction(async (held) => {
    const copy = { ...held, copyId };
    const isLive = await holdCopyToJudge(held, copyId);
    const before = isLive ? await hangingOn(copy, "PERSONS", [crmId]) : [];
    const known = await held.rows<{ id: string }>(
      `SELECT meeting_id AS id FROM matched_record
       WHERE tenant_id = $1 AND copy_id = $2 AND entity = 'PERSON' AND crm_id = $3 ORDER BY meeting_id LIMIT ${MOST_KNOWN}`,
      [held.tenantId, copyId, crmId],
      { id: "text" },
    );
    const knowing = known.map(({ id }) => id);
    await removeErased(copy, crmId);
    // Who records a meeting holds it and waits for the copy: nobody is waited for here.
    const free = await lockMeetings(held, knowing);
    for (const meeting of free) await matchMeetings(held, [meeting], parts.clock(), "SYNCED", parts.logger);
    const inHand = knowing.filter((id) => !free.some(({ row }) => row.id === id));
    if (!isLive) return inHand;
    // Those that are matched still: of one that is matched no more would be forgotten what was told of it last.
    const deals = before.map(({ dealId }) => dealId);
    const left = (await hangingOn(copy, "DEALS", deals)).map(({ dealId }) => dealId);
    await judgeChanged(copy, "PERSONS", [crmId], left, parts.clock());
    return inHand;
  });
  for (const id of inHand) await leaveMeeting(parts, scope, person, id);
}

/** What proves that a tenant was erased, and when; nothing else of it stays but its name and number. */
const PROOF = "action = 'TENANT_ERASED'";
/** They go at once: somebody who connects meanwhile would be left with a copy that no connection has, and could connect no more. */
const LAST = ["credential", "connection"];
type TenantParts = Omit<ErasingParts, "keepOut">;
/** Who still goes on after so many passes will not cease. */
const MOST_PASSES = 100;

/**
 * Erases a tenant that leaves: its connection is ended first, then its copies go, then all its rows in batches, until none is
 * found, as its users may go on. Begun again after a kill it goes on. @returns how many rows went besides the copies'
 * @throws NotDoneError where they do not cease
 */
export async function eraseTenant(
  parts: TenantParts,
  tenantId: number,
  stop: AbortSignal,
  passes = MOST_PASSES,
): Promise<number> {
  if (passes === 0) throw new NotDoneError("Its users go on and make new rows. End their access, then say this again.");
  const { database, clock, logger } = parts;
  const scope = database.tenant(tenantId);
  await scope.transaction(async (held) => {
    const { state, copyId } = await lockConnection(held);
    await held.typed((orm) => orm.delete(CredentialRow, { tenantId }));
    if (state === "NOT_CONNECTED" || copyId === null) return;
    await moveToNotConnected(held, state, clock());
    await retireCopy(held, copyId, { cancelRuns: (of, id) => cancelRuns(of, id, clock()) });
  });
  for (const { id: copyId } of await scope.typed((orm) => orm.findBy(SyncedCopyRow, { tenantId })))
    await purgeCopy(database, { tenantId, copyId }, stop, logger);
  let gone = 0;
  for (const { tableName: table } of database.tables.filter(isOfTenants)) {
    if (table === "synced_copy" || LAST.includes(table)) continue;
    gone += await inBatches(scope, { table, where: table === "audit_event" ? `NOT ${PROOF}` : "true" });
  }
  const isErased = gone === 0 && (await scope.transaction((held) => endTenant(held, parts)));
  return gone + (isErased ? 0 : await eraseTenant(parts, tenantId, stop, passes - 1));
}

/** @returns false where somebody has connected since its copies went */
async function endTenant(held: TenantScope, { clock, logger }: TenantParts): Promise<boolean> {
  await lockConnection(held);
  if (await held.typed((orm) => orm.existsBy(SyncedCopyRow, { tenantId: held.tenantId }))) return false;
  for (const table of LAST) await held.rows(`DELETE FROM ${table} WHERE tenant_id = $1`, [held.tenantId]);
  await recordAudit(held, logger, { action: "TENANT_ERASED", actor: null, at: clock() });
  return true;
}
