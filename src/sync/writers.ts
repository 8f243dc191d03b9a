import { keepSnoozes, SNOOZE } from "../connections/copies";
import {
  changesOf,
  type DealChange,
  JOURNALED,
  KNOWN_PARTICIPANTS,
  type KnownParticipants,
  participantChanges,
  writeChanges,
} from "../connections/journal";
import { LATE, newcomers } from "../connections/visibility";
import { MAX_IDS } from "../crm/api";
import type * as crm from "../crm/parsing/records";
import { type CopyScope } from "../database/database";
import { ms, rowsOf, rowsOfEach } from "../database/rows";
import { jsonRows, newestOf, type Synced, type UpsertOptions, upsertPage, type WrittenRow } from "../database/upsert";
import { CrmUserRow, PipelineRow, StageRow } from "../entities/crm-company";
import { DealRow } from "../entities/deal";
import { ActivityRow, NOTE_UPSERT, NoteRow, noteRow, OrganizationRow, PersonRow } from "../entities/records";
import { mailboxIn, mailboxOf, mailDomainOf, normalizeAddress, websiteDomainOf } from "../platform/email-address";
import type { Held } from "./runs";

export interface Written {
  /** Of what was inserted or changed. */
  ids: readonly number[];
  /** Of those the ones on which silence may hang otherwise than before, and the deals that they have left. */
  touched: readonly number[];
  left: readonly number[];
  /** Of what the page says is deleted. */
  gone: readonly number[];
  removed: number;
}

/** Puts a page into the copy, within the caller's transaction. Where no deal is matched, nothing is touched. */
export type Write = (copy: CopyScope & Partial<Held>, now: Date) => Promise<Written>;

/**
 * Makes a page ready: what costs time is done while the page before is still being committed.
 * @param unread how many records of the page could not be read
 */
export type Writer<T> = (records: readonly T[], unread: number) => Write;

export const isDeleted = (record: object) => "deleted" in record && record.deleted === true;

type WrittenPage = Written & { rows: readonly WrittenRow[] };
type WritePage = (copy: Parameters<Write>[0], now: Date, tells?: boolean) => Promise<WrittenPage>;

function newOf<T extends { id: number }>(kept: readonly T[], { rows }: WrittenPage): T[] {
  const isNew = new Set(rows.flatMap(({ id, told }) => (told === "NEW" ? [id] : [])));
  return kept.filter(({ id }) => isNew.has(id));
}

/** Splits a page into what stays and what the CRM flags as deleted, and writes both. */
function pageOf<T extends { id: number; updateTime?: string | null }, R extends object>(
  page: readonly T[],
  entity: new () => R,
  toRow: (record: T) => Synced<R>,
  options?: UpsertOptions,
): { kept: readonly T[]; write: WritePage } {
  const records = newestOf(page);
  const kept = records.filter((record) => !isDeleted(record));
  const gone = records.filter(isDeleted).map(({ id }) => id);
  const upsert = upsertPage(entity, kept.map(toRow), options);
  const write: WritePage = async (copy, now, tells) => {
    const rows = await upsert(copy, now, tells);
    const removed = await removeRecords(copy, entity, gone, now);
    await askForActivities(copy, entity, gone);
    const ids = rows.map(({ id }) => id);
    return { rows, ids, touched: ids, left: [], gone, removed };
  };
  return { kept, write };
}

/** SQL over `t`: the rows' deal, and what else of them silence is judged by (`briefing/quiet/read-quiet.ts`). */
const JUDGED_BY = {
  persons: ["NULL", "t.last_incoming_mail_time", ms("t.last_outgoing_mail_time")],
  activities: [
    ...["t.deal_id", "t.person_id", "t.participant_ids::text", "t.type", "t.done", "t.due_at", "t.due_has_time"],
    // Once it is done, its last change counts as long as the CRM does not say when that was.
    ...["t.happened_at", "t.done_at", "CASE WHEN t.done AND t.done_at IS NULL THEN t.update_time END"],
  ],
  // Whether a note is ours stands in its text.
  notes: ["t.deal_id", "t.add_time", "md5(t.content)"],
};

