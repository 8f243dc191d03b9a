import type { z } from "zod";
import { ADDRESSES, type Address, type CallParts, Calls, type Query } from "./calls";
import { CrmError } from "./errors";
import type { CrmAnswer } from "./http";
import * as fields from "./parsing/fields";
import {
  detailOf,
  idsOf,
  type Parsed,
  readCursorPage,
  readOffsetPage,
  readSingle,
  readWholeList,
} from "./parsing/page";
import * as record from "./parsing/records";

export interface CrmPageRequest {
  /** As the page before said; null for the first. */
  cursor: string | null;
  /** Only what changed since then, by the CRM's clock; null for everything. */
  updatedSince?: Date | null;
  /** Of deals, persons and organizations: these alone, at most {@link MAX_IDS}. What is not there or not shown is left out. */
  ids?: readonly number[];
  /** A page of full size did not come lately. */
  isSmall?: boolean;
}

/** A page and what the CRM said beside it. */
export interface CrmPage<T> extends Parsed<T> {
  /** The CRM's own clock; null where the answer had none. */
  date: Date | null;
  correlationId: string | undefined;
  /** Fewer records were asked for than a page may have, since more did not come. */
  isSmall: boolean;
}

/** A note that the CRM says it made; `note` is null where it said no more than the id. */
export interface CreatedNote {
  id: number;
  note: record.CrmNote | null;
  correlationId: string | undefined;
}

/** A record's custom fields as they are after values were written. */
export interface WrittenFields extends fields.CrmCustomFields {
  correlationId: string | undefined;
}

/** The largest page of the CRM; the cost of a call does not depend on it. */
export const PAGE_SIZE = 500;
/** The CRM takes no more in one request. */
export const MAX_IDS = 100;
/** A page that is too large to be read is asked for again with so many times fewer records. */
const SHRINK_BY = 5;
/** And one that does not come in time with so many. */
const SMALL_PAGE = PAGE_SIZE / SHRINK_BY;
/** What the CRM, or a proxy of it, answers where it did not in time. */
const TIME_OUTS: readonly unknown[] = [408, 504, 524];
/** Lists of the company's own size, so that a page may take long. */
const LONG: ReadonlySet<Address> = new Set([
  ADDRESSES.organizations,
  ADDRESSES.persons,
  ADDRESSES.deals,
  ADDRESSES.activities,
  ADDRESSES.notes,
]);

/** A company has a few hundred fields; a list that goes on after this does not end. */
const MAX_FIELD_PAGES = 20;
/** A deal with thousands of participants is none: a list of them that goes on after this does not end. */
const MAX_PARTICIPANT_PAGES = 10;

type ReadPage<T> = (answer: CrmAnswer, limit: number) => Promise<Parsed<T>>;
type AnsweredPage<T> = Parsed<T> & { answer: CrmAnswer; limit: number };

/** How a note names the one record that it is on. */
const NOTE_PARENTS: Record<fields.CrmEntity, string> = {
  DEAL: "deal_id",
  PERSON: "person_id",
  ORGANIZATION: "org_id",
};

/**
 * The closed table of calls to the CRM (specification 4): each method is one documented address, and there is no general
 * one. The only writes are those of notes and of custom fields.
 * @throws CrmError from every method
 */
export class CrmApi {
  readonly #calls: Calls;
  /** By list, where pages were too large: what comes next on such a list is mostly alike. */
  readonly #pageSizes = new Map<string, number>();

  constructor(private readonly parts: CallParts) {
    this.#calls = new Calls(parts);
  }

