import { parseArgs } from "node:util";
import { hasPerson } from "../connections/copies";
import type { Database, TenantScope } from "../database/database";
import { inWindow, isWithin, windowsOf } from "../database/keyset";
import { type Texts, textsOf } from "../entities/index";
import { ERASED, mailboxIn, nameBeside } from "../platform/email-address";
import { ServiceError } from "../platform/errors";
import { isOnes, KNOWS_LETTERS, mentionsOf, type Patterns, withoutMentions } from "../platform/mentions";
import { readTargets, readTargetsAt } from "../writeback/write-history";
import { shownInTerminal } from "./checks";

/** Attendees that are looked at with one statement; addresses are compared as matching does, which SQL cannot. */
const ATTENDEES_A_READ = 5_000;
/** Before all meetings. */
const NIL = "00000000-0000-0000-0000-000000000000";
/** The CRM may hold a person twice; an address that stands at more is a department's. */
const MOST_RECORDS_A_COPY = 3;
const NOT_ONES = `More than ${MOST_RECORDS_A_COPY} persons of the CRM have this address: it is not one person's. Name another.`;
const TOO_FEW_LETTERS =
  "Where the tenant's rows lie LC_CTYPE is C, so names are not found: move it to a database of LOCALE 'C.UTF-8', say.";
/** Rows of one kind in an export; what is beyond is said in it. */
const MOST_OF_A_KIND = 10_000;

/** What an operator asked for cannot be done; the message says why, and what to do. */
export class NotDoneError extends ServiceError {
  readonly code = "NOT_DONE";
}

/** What words may follow a command on a tenant: those that its form names. */
const OPTIONS = {
  yes: { type: "boolean" },
  "keep-out": { type: "boolean" },
  name: { type: "string", multiple: true },
  record: { type: "string", multiple: true },
} as const;
const optionsIn = (args: string[]) => parseArgs({ args, options: OPTIONS, allowPositionals: true });
export type Options = ReturnType<typeof optionsIn>["values"];

/** @throws NotDoneError where the words are not of the form */
export function optionsOf(given: string[], form: string): ReturnType<typeof optionsIn> {
  const [plain = ""] = form.split(" [");
  try {
    const options = optionsIn(given);
    const areOfForm = Object.keys(options.values).every((name) => form.includes(`[--${name}`));
    if (areOfForm && options.positionals.length === plain.split(" ").length - 1) return options;
  } catch (cause) {
    throw new NotDoneError(`Say: ${form}`, { cause });
  }
  throw new NotDoneError(`Say: ${form}`);
}

/** What an operator knows of a person whom the CRM has deleted: no row leads from the address to it any more. */
export interface Said {
  names: readonly string[];
  crmIds: readonly number[];
}

const lettersIn = (name: string) => name.match(/\p{L}/gu)?.length ?? 0;

/** @throws NotDoneError where that finds nothing, or somebody else */
export function saidOf({ name = [], record = [] }: Options): Said {
  if (!name.every((one) => lettersIn(one) >= (isOnes(one) ? 2 : 3)))
    throw new NotDoneError("A name of one word has three letters or more: a shorter one is a part of much else.");
  if (!record.every((one) => /^[1-9]\d{0,14}$/.test(one)))
    throw new NotDoneError("A record is the number that the person had in the CRM.");
  return { names: name, crmIds: record.map(Number) };
}

/** What is known of a person whom an e-mail address names, within one tenant. */
export interface Person {
  /** The mailboxes that are this person's alone: that of the address, and others of the same records. */
  mailboxes: ReadonlySet<string>;
  /** The synced persons that have the address, of all copies, and without a name those that had it and are gone. */
  records: { copyId: number; crmId: number; name: string | null }[];
  /** The same, and as receipts name them that were made through an earlier copy. */
  targets: { copyId: number; crmId: number }[];
  /** Where no synced person has the address: whose records these were, which are gone as well, an operator has to say. */
  unclear: number[];
  /** Where the person is a user of the CRM as well. */
  users: { copyId: number; crmId: number }[];
  /** Whether the connection is the person's authorization. */
  hasAuthorized: boolean;
  /** Meetings that have an attendee with such an address. */
  meetingIds: string[];
  attendances: readonly Attendance[];
  /** As the CRM and the operator call the person: texts of all rows are looked through for them. */
  names: string[];
  /** As the CRM does with a word that may be everybody's. */
  alone: string[];
  /**
   * As only invitations do, whose sender writes what he likes: another's name, or words of the trade, which would bring him
   * all texts that have them, or end these.
   */
  called: string[];
}