/** Most changes are of a name, a phone number or a subject, on which no verdict hangs. */
function judgedPage<T extends { id: number; updateTime?: string | null }, R extends object>(
  page: readonly T[],
  entity: new () => R,
  toRow: (record: T) => Synced<R>,
  judgedBy: readonly string[],
  options?: UpsertOptions,
): { kept: readonly T[]; write: WritePage } {
  const { kept, write } = pageOf(page, entity, toRow, { ...options, told: judgedBy });
  const writeJudged: WritePage = async (copy, now, tells = copy.hasMatchedDeals) => {
    const written = await write(copy, now, tells);
    const touched = written.rows.filter(({ told }) => told !== null && copy.hasMatchedDeals !== false);
    const left = touched.flatMap(({ told }) => (told && told !== "NEW" && told.was[0] ? Number(told.was[0]) : []));
    return { ...written, touched: touched.map(({ id }) => id), left };
  };
  return { kept, write: writeJudged };
}

/**
 * All users in one page. Whether the CRM lists deactivated ones is not known: one who is no longer listed is not active,
 * and stays, because the name belongs to what that user did.
 */
export const writeUsers: Writer<crm.CrmUser> = (users, unread) => {
  const listed = users.map(({ id }) => id);
  const { write } = pageOf(users, CrmUserRow, ({ id, name, email, active }) => ({
    crmId: id,
    name,
    email,
    mailbox: mailboxIn(email),
    active,
  }));
  return async (copy, now) => {
    const written = await write(copy, now);
    if (listed.length > 0 && unread === 0) {
      const sql =
        "UPDATE crm_user SET active = false WHERE tenant_id = $1 AND copy_id = $2 AND active AND crm_id <> ALL ($3)";
      await copy.rows(sql, [copy.tenantId, copy.copyId, listed]);
    }
    return written;
  };
};

export const writePipelines: Writer<crm.CrmPipeline> = (page) =>
  pageOf(page, PipelineRow, ({ id, name, position }) => ({ crmId: id, name, position })).write;

export const writeStages: Writer<crm.CrmStage> = (page) =>
  pageOf(page, StageRow, ({ id, deleted, ...stage }) => ({ crmId: id, ...stage })).write;

export const writeOrganizations: Writer<crm.CrmOrganization> = (page) =>
  pageOf(page, OrganizationRow, ({ id, deleted, ...organization }) => ({
    crmId: id,
    websiteDomain: websiteDomainOf(organization.website),
    ...organization,
  })).write;

export const writePersons: Writer<crm.CrmPerson> = (page) => {
  const toRow = ({ id, deleted, ...person }: crm.CrmPerson) => ({ crmId: id, ...person });
  const { kept, write } = judgedPage(page, PersonRow, toRow, JUDGED_BY.persons);
  const writeAddresses = addressesOf(kept);
  return async (copy, now) => {
    const written = await write(copy, now, true);
    await writeAddresses(copy, written.ids, newOf(kept, written), now);
    const mailed = written.rows.flatMap(({ id, told }) => {
      const [was, became] = told && told !== "NEW" ? [told.was[2], told.became[2]] : [];
      return was && was !== became ? [{ id, at: Number(was) }] : [];
    });
    if (mailed.length > 0) await copy.rows(KEEP_FIRST_MAILS, [copy.tenantId, copy.copyId, jsonRows(mailed)]);
    return written;
  };
};

/** Of a deal that a meeting is about later, our first mail is gone from the CRM by then: with each mail that moves the time. */
const KEEP_FIRST_MAILS = `
  WITH f AS MATERIALIZED (SELECT DISTINCT ON (o.crm_id) o.crm_id, to_timestamp(r.at / 1000.0) AS at, r.id FROM jsonb_to_recordset($3::jsonb) AS r (id bigint, at bigint)
    CROSS JOIN LATERAL (SELECT x.crm_id FROM ${rowsOf("deal", "person_id", "r.id")} x
      UNION SELECT x.deal_id FROM ${rowsOf("deal_participant", "person_id", "r.id")} x) h
    CROSS JOIN LATERAL ${rowsOf("deal", "crm_id", "h.crm_id")} o
    WHERE o.status = 'open' AND o.first_mail_at IS NULL AND (${ms("o.add_time")} <= r.at) IS NOT FALSE ORDER BY o.crm_id, r.at, r.id)
  UPDATE deal d SET first_mail_at = f.at, first_mail_person_id = f.id FROM f
  WHERE d.tenant_id = $1 AND d.copy_id = $2 AND d.crm_id = ANY (ARRAY (SELECT crm_id FROM f)) AND d.crm_id = f.crm_id`;

