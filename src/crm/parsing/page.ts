import { hash } from "node:crypto";
import { z } from "zod";
import { cutText } from "../../platform/safe-html";
import { ALONE, inSlice } from "../../platform/work";
import { CrmError } from "../errors";
import { type CrmAnswer, textOf } from "../http";
import { hasMoreParts, isDeeperThan, jsonOf } from "./values";

/** A record that could not be read: kept aside with the reason, never dropped. */
export interface RejectedRecord {
  /** The record's own id where it has one, else a hash of what was sent: the same fault is one row. */
  key: string;
  reason: string;
  payload: unknown;
}

export interface Parsed<T> {
  records: T[];
  rejected: RejectedRecord[];
  /** What to ask next, opaque; null at the end. */
  next: string | null;
}

/** It is kept with the run, where NUL has no place, and sent in an address. */
const CURSOR = /^[^\0]{0,2000}$/;

/** Records of a list that is asked for without pages; of one with pages fewer are asked for. */
const MAX_RECORDS = 10_000;
/** Values of an answer, at about a microsecond each to parse and read them. 500 records have some tens of thousands. */
const MAX_PARTS = 100_000;
/** Of a list without pages, of which no less can be asked for: users of a very large company. */
const MAX_PARTS_OF_WHOLE = 250_000;
/** Read in one turn of the event loop: about a millisecond. */
const RECORDS_A_TURN = 50;

/** The key is always there: an end that is only not mentioned could hide the rest of a list. */
const cursorPaging = z.object({ next_cursor: z.string().regex(CURSOR).nullable() });
const offsetPaging = z
  .object({
    pagination: z.object({ more_items_in_collection: z.boolean().nullish(), next_start: z.number().int().nullish() }),
  })
  .nullish();

/** v2 lists: `additional_data.next_cursor`, null at the end. */
export async function readCursorPage<T>(answer: CrmAnswer, record: z.ZodType<T>): Promise<Parsed<T>> {
  const envelope = await readEnvelope(answer);
  const paging = cursorPaging.safeParse(envelope.additional_data);
  if (!paging.success) throw unreadable(answer, "its paging is not in the documented form");
  return { ...(await readRecords(answer, envelope.data, record)), next: paging.data.next_cursor };
}

/**
 * v1 lists: offsets; `data` is null where there is nothing. A list without paging is whole, if more would have had room.
 * @param limit how many records were asked for at most
 */
export async function readOffsetPage<T>(answer: CrmAnswer, limit: number, record: z.ZodType<T>): Promise<Parsed<T>> {
  const envelope = await readEnvelope(answer);
  const paging = offsetPaging.safeParse(envelope.additional_data);
  if (!paging.success) throw unreadable(answer, "its paging is not in the documented form");
  const { more_items_in_collection: said, next_start: next } = paging.data?.pagination ?? {};
  // Where more follows is said only if it does (wire fact 3.2).
  const more = said ?? next != null;
  if (more && next == null) throw unreadable(answer, "it promises more and does not say where");
  const read = await readRecords(answer, envelope.data, record);
  const isFull = read.records.length + read.rejected.length >= limit;
  if (isFull && said == null && next == null)
    throw unreadable(answer, "it is full and does not say whether more follows");
  return { ...read, next: more ? String(next) : null };
}

/** v1 users: the whole list in one answer, `additional_data` holds no paging. */
export async function readWholeList<T>(answer: CrmAnswer, record: z.ZodType<T>): Promise<Parsed<T>> {
  const { data } = await readEnvelope(answer, MAX_PARTS_OF_WHOLE);
  return { ...(await readRecords(answer, data, record)), next: null };
}

export async function readSingle<T>(answer: CrmAnswer, record: z.ZodType<T>): Promise<T> {
  const parsed = record.safeParse((await readEnvelope(answer)).data);
  if (!parsed.success) throw unreadable(answer, reasonOf(parsed.error));
  return parsed.data;
}

/** @throws CrmError UNREADABLE; `tooLarge` where parsing it would hold everybody up */
async function readJson(answer: CrmAnswer, mostParts: number): Promise<unknown> {
  const size = answer.body.length;
  // A value is a character at least: most answers need not be looked through.
  if (size > mostParts && (await inSlice(ALONE, () => hasMoreParts(textOf(answer), mostParts)))) {
    throw tooLarge(answer, `has more than ${mostParts} values`);
  }
  const value = await inSlice(size, () => jsonOf(textOf(answer)));
  // Without what the parser says: it quotes the text, and logs hold nothing of the CRM's records.
  if (value === undefined) throw new CrmError("UNREADABLE", "The CRM's answer is not JSON.", detailOf(answer));
  return value;
}

const envelopeForm = z.object({
  success: z.literal(true),
  data: z.unknown().optional(),
  additional_data: z.unknown().optional(),
});

async function readEnvelope(answer: CrmAnswer, mostParts = MAX_PARTS): Promise<z.output<typeof envelopeForm>> {
  const envelope = envelopeForm.safeParse(await readJson(answer, mostParts));
  if (!envelope.success) throw unreadable(answer, "it is not a successful envelope");
  return envelope.data;
}