const NOTHING_SAID: Said = { names: [], crmIds: [] };

/** @throws NotDoneError where the text is no address, or several people's, a record is somebody else's, or the database knows too few letters */
export async function findPerson(scope: TenantScope, text: string, said: Said = NOTHING_SAID): Promise<Person> {
  const mailbox = mailboxIn(text);
  if (mailbox === null) throw new NotDoneError("This is no e-mail address.");
  const [letters] = await scope.rows<{ known: boolean }>(KNOWS_LETTERS, [scope.tenantId], { known: "flag" });
  if (!letters?.known) throw new NotDoneError(TOO_FEW_LETTERS);
  const synced = await readRecords(scope, mailbox);
  const inCopyOf = (one: { copyId: number }) => synced.filter(({ copyId }) => copyId === one.copyId);
  if (synced.some((one) => inCopyOf(one).length > MOST_RECORDS_A_COPY)) throw new NotDoneError(NOT_ONES);
  const mailboxes = new Set([mailbox, ...(await readOtherMailboxes(scope, synced))]);
  const attendances = await readAttendances(scope, mailboxes);
  const records = [...synced, ...(await readGone(scope, said.crmIds, attendances, synced))];
  const targets = [...records, ...(await readTargets(scope, records, said.crmIds))];
  const accounts = await readAccounts(scope, mailboxes);
  const given = namesIn([...synced, ...accounts].map(({ name }) => name));
  const names = namesIn([...given.filter(isOnes), ...said.names]);
  const alone = given.filter((one) => !isOnes(one) && !names.includes(one));
  const called = namesIn(attendances.flatMap(({ name, email }) => [name, nameBeside(email)])).filter(
    (one) => isOnes(one) && lettersIn(one) > 1 && withoutMentions(one, [], names) !== ERASED,
  );
  const meetingIds = [...new Set(attendances.map(({ meetingId }) => meetingId))];
  const users = accounts.flatMap(({ copyId, crmId }) => (crmId === null ? [] : [{ copyId, crmId }]));
  const hasAuthorized = accounts.some(({ crmId }) => crmId === null);
  const person = { mailboxes, records, targets, users, hasAuthorized, attendances, meetingIds, names, alone, called };
  return { ...person, unclear: synced.length > 0 ? [] : await readUnclear(scope, person) };
}

const namesIn = (texts: readonly (string | null)[]): string[] => [
  ...new Set(texts.map((text) => text?.trim() ?? "").filter(Boolean)),
];

/** Names that are told: whoever sends many invitations might bury the words that follow. */
const MOST_TOLD = 10;
const quoted = (name: string) => `"${shownInTerminal(name)}"`;
const told = (names: readonly string[]) =>
  `${names.slice(0, MOST_TOLD).map(quoted).join(", ")}${names.length > MOST_TOLD ? ", ..." : ""}`;

/** By what texts were found, and by what they were not. */
export function foundIn(person: Person): string {
  const { names, alone, called } = person;
  const line = (before: string, of: readonly string[], behind: string) =>
    of.length > 0 ? `\n${before}: ${told(of)}.${behind}` : "";
  const say = " If it is the person's name, say it with --name.";
  const not = "Not by what only invitations call the person, which may be anything";
  const by = line("Names by which texts are found", names, "");
  return `${by}${line("NOT looked for, one word", alone, say)}${line(not, called, say)}${unclearIn(person)}`;
}

/** Of whom only the address is known may much be held that it does not lead to. */
function unclearIn({ records, unclear }: Person): string {
  if (records.some(({ name }) => name !== null)) return "";
  const ids = unclear.length > 0 ? ` These may be the person's: ${unclear.join(", ")}.` : "";
  return `
WARNING: no synced person has this address. What the CRM has deleted is found by what it was there: add --name "First Last" and --record ID.${ids}`;
}