/** Replaces the addresses of those persons that were changed by what they have now, and notes whether one came late. */
function addressesOf(persons: readonly crm.CrmPerson[]) {
  const present = persons.flatMap(({ id, emails }) => {
    const addresses = new Set(emails.map(({ value }) => normalizeAddress(value)).filter((address) => address !== null));
    return [...addresses].map((address) => ({
      personId: id,
      address,
      mailbox: mailboxOf(address),
      domain: mailDomainOf(address),
    }));
  });
  type Persons = readonly crm.CrmPerson[];
  return async ({ tenantId, copyId, rows }: CopyScope, changed: readonly number[], came: Persons, now: Date) => {
    if (changed.length === 0) return;
    const known = new Set(changed);
    const kept = present.filter(({ personId }) => known.has(personId));
    const columns = (["personId", "address", "mailbox", "domain"] as const).map((name) => kept.map((row) => row[name]));
    await rows(WRITE_ADDRESSES, [tenantId, copyId, newcomers(came), now, changed, ...columns]);
  };
}

/** SQL: whether a copy has such rows. Unless one is there nothing is deleted or changed, for which all of a copy may be read. */
const someOf = (table: string, column: string, ids: string, are = "true") =>
  `EXISTS (SELECT 1 FROM ${rowsOfEach(table, column, `${ids}::bigint[]`)} x WHERE ${are})`;
const ABSENT = "NOT EXISTS (SELECT 1 FROM present p WHERE p.person_id = x.person_id AND p.address = x.address)";

const WRITE_ADDRESSES = `
  WITH late AS (${LATE("PERSONS")}
  ), present AS (
    SELECT * FROM unnest($6::bigint[], $7::text[], $8::text[], $9::text[]) AS r (person_id, address, mailbox, domain)
  ), gone AS (
    DELETE FROM person_address a
    WHERE a.tenant_id = $1 AND a.copy_id = $2 AND a.person_id = ANY ($5)
      AND NOT EXISTS (SELECT 1 FROM present p WHERE p.person_id = a.person_id AND p.address = a.address)
      AND ${someOf("person_address", "person_id", "$5", ABSENT)}
  )
  INSERT INTO person_address (tenant_id, copy_id, address, person_id, mailbox, domain)
  SELECT $1::bigint, $2::bigint, p.address, p.person_id, p.mailbox, p.domain FROM present p
  ON CONFLICT DO NOTHING`;

export const writeDeals: Writer<crm.CrmDeal> = (page) => {
  const options = { silent: ["participantsDue"], insertOnly: KEPT_OF_DEALS, told: JOURNALED.map(({ sql }) => sql) };
  const { kept, write } = pageOf<crm.CrmDeal, SaidOfDeal>(page, DealRow, dealRow, options);
  const alone = new Set(kept.filter(({ participantsCount }) => participantsCount === 0).map(({ id }) => id));
  return async (copy, now) => {
    const written = await write(copy, now);
    const emptied = written.ids.filter((id) => alone.has(id));
    const cleared = await clearParticipants(copy, emptied);
    await comeIn(copy, newOf(kept, written), now);
    await writeChanges(copy, [...written.rows.flatMap(changesOf), ...cleared], now);
    return written;
  };
};

const KEPT_OF_DEALS = ["participantsKnown", "participantsOnceKnown"];

/** Without what a page says nothing of: a new deal has nothing there, and an old one what it had. */
type SaidOfDeal = Omit<DealRow, "participantsAskedAt" | "firstMailAt" | "firstMailPersonId" | SnoozeColumn>;
type SnoozeColumn = "snoozeReason" | "snoozedBy" | "snoozedAt" | "snoozedUntil" | "snoozeEndsAt";

function dealRow({ id, deleted, status, ...deal }: crm.CrmDeal): Synced<SaidOfDeal> {
  return {
    crmId: id,
    status: status as DealRow["status"],
    participantsDue: deal.participantsCount !== 0,
    participantsKnown: deal.participantsCount === 0,
    participantsOnceKnown: deal.participantsCount === 0,
    ...deal,
  };
}