async function readRecords<T>(
  answer: CrmAnswer,
  data: unknown,
  record: z.ZodType<T>,
): Promise<Omit<Parsed<T>, "next">> {
  if (data !== null && !Array.isArray(data)) throw unreadable(answer, "its data is not a list");
  const all: unknown[] = data ?? [];
  if (all.length > MAX_RECORDS) throw tooLarge(answer, `has more than ${MAX_RECORDS} records`);
  // The many answers of a deal's participants are short, and would otherwise wait for a turn each.
  const size = Math.min(answer.body.length, ALONE);
  const read: Omit<Parsed<T>, "next"> = { records: [], rejected: [] };
  for (let from = 0; from < all.length; from += RECORDS_A_TURN) {
    await inSlice(size, () => readSome(all.slice(from, from + RECORDS_A_TURN), record, read));
  }
  return read;
}

function readSome<T>(
  some: readonly unknown[],
  record: z.ZodType<T>,
  { records, rejected }: Omit<Parsed<T>, "next">,
): void {
  for (const raw of some) {
    const parsed = record.safeParse(raw);
    if (parsed.success) records.push(parsed.data);
    else rejected.push({ key: keyOf(raw), reason: reasonOf(parsed.error), payload: keepable(raw) });
  }
}

/** Of what is wrong with a record, and the characters of it: a long list may be wrong in each of its items. */
const MAX_ISSUES = 5;
const MAX_REASON = 500;

function reasonOf(error: z.ZodError): string {
  const issues = error.issues.slice(0, MAX_ISSUES).map(({ path, message }) => `${path.join(".")}: ${message}`);
  return cutText(issues.join("; "), MAX_REASON);
}

/** Deeper than any record of the wire, and far from the depth at which writing JSON overflows the stack. */
const MAX_KEPT_DEPTH = 32;

/** Characters as JSON of a record that is kept aside whole, and of a member that is kept of a larger one. */
const MAX_KEPT = 16_000;
const MAX_KEPT_MEMBER = 200;
const MAX_KEPT_MEMBERS = 60;

function keepable(raw: unknown): unknown {
  if (isDeeperThan(raw, MAX_KEPT_DEPTH)) return "(nested too deeply to be kept)";
  const size = sizeOf(raw);
  if (size <= MAX_KEPT) return raw;
  const tooLarge = `(too large to be kept: ${size} characters)`;
  if (typeof raw !== "object" || raw === null || Array.isArray(raw)) return tooLarge;
  // Its ids above all: what hangs on a deal and could not be read is told by them.
  const members = Object.entries(raw).filter(([name, value]) => name.length + sizeOf(value) <= MAX_KEPT_MEMBER);
  return { ...Object.fromEntries(members.slice(0, MAX_KEPT_MEMBERS)), "(left out)": tooLarge };
}

const sizeOf = (value: unknown) => JSON.stringify(value).length;

/** What the database would cut or mend could be the key of another record. */
const keyForm = z.object({ id: z.union([z.number().transform(String), z.string().regex(/^[ -~]{1,64}$/)]) });

function keyOf(raw: unknown): string {
  const keyed = keyForm.safeParse(raw);
  return keyed.success ? keyed.data.id : hash("sha256", JSON.stringify(keepable(raw)), "hex").slice(0, 32);
}

function unreadable(answer: CrmAnswer, why: string): CrmError {
  return new CrmError("UNREADABLE", `The CRM's answer cannot be read: ${why}.`, detailOf(answer));
}

function tooLarge(answer: CrmAnswer, why: string): CrmError {
  return new CrmError("UNREADABLE", `The CRM's answer ${why}.`, { ...detailOf(answer), tooLarge: true });
}

/** A proxy's page: it says nothing of what the CRM did. */
export const isHtml = ({ contentType }: CrmAnswer): boolean => contentType.includes("html");

const TELLS_LIMITS = /^x-(ratelimit|daily)-/;

/** The CRM says in JSON what it refuses; the proxy before it blocks with a page, a line of text or nothing. */
export function isProxys(answer: CrmAnswer): boolean {
  const { status, headerNames } = answer;
  const mayBlock = status === 403 || (status === 429 && !headerNames.some((name) => TELLS_LIMITS.test(name)));
  return isHtml(answer) || (mayBlock && jsonOf(textOf(answer)) === undefined);
}

const refusalForm = z.object({ code: z.string().regex(/^[A-Z_]{1,60}$/i) });

/** The text code of a refusal (wire fact 9); undefined where it has none. */
export function codeOfRefusal(answer: CrmAnswer): string | undefined {
  return refusalForm.safeParse(jsonOf(textOf(answer))).data?.code;
}

export function detailOf(answer: CrmAnswer): { status: number; correlationId?: string } {
  return { status: answer.status, correlationId: answer.correlationId };
}

/** The ids of all that it shows. Records that could not be read are there all the same, as far as they have one. */
export function idsOf({ records, rejected }: Parsed<{ id: number }>): number[] {
  const ofRejected = rejected.map(({ key }) => Number(key)).filter(Number.isSafeInteger);
  return [...records.map(({ id }) => id), ...ofRejected];
}