/** Whether a text that was given as an attendee's address is this person's. */
export function isOf({ mailboxes }: Pick<Person, "mailboxes">, email: string): boolean {
  const mailbox = mailboxIn(email);
  return mailbox !== null && mailboxes.has(mailbox);
}

type OfCopy = Person["targets"][number];
const isIn = (records: readonly OfCopy[], { copyId, crmId }: OfCopy) =>
  records.some((one) => one.copyId === copyId && one.crmId === crmId);

/**
 * Records of the person that are gone: those that the operator names, and those of meetings that were matched before.
 * @throws NotDoneError where a synced person has one without the address
 */
async function readGone(
  { tenantId, rows }: TenantScope,
  crmIds: readonly number[],
  attendances: readonly Attendance[],
  synced: Person["records"],
): Promise<Person["records"]> {
  const live = await rows<{ copyId: number; isRead: boolean }>(
    `SELECT s.id AS "copyId", EXISTS (SELECT 1 FROM sync_list l WHERE l.tenant_id = $1 AND l.copy_id = s.id
       AND l.resource = 'PERSONS' AND l.watermark IS NOT NULL) AS "isRead"
     FROM synced_copy s WHERE s.tenant_id = $1 AND s.state = 'LIVE'`,
    [tenantId],
    { copyId: "number", isRead: "flag" },
  );
  if (crmIds.length > 0 && live.some(({ isRead }) => !isRead))
    throw new NotDoneError(
      "The persons of the CRM are still being read: whose a record is will be known then. Try again.",
    );
  const found = live.flatMap(({ copyId }) => {
    const matched = attendances.flatMap((one) => (one.copyId === copyId && one.personId ? [one.personId] : []));
    return [...new Set([...crmIds, ...matched])].map((crmId) => ({ copyId, crmId }));
  });
  const held = await rows<OfCopy>(
    `SELECT copy_id AS "copyId", crm_id AS "crmId" FROM person
     WHERE tenant_id = $1 AND (copy_id, crm_id) IN (SELECT * FROM unnest($2::bigint[], $3::bigint[]))`,
    [tenantId, ...idsOf(found)],
    { copyId: "number", crmId: "number" },
  );
  const other = held.find((one) => crmIds.includes(one.crmId) && !isIn(synced, one));
  if (other)
    throw new NotDoneError(
      `Record ${other.crmId} is of a synced person who does not have this address. Name that person by an address of the record.`,
    );
  return found.filter((one) => !isIn(held, one)).map((one) => ({ ...one, name: null }));
}

/** Hung on by texts that mention the person, where a name leads to them, or written to at the person's meetings. */
const UNCLEAR = { note: "content", activity: "subject", deal: "title" };

async function readUnclear(
  scope: TenantScope,
  { mailboxes, names, called, meetingIds, targets }: Omit<Person, "unclear">,
): Promise<number[]> {
  const found = await readTargetsAt(scope, meetingIds);
  const patterns = mentionsOf(mailboxes, [...names, ...called]).map(([inText]) => inText);
  for (const [table, text] of Object.entries(UNCLEAR))
    for await (const window of windowsOf(scope, { table, keys: ["copy_id", "crm_id"] })) {
      const sql = `SELECT DISTINCT person_id AS id FROM ${table} WHERE tenant_id = $1 AND person_id IS NOT NULL
        AND ${isWithin({ table, keys: ["copy_id", "crm_id"] }, window)} AND ${fits(text, "$2::text[]")}`;
      const asked = [scope.tenantId, patterns, ...window];
      found.push(...(await inWindow(scope, (rows) => rows<{ id: number }>(sql, asked, { id: "number" }))));
    }
  const held = await scope.rows<{ id: number }>(
    "SELECT DISTINCT crm_id AS id FROM person WHERE tenant_id = $1 AND crm_id = ANY ($2)",
    [scope.tenantId, found.map(({ id }) => id)],
    { id: "number" },
  );
  const known = new Set([...held.map(({ id }) => id), ...targets.map(({ crmId }) => crmId)]);
  return [...new Set(found.map(({ id }) => id))].filter((id) => !known.has(id)).sort((a, b) => a - b);
}