/** Gives deals that have just come into the copy the snoozes that are kept of them. */
async function comeIn({ tenantId, copyId, rows }: CopyScope, deals: readonly crm.CrmDeal[], now: Date): Promise<void> {
  if (deals.length === 0) return;
  const ids = deals.map(({ id }) => id);
  await rows(
    `WITH late AS (${LATE("DEALS")}
     ), kept AS (
       DELETE FROM kept_snooze WHERE tenant_id = $1 AND deal_id = ANY ($5) AND crm_company_id = (
         SELECT s.crm_company_id FROM synced_copy s WHERE s.tenant_id = $1 AND s.id = $2)
       RETURNING deal_id, ${SNOOZE}
     )
     UPDATE deal d SET (${SNOOZE}) = (kept.${SNOOZE.replaceAll(", ", ", kept.")}) FROM kept
     WHERE d.tenant_id = $1 AND d.copy_id = $2 AND d.crm_id = ANY ($5) AND d.crm_id = kept.deal_id`,
    [tenantId, copyId, newcomers(deals), now, ids],
  );
}

/** A deal with no participants needs no request to know them. */
async function clearParticipants(
  { tenantId, copyId, rows }: CopyScope,
  dealIds: readonly number[],
): Promise<DealChange[]> {
  if (dealIds.length === 0) return [];
  const [cleared] = await rows<{ known: KnownParticipants[] }>(
    `WITH gone AS (
       DELETE FROM deal_participant x WHERE x.tenant_id = $1 AND x.copy_id = $2 AND x.deal_id = ANY ($3)
         AND ${someOf("deal_participant", "deal_id", "$3")}
     ), mended AS (
       DELETE FROM data_gap g
       WHERE g.tenant_id = $1 AND g.copy_id = $2 AND g.resource = 'DEAL_PARTICIPANTS' AND g.crm_id = ANY ($3)
     ), known AS (
       UPDATE deal SET participants_known = true, participants_once_known = true
       WHERE tenant_id = $1 AND copy_id = $2 AND crm_id = ANY ($3) AND NOT participants_known
         AND ${someOf("deal", "crm_id", "$3", "NOT x.participants_known")}
     )
     SELECT (${KNOWN_PARTICIPANTS("$3")}) AS known`,
    [tenantId, copyId, dealIds],
    { known: "json" },
  );
  return participantChanges(cleared?.known ?? [], () => []);
}

export const writeActivities: Writer<crm.CrmActivity> = (page) =>
  judgedPage(page, ActivityRow, activityRow, JUDGED_BY.activities).write;

function activityRow({ id, deleted, dueDate, dueTime, doneTime, ...activity }: crm.CrmActivity): Synced<ActivityRow> {
  const dueAt = dueDate && `${dueDate}T${dueTime ?? "00:00:00"}Z`;
  return {
    crmId: id,
    dueAt,
    dueHasTime: dueDate !== null && dueTime !== null,
    doneAt: doneTime,
    // A call of Monday is often ticked off on Friday. One with a day and no time counts from 00:00 UTC.
    happenedAt: activity.done ? (dueAt ?? doneTime ?? activity.addTime) : null,
    ...activity,
  };
}

export const writeNotes: Writer<crm.CrmNote> = (page) =>
  judgedPage(page, NoteRow, noteRow, JUDGED_BY.notes, NOTE_UPSERT).write;

/**
 * Persons leave their deals. Merged into another, one has left its place to that one, which moves neither the deal's count
 * nor, as far as is known, its update time: the deal has to be asked again. $3: the ids of the persons.
 */
const LEAVE_DEALS = `
  WITH gone AS (
    DELETE FROM deal_participant WHERE tenant_id = $1 AND copy_id = $2 AND person_id = ANY ($3) RETURNING deal_id
  ), due AS (
    UPDATE deal SET participants_due = true
    WHERE tenant_id = $1 AND copy_id = $2 AND crm_id IN (SELECT deal_id FROM gone)
  )
  SELECT (${KNOWN_PARTICIPANTS("ARRAY (SELECT DISTINCT deal_id FROM gone)")}) AS known`;

async function leaveDeals(copy: CopyScope, ids: readonly number[], now: Date): Promise<void> {
  const { tenantId, copyId, rows } = copy;
  const [left] = await rows<{ known: KnownParticipants[] }>(LEAVE_DEALS, [tenantId, copyId, ids], { known: "json" });
  const gone = new Set(ids);
  const changes = participantChanges(left?.known ?? [], ({ personIds }) => personIds.filter((id) => !gone.has(id)));
  await writeChanges(copy, changes, now);
}