  async currentUser(): Promise<record.CrmCurrentUser> {
    return readSingle(await this.#get(ADDRESSES.currentUser), record.currentUserRecord);
  }

  async users(): Promise<CrmPage<record.CrmUser>> {
    const answer = await this.#get(ADDRESSES.users);
    return beside({ answer, limit: PAGE_SIZE }, await readWholeList(answer, record.userRecord));
  }

  pipelines(page: CrmPageRequest): Promise<CrmPage<record.CrmPipeline>> {
    return this.#list(ADDRESSES.pipelines, record.pipelineRecord, page);
  }

  stages(page: CrmPageRequest): Promise<CrmPage<record.CrmStage>> {
    return this.#list(ADDRESSES.stages, record.stageRecord, page);
  }

  organizations(page: CrmPageRequest): Promise<CrmPage<record.CrmOrganization>> {
    return this.#list(ADDRESSES.organizations, record.organizationRecord, page, asked(page));
  }

  /** v2 leaves the mail times out unless asked. */
  persons(page: CrmPageRequest): Promise<CrmPage<record.CrmPerson>> {
    return this.#list(ADDRESSES.persons, record.personRecord, page, {
      ...asked(page),
      include_fields: "last_incoming_mail_time,last_outgoing_mail_time",
    });
  }

  /** Deals are the only records whose deletion the CRM tells, and only where deleted ones are asked for. */
  deals(page: CrmPageRequest): Promise<CrmPage<record.CrmDeal>> {
    const status = page.updatedSince ? "open,won,lost,deleted" : null;
    const query = { ...asked(page), status, include_fields: "participants_count" };
    return this.#list(ADDRESSES.deals, record.dealRecord, page, query);
  }

  activities(page: CrmPageRequest): Promise<CrmPage<record.CrmActivity>> {
    return this.#list(ADDRESSES.activities, record.activityRecord, page, asked(page));
  }

  async notes(page: CrmPageRequest): Promise<CrmPage<record.CrmNote>> {
    let { isSmall } = page;
    for (let place = placeOf(page.cursor); ; ) {
      const query = { start: place.start, sort: "id ASC", ...changed({ ...page, isSmall }) };
      const read = await this.#offsets(ADDRESSES.notes, record.noteRecord, query);
      isSmall ||= read.limit < PAGE_SIZE;
      const earlier = steppedBack(place, read);
      if (!earlier) return beside(read, goneOn(place, read));
      place = earlier;
    }
  }

  /**
   * Makes a note on one record, by the token's user. Nothing is sent again, a 401 excepted, which says that nothing was
   * done: after UNAVAILABLE or UNREADABLE the note may be there (`neverSent` excepted).
   */
  async createNote(on: fields.CrmRecordRef, content: string): Promise<CreatedNote> {
    const body = { content, [NOTE_PARENTS[on.entity]]: on.id };
    const answer = await this.#calls.make({ method: "POST", ...ADDRESSES.createNote, body });
    return { ...(await readSingle(answer, record.createdNoteRecord)), correlationId: answer.correlationId };
  }

  /** The notes on one record, the newest first: notes that come meanwhile push others back, and none is missed. */
  async notesOf(on: fields.CrmRecordRef, { cursor }: CrmPageRequest): Promise<CrmPage<record.CrmNote>> {
    const [start = "0", lowest = "Infinity"] = (cursor ?? "0").split(":");
    const query = { start, sort: "id DESC", [NOTE_PARENTS[on.entity]]: on.id };
    const page = await this.#offsets(ADDRESSES.notes, record.noteRecord, query);
    const reached = Math.min(Number(lowest), ...idsOf(page));
    const next = forward(start, page.next);
    // Older notes are to follow: a page without any is followed by others like it for ever.
    if (next !== null && reached >= Number(lowest)) {
      throw new CrmError("UNREADABLE", `The CRM's notes on a ${on.entity.toLowerCase()} do not end.`, {
        endless: true,
      });
    }
    return beside(page, { ...page, next: next && `${next}:${reached}` });
  }

  /** Whether a list shows a record: it leaves out, or flags, what was deleted, merged into another, archived or hidden from this user. */
  async isShown({ entity, id }: fields.CrmRecordRef): Promise<boolean> {
    const list = { DEAL: ADDRESSES.deals, PERSON: ADDRESSES.persons, ORGANIZATION: ADDRESSES.organizations }[entity];
    const { records } = await this.#list(list, record.shownRecord, { cursor: null }, { ids: id });
    return records.some((shown) => shown.id === id && !shown.deleted);
  }

  /** So many deals are about to be asked for who takes part. */
  expectParticipants(deals: number): void {
    this.parts.reservation?.expect?.(deals * ADDRESSES.participants(0).price);
  }

  /**
   * The ids of the persons who take part in a deal, each once.
   * @param count how many the deal says there are, which bounds the pages; null: it does not say
   * @param mayGoOn asked between two pages
   * @returns null where it was told not to go on
   */
  async participantIds(dealId: number, count: number | null, mayGoOn = () => true): Promise<number[] | null> {
    const [shown, active] = [new Set<number>(), new Set<number>()];
    const mostPages = Math.min(MAX_PARTICIPANT_PAGES, (count ?? MAX_PARTICIPANT_PAGES) + 1);
    let start = "0";
    for (let pages = 0; pages < mostPages; pages += 1) {
      if (pages > 0 && !mayGoOn()) return null;
      const list = ADDRESSES.participants(dealId);
      const { answer, ...page }: AnsweredPage<record.CrmParticipant> = await this.#offsets(
        list,
        record.participantRecord,
        { start },
      );
      if (page.rejected[0]) {
        const why = `A participant of deal ${dealId} cannot be read: ${page.rejected[0].reason}.`;
        throw new CrmError("UNREADABLE", why, detailOf(answer));
      }
      const before = shown.size;
      for (const { personId, active: isActive } of page.records) {
        shown.add(personId);
        if (isActive) active.add(personId);
      }
      if (page.next === null) return [...active];
      if (shown.size === before) break;
      start = forward(start, page.next);
    }
    throw new CrmError("UNREADABLE", `The CRM's list of the participants of deal ${dealId} does not end.`);
  }

  /** All fields of an entity, standard and custom. */
  async fields(entity: fields.CrmEntity): Promise<fields.CrmField[]> {
    const found = new Map<string, fields.CrmField>();
    let cursor: string | null = null;
    for (let pages = 0; pages < MAX_FIELD_PAGES; pages += 1) {
      const page: CrmPage<fields.CrmField> = await this.#cursors(ADDRESSES.fields(entity), fields.fieldRecord, {
        cursor,
      });
      if (page.rejected[0]) {
        throw new CrmError("UNREADABLE", `A field of the CRM cannot be read: ${page.rejected[0].reason}.`);
      }
      const before = found.size;
      for (const field of page.records) found.set(field.key, field);
      if (page.next === null) return [...found.values()];
      if (found.size === before) break;
      cursor = page.next;
    }
    throw new CrmError("UNREADABLE", "The CRM's list of fields does not end.", { endless: true });
  }

  /**
   * Writes custom fields of one record; those not named stay. Nothing is sent again, a 401 excepted, which says that
   * nothing was done: after UNAVAILABLE or UNREADABLE the values may have been written (`neverSent` excepted).
   * @returns what the record's custom fields are after it
   */
  async setCustomFields(
    entity: fields.CrmEntity,
    id: number,
    values: fields.CustomFieldValues,
  ): Promise<WrittenFields> {
    const body = { custom_fields: Object.fromEntries(values.map(({ key, value }) => [key, value])) };
    const answer = await this.#calls.make({ method: "PATCH", ...ADDRESSES.setCustomFields(entity, id), body });
    return { ...(await fieldsIn(answer, id)), correlationId: answer.correlationId };
  }

  /** The custom fields of one record now. */
  async customFieldsOf(entity: fields.CrmEntity, id: number): Promise<fields.CrmCustomFields> {
    return fieldsIn(await this.#get(ADDRESSES.record(entity, id)), id);
  }

  /** In the order of the ids, so that a page that shows none beyond the last ends the way (decision 0014). */
  #list<T>(list: Address, schema: z.ZodType<T>, page: CrmPageRequest, query: Query = {}): Promise<CrmPage<T>> {
    return this.#cursors(list, schema, { cursor: page.cursor, sort_by: "id", sort_direction: "asc", ...query });
  }

  async #cursors<T>(list: Address, schema: z.ZodType<T>, query: Query): Promise<CrmPage<T>> {
    const page = await this.#page(list, query, (answer) => readCursorPage(answer, schema));
    return beside(page, page);
  }

  async #offsets<T>(list: Address, schema: z.ZodType<T>, query: Query): Promise<AnsweredPage<T>> {
    const page = await this.#page(list, query, (answer, limit) => readOffsetPage(answer, limit, schema));
    // Behind a leap nobody would know what stands before it; walked back to, it would cost a request for each half page.
    const most = Math.max(page.limit, page.records.length + page.rejected.length);
    if (Number(page.next) > Number(query.start) + most)
      throw new CrmError("UNREADABLE", "The CRM's paging leaves records out.", detailOf(page.answer));
    return page;
  }

  /** A page from where the query says. A list with a page that cannot be had would otherwise never get past it. */
  async #page<T>(list: Address, query: Query, read: ReadPage<T>): Promise<AnsweredPage<T>> {
    const limit = Math.min(Number(query.limit ?? PAGE_SIZE), this.#pageSizes.get(list.path) ?? PAGE_SIZE);
    try {
      const answer = await this.#get(list, { ...query, limit });
      return { answer, limit, ...(await read(answer, limit)) };
    } catch (error) {
      if (!(error instanceof CrmError)) throw error;
      if (error.detail.tooLarge && limit > 1) {
        this.#pageSizes.set(list.path, Math.ceil(limit / SHRINK_BY));
        return this.#page(list, query, read);
      }
      // Once: a CRM that answers nothing at all would be asked, and paid, for each size.
      if (!isTooSlow(error) || !LONG.has(list) || query.ids || limit <= SMALL_PAGE) throw error;
      return this.#page(list, { ...query, limit: SMALL_PAGE }, read);
    }
  }

  #get(address: Address, query: Query = {}): Promise<CrmAnswer> {
    return this.#calls.make({ method: "GET", ...address, query });
  }
}