function readRecords({ tenantId, rows }: TenantScope, mailbox: string): Promise<Person["records"]> {
  return rows<Person["records"][number]>(
    `SELECT DISTINCT p.copy_id AS "copyId", p.crm_id AS "crmId", p.name FROM person_address a
     JOIN person p ON p.tenant_id = $1 AND p.copy_id = a.copy_id AND p.crm_id = a.person_id
     WHERE a.tenant_id = $1 AND a.mailbox = $2`,
    [tenantId, mailbox],
    { copyId: "number", crmId: "number", name: "text" },
  );
}

/** Of the same records, and of no other person's. */
async function readOtherMailboxes({ tenantId, rows }: TenantScope, records: Person["records"]): Promise<string[]> {
  const found: string[] = [];
  for (const { copyId, crmId } of records) {
    const own = await rows<{ mailbox: string }>(
      `SELECT DISTINCT a.mailbox FROM person_address a
       WHERE a.tenant_id = $1 AND a.copy_id = $2 AND a.person_id = $3 AND NOT EXISTS (
         SELECT 1 FROM person_address o WHERE o.tenant_id = $1 AND o.copy_id = $2 AND o.mailbox = a.mailbox AND o.person_id <> ALL ($4))`,
      [tenantId, copyId, crmId, records.filter((one) => one.copyId === copyId).map((one) => one.crmId)],
      { mailbox: "text" },
    );
    found.push(...own.map(({ mailbox }) => mailbox));
  }
  return found;
}

/** Users of the CRM who have such an address, and who authorized with it. A company has some hundred users. */
async function readAccounts({ tenantId, rows }: TenantScope, mailboxes: ReadonlySet<string>) {
  const accounts = await rows<{ copyId: number; crmId: number | null; name: string | null; email: string }>(
    `SELECT copy_id AS "copyId", crm_id AS "crmId", name, email FROM crm_user WHERE tenant_id = $1
     UNION ALL SELECT 0, NULL, bound_user_name, bound_email FROM connection WHERE tenant_id = $1 AND bound_email IS NOT NULL`,
    [tenantId],
    { copyId: "number", crmId: "number", name: "text", email: "text" },
  );
  return accounts.filter(({ email }) => isOf({ mailboxes }, email));
}

interface Attendance {
  meetingId: string;
  position: number;
  email: string;
  name: string | null;
  /** By which the address was matched itself; of a meeting of long ago the record may be gone since. */
  personId: number | null;
  copyId: number | null;
}

/** Of all meetings, one page after the other: a plan that is kept for them must find its place by their key. */
async function readAttendances({ tenantId, rows }: TenantScope, mailboxes: ReadonlySet<string>): Promise<Attendance[]> {
  type Attendee = Omit<Attendance, "copyId">;
  const found: Attendee[] = [];
  let last: Pick<Attendee, "meetingId" | "position"> | undefined = { meetingId: NIL, position: -1 };
  while (last) {
    const page: Attendee[] = await rows<Attendee>(
      `SELECT meeting_id AS "meetingId", position, email, name, CASE WHEN match_rule LIKE 'EMAIL%' THEN person_id END AS "personId"
       FROM meeting_attendee t WHERE t.tenant_id = $1 AND (meeting_id, position) > ($2::uuid, $3::integer)
       ORDER BY meeting_id, position LIMIT ${ATTENDEES_A_READ}`,
      [tenantId, last.meetingId, last.position],
      { meetingId: "text", position: "number", email: "text", name: "text", personId: "number" },
    );
    found.push(...page.filter(({ email }) => isOf({ mailboxes }, email)));
    last = page.length < ATTENDEES_A_READ ? undefined : page.at(-1);
  }
  const matches = await rows<{ meetingId: string; copyId: number | null }>(
    `SELECT meeting_id AS "meetingId", copy_id AS "copyId" FROM meeting_match WHERE tenant_id = $1 AND meeting_id = ANY ($2::uuid[])`,
    [tenantId, found.map(({ meetingId }) => meetingId)],
    { meetingId: "text", copyId: "number" },
  );
  const copies = new Map(matches.map(({ meetingId, copyId }) => [meetingId, copyId]));
  return found.map((one) => ({ ...one, copyId: copies.get(one.meetingId) ?? null }));
}