/** With who has answered the answers go: our first mail to them must not stand there as one that nobody answered. */
const FORGET_ANSWERED = `
  UPDATE deal d SET first_mail_at = NULL, first_mail_person_id = NULL
  WHERE d.tenant_id = $1 AND d.copy_id = $2 AND d.first_mail_person_id = ANY ($3) AND d.crm_id = ANY (ARRAY (
      SELECT x.deal_id FROM deal_participant x WHERE x.tenant_id = $1 AND x.copy_id = $2 AND x.person_id = ANY ($3)
      UNION SELECT o.crm_id FROM deal o WHERE o.tenant_id = $1 AND o.copy_id = $2 AND o.person_id = ANY ($3)))
    AND EXISTS (SELECT 1 FROM person p WHERE p.tenant_id = $1 AND p.copy_id = $2 AND p.crm_id = d.first_mail_person_id
      AND p.last_incoming_mail_time IS NOT NULL OFFSET 0)`;

/** Nothing has happened in the CRM to who is erased: the deals keep the id, and are asked again as nobody hears more of it. */
const ASK_DEALS = `
  UPDATE deal SET participants_due = true WHERE tenant_id = $1 AND copy_id = $2 AND crm_id IN (
    SELECT x.deal_id FROM deal_participant x WHERE x.tenant_id = $1 AND x.copy_id = $2 AND x.person_id = ANY ($3))`;

const goesWith = (table: string, column: string) =>
  `DELETE FROM ${table} WHERE tenant_id = $1 AND copy_id = $2 AND ${column} = ANY ($3)`;
/** What goes with a record. $1: the tenant, $2: the copy, $3: the ids of the records. */
const DEPENDENTS = new Map<unknown, readonly string[]>([
  [PersonRow, [goesWith("person_address", "person_id")]],
  [
    DealRow,
    [
      ...["deal_participant", "deal_silence", "deal_change"].map((table) => goesWith(table, "deal_id")),
      // Of a deal that is gone no participants are missing.
      `${goesWith("data_gap", "crm_id")} AND resource = 'DEAL_PARTICIPANTS'`,
    ],
  ],
]);

/** Removes records from the copy with what belongs to them, as they are gone from the CRM. @returns how many were there */
export async function removeRecords(
  copy: CopyScope,
  entity: new () => object,
  ids: readonly number[],
  now: Date,
): Promise<number> {
  if (ids.length === 0) return 0;
  if (entity === PersonRow) {
    await copy.rows(FORGET_ANSWERED, [copy.tenantId, copy.copyId, ids]);
    await leaveDeals(copy, ids, now);
  }
  if (entity === DealRow) await keepSnoozes(copy, ids, now);
  return deleteRecords(copy, entity, ids);
}

/** The same for a person who is erased here. */
export async function removeErased(copy: CopyScope, personId: number): Promise<void> {
  for (const sql of [FORGET_ANSWERED, ASK_DEALS]) await copy.rows(sql, [copy.tenantId, copy.copyId, [personId]]);
  await deleteRecords(copy, PersonRow, [personId]);
}

async function deleteRecords(copy: CopyScope, entity: new () => object, ids: readonly number[]): Promise<number> {
  const { tenantId, copyId, rows, metadata } = copy;
  for (const sql of DEPENDENTS.get(entity) ?? []) await rows(sql, [tenantId, copyId, ids]);
  const { tableName } = metadata(entity);
  const gone = await rows(
    `DELETE FROM ${tableName} WHERE tenant_id = $1 AND copy_id = $2 AND crm_id = ANY ($3) RETURNING crm_id`,
    [tenantId, copyId, ids],
  );
  return gone.length;
}

/**
 * The newest activities of what is removed are asked for by their ids (`probes.ts`): merged, a record has left them to another,
 * which no list may tell. Not in a run that walks through all of theirs too.
 */
export async function askForActivities(
  copy: CopyScope,
  entity: new () => object,
  ids: readonly number[],
): Promise<void> {
  const column = entity === DealRow ? "deal_id" : "person_id";
  if ((entity !== DealRow && entity !== PersonRow) || ids.length === 0) return;
  await copy.rows(
    `INSERT INTO missed_record (tenant_id, copy_id, resource, crm_id)
     SELECT t.tenant_id, t.copy_id, 'ACTIVITIES', t.crm_id FROM ${rowsOfEach("activity", column, "$3::bigint[]")} t
     ORDER BY t.crm_id DESC LIMIT ${MAX_IDS} ON CONFLICT DO NOTHING`,
    [copy.tenantId, copy.copyId, ids],
  );
}