/** What another record holds is neither what was written to this one, nor the proof that it was not. */
async function fieldsIn(answer: CrmAnswer, id: number): Promise<fields.CrmCustomFields> {
  const record = await readSingle(answer, fields.customFieldsRecord);
  if (record.id !== id)
    throw new CrmError("UNREADABLE", "The CRM's answer is of another record than was asked for.", detailOf(answer));
  return record;
}

const isTooSlow = ({ detail }: CrmError) => detail.tooSlow === true || TIME_OUTS.includes(detail.status);

/** RFC 3339 in whole seconds: the CRM refuses fractions. */
function changed({ updatedSince, isSmall }: CrmPageRequest): Query {
  const since = updatedSince ? `${updatedSince.toISOString().slice(0, 19)}Z` : null;
  return { updated_since: since, ...(isSmall && { limit: SMALL_PAGE }) };
}

function asked(page: CrmPageRequest): Query {
  return { ...changed(page), ids: page.ids ? page.ids.join(",") : null };
}

function beside<T>(
  { answer: { date, correlationId }, limit }: Pick<AnsweredPage<T>, "answer" | "limit">,
  { records, rejected, next }: Parsed<T>,
): CrmPage<T> {
  return { records, rejected, next, date, correlationId, isSmall: limit < PAGE_SIZE };
}