/** Which of a pair of patterns is for a column. */
const nth = ({ isJson }: Texts["columns"][number]) => (isJson ? 2 : 1);
/** SQL: the first pattern for a column. $2: pairs of patterns. */
export const patternFor = (column: Texts["columns"][number]): string => `($2::text[])[1][${nth(column)}]`;
/** SQL: as a CASE, which seems to hold of half the rows: a pattern seemed so rare that all of a tenant's were compared for each window. */
const fits = (text: string, patterns: string) => `CASE WHEN ${text} ~* ANY (${patterns}) THEN true END`;
/** SQL: whether a row mentions the person, by any of the pairs. */
export const mentions = ({ columns }: Texts): string =>
  columns.map((one) => fits(`${one.name}::text`, `($2::text[])[:][${nth(one)}:${nth(one)}]`)).join(" OR ");

/** What is held of a person's own rows. */
const OWN = {
  persons:
    "SELECT to_jsonb(t) AS row FROM person t WHERE t.tenant_id = $1 AND (t.copy_id, t.crm_id) IN (SELECT * FROM ids)",
  addresses:
    "SELECT to_jsonb(t) AS row FROM person_address t WHERE t.tenant_id = $1 AND (t.copy_id, t.person_id) IN (SELECT * FROM ids)",
  deals: `SELECT to_jsonb(t) AS row FROM deal t WHERE t.tenant_id = $1 AND ((t.copy_id, t.person_id) IN (SELECT * FROM ids)
      OR (t.copy_id, t.crm_id) IN (SELECT x.copy_id, x.deal_id FROM deal_participant x
        WHERE x.tenant_id = $1 AND (x.copy_id, x.person_id) IN (SELECT * FROM ids)))`,
  changes: `SELECT to_jsonb(t) AS row FROM deal_change t WHERE t.tenant_id = $1 AND t.kind IN ('PERSON', 'PARTICIPANTS')
      AND EXISTS (SELECT 1 FROM ids WHERE ids.copy_id = t.copy_id
        AND ids.person_id::text = ANY (string_to_array(t.was, ',') || string_to_array(t.became, ',')))`,
  users:
    "SELECT to_jsonb(t) AS row FROM crm_user t WHERE t.tenant_id = $1 AND (t.copy_id, t.crm_id) IN (SELECT * FROM users)",
  authorizations: `SELECT to_jsonb(t) AS row FROM (SELECT bound_user_name, bound_email FROM connection WHERE tenant_id = $1 AND (SELECT has FROM authorized)) t`,
  unreadable: `SELECT to_jsonb(t) AS row FROM rejected_record t WHERE t.tenant_id = $1 AND t.resource IN ('NOTES', 'ACTIVITIES')
      AND EXISTS (SELECT 1 FROM ids WHERE ids.copy_id = t.copy_id AND ${hasPerson("ids.person_id::text")})`,
  activities: `SELECT to_jsonb(t) AS row FROM activity t WHERE t.tenant_id = $1 AND ((t.copy_id, t.person_id) IN (SELECT * FROM ids)
      OR EXISTS (SELECT 1 FROM ids WHERE ids.copy_id = t.copy_id AND ids.person_id = ANY (t.participant_ids)))`,
  notes:
    "SELECT to_jsonb(t) AS row FROM note t WHERE t.tenant_id = $1 AND (t.copy_id, t.person_id) IN (SELECT * FROM ids)",
  attendances:
    "SELECT to_jsonb(t) AS row FROM meeting_attendee t WHERE t.tenant_id = $1 AND (t.meeting_id, t.position) IN (SELECT * FROM attended)",
  meetings:
    "SELECT to_jsonb(t) - 'search_text' AS row FROM meeting t WHERE t.tenant_id = $1 AND t.id IN (SELECT id FROM attended)",
  matches:
    "SELECT to_jsonb(t) #- '{last_deal,people}' AS row FROM meeting_match t WHERE t.tenant_id = $1 AND t.meeting_id IN (SELECT id FROM attended)",
  notesWritten: `SELECT to_jsonb(t) AS row FROM note_write t WHERE t.tenant_id = $1 AND t.entity = 'PERSON'
      AND (t.copy_id, t.target_id) IN (SELECT * FROM targets)`,
  fieldsWritten: `SELECT to_jsonb(t) AS row FROM field_write t WHERE t.tenant_id = $1 AND t.entity = 'PERSON'
      AND (t.copy_id, t.target_id) IN (SELECT * FROM targets)`,
} as const;
/** $1: the tenant, $2 and $3: the synced persons, $4 and $10: where the person attends, $5 and $6: the user of the CRM, $7: who authorized, $8 and $9: the persons of receipts. */
const OF_PERSON = `WITH ids AS (SELECT * FROM unnest($2::bigint[], $3::bigint[]) AS one (copy_id, person_id)),
  attended AS (SELECT * FROM unnest($4::uuid[], $10::integer[]) AS one (id, position)), users AS (SELECT * FROM unnest($5::bigint[], $6::bigint[]) AS one (copy_id, crm_id)), authorized AS (SELECT $7::boolean AS has),
  targets AS (SELECT * FROM unnest($8::bigint[], $9::bigint[]) AS one (copy_id, person_id))`;
const idsOf = (of: readonly { copyId: number; crmId: number }[]) => [
  of.map(({ copyId }) => copyId),
  of.map(({ crmId }) => crmId),
];

/** They repeat what a meeting has, and its attendees, who are other people too. */
const REPEATED = ["meeting.search_text", "meeting_match.last_deal"];

export interface PersonExport {
  /** Kinds of which there is more than the export has. */
  cutAt: string[];
  held: Record<string, unknown[]>;
}

/** All that is held about the person, by kind, and the texts of other rows that mention the person. */
export async function exportOf(database: Database, scope: TenantScope, person: Person): Promise<PersonExport> {
  const { tenantId, rows } = scope;
  const { records, targets, attendances, users, hasAuthorized } = person;
  const [ids, places] = [attendances.map((one) => one.meetingId), attendances.map((one) => one.position)];
  const held: PersonExport["held"] = {};
  const parameters = [tenantId, ...idsOf(records), ids, ...idsOf(users), hasAuthorized, ...idsOf(targets), places];
  for (const [kind, sql] of Object.entries(OWN)) {
    const limited = `${OF_PERSON} ${sql} LIMIT ${MOST_OF_A_KIND + 1}`;
    const found = await rows<{ row: { email?: string } }>(limited, parameters, { row: "json" });
    // Of a meeting that was recorded anew meanwhile the place may be another's.
    const own = found.filter(({ row }) => kind !== "attendances" || isOf(person, row.email ?? ""));
    held[kind] = own.map(({ row }) => row);
  }
  const patterns = mentionsOf(person.mailboxes, person.names);
  for (const texts of textsOf(database)) {
    const found = await readMentions(scope, texts, patterns);
    if (found.length > 0) held[`mentioned in ${texts.table}`] = found;
  }
  const cutAt = Object.keys(held).filter((kind) => (held[kind]?.length ?? 0) > MOST_OF_A_KIND);
  for (const kind of cutAt) held[kind]?.splice(MOST_OF_A_KIND);
  return { cutAt, held };
}

async function readMentions(scope: TenantScope, texts: Texts, patterns: readonly Patterns[]): Promise<unknown[]> {
  const { table, keys } = texts;
  const columns = texts.columns.filter(({ name }) => !REPEATED.includes(`${table}.${name}`));
  const shown = [...keys, ...columns.map(({ name }) => name)].join(", ");
  const said: unknown[] = [];
  for await (const window of windowsOf(scope, texts)) {
    const sql = `SELECT to_jsonb(said) AS row FROM (SELECT ${shown} FROM ${table}
      WHERE tenant_id = $1 AND ${isWithin(texts, window)} AND (${mentions({ ...texts, columns })})) said`;
    const asked = [scope.tenantId, patterns, ...window];
    const found = await inWindow(scope, (rows) => rows<{ row: unknown }>(sql, asked, { row: "json" }));
    said.push(...found.map(({ row }) => row));
    if (said.length > MOST_OF_A_KIND) break;
  }
  return said;
}