/** An offset that does not move on would be asked for ever. */
function forward<N extends string | null>(start: string, next: N): N {
  if (next !== null && Number(next) <= Number(start)) {
    throw new CrmError("UNREADABLE", "The CRM's paging does not move on.");
  }
  return next;
}

/**
 * Where a walk by offset stands, as text: the next offset, and the last id before it. A row that vanishes moves all that
 * follow to the front, past a reader who goes on at the offset; so it begins one row earlier, at the row it had last.
 */
interface Place {
  start: number;
  /** NaN at the beginning. */
  lastId: number;
  /** How far it has stepped back from the page before. */
  back: number;
}

function placeOf(cursor: string | null): Place {
  const [start = 0, lastId] = (cursor ?? "").split(":");
  return { start: Math.max(0, Number(start) - 1), lastId: Number(lastId), back: 0 };
}

/** Where to look next, as rows that nobody has read may stand before this page, of a list by ascending id; null: none do. */
function steppedBack(place: Place, page: Parsed<{ id: number }> & { limit: number }): Place | null {
  const isLast = page.next === null;
  // The CRM may send fewer than are asked for; of the last page they say nothing.
  const came = isLast ? 0 : idsOf(page).length;
  // By half a page: a whole one would end where the one before did, and show nothing new.
  const half = Math.ceil(Math.min(page.limit, came || page.limit) / 2);
  // It came so small that it ends before the page that was stepped back from.
  const tooFar = isLast ? 0 : Math.max(0, place.back - half);
  if (tooFar === 0 && !hasSkipped(place, page)) return null;
  const start = Math.max(0, place.start + (tooFar || -half));
  return { ...place, start, back: tooFar > 0 ? half : place.start - start };
}

const hasSkipped = ({ start, lastId }: Place, page: Parsed<{ id: number }>): boolean =>
  start > 0 && Math.min(...idsOf(page)) > lastId;

/** The page without the row that the one before ended with, and the place after it. */
function goneOn<T extends { id: number }>({ lastId }: Place, page: Parsed<T>): Parsed<T> {
  const last = Math.max(lastId || 0, ...idsOf(page));
  return {
    records: page.records.filter(({ id }) => id !== lastId),
    rejected: page.rejected.filter(({ key }) => key !== String(lastId)),
    next: page.next && `${page.next}:${last}`,
  };
}
