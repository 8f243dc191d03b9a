import type { z } from "zod";
import { systemClock } from "../platform/clock";
import type { Secret } from "../platform/secret";
import { CrmError, failureOfStatus } from "./errors";
import type { CrmAnswer, CrmHttp } from "./http";
import { Pacer } from "./pacer";
import * as fields from "./parsing/fields";
import { jsonOf } from "./parsing/json";
import { goneOn, hasSkipped, placeOf } from "./parsing/offset-walk";
import {
  codeOfRefusal,
  detailOf,
  type Page,
  readCursorPage,
  readOffsetPage,
  readSingle,
  readWholeList,
} from "./parsing/page";
import * as record from "./parsing/records";

/** Where the access token of a call comes from. */
export interface TokenSource {
  current(): Promise<Secret>;
  /** A newer token after the CRM refused `refused` with 401; throws where there is none to be had. */
  renewed(refused: Secret): Promise<Secret>;
}

export interface PageRequest {
  /** As the page before said; null for the first. */
  cursor: string | null;
  /** Only what changed since then, by the CRM's clock; null for everything. */
  updatedSince?: Date | null;
}

/** A page and what the CRM said beside it. */
export interface CrmPage<T> extends Page<T> {
  /** The CRM's own clock; null where the answer had none. */
  date: Date | null;
  correlationId: string | undefined;
}

/** A note that the CRM says it made; `note` is null where it said no more than the id. */
export interface CreatedNote {
  id: number;
  note: record.CrmNote | null;
  correlationId: string | undefined;
}

/** The largest page of the CRM; the cost of a call does not depend on it. */
export const PAGE_SIZE = 500;
/** A page that is too large to be read is asked for again with so many times fewer records. */
const SHRINK_BY = 5;

/** A company has a few hundred fields; a list that goes on after this does not end. */
const MAX_FIELD_PAGES = 20;

type Query = Record<string, string | number | null>;

interface Call {
  method: "GET" | "POST" | "PATCH";
  path: string;
  query?: Query;
  body?: object;
}

type ReadPage<T> = (answer: CrmAnswer) => Promise<Page<T>>;
type AnsweredPage<T> = Page<T> & { answer: CrmAnswer };

const RECORDS: Record<fields.CrmEntity, string> = {
  DEAL: "/api/v2/deals",
  PERSON: "/api/v2/persons",
  ORGANIZATION: "/api/v2/organizations",
};
/** How a note names the one record that it is on. */
const NOTE_PARENTS: Record<fields.CrmEntity, string> = {
  DEAL: "deal_id",
  PERSON: "person_id",
  ORGANIZATION: "org_id",
};
const FIELDS: Record<fields.CrmEntity, string> = {
  DEAL: "/api/v2/dealFields",
  PERSON: "/api/v2/personFields",
  ORGANIZATION: "/api/v2/organizationFields",
};

/**
 * The closed table of calls to the CRM (specification 4): each method is one documented address, and there is no general
 * one. The only writes are those of notes and of custom fields.
 * @throws CrmError from every method
 */
export class CrmApi {
  /** By list, where pages were too large: what comes next on such a list is mostly alike. */
  readonly #pageSizes = new Map<string, number>();

  constructor(
    private readonly http: CrmHttp,
    private readonly baseUrl: string,
    private readonly tokens: TokenSource,
    private readonly pacer: Pacer = new Pacer(systemClock),
    /** Called right before each request is written; it throws where the caller has lost what it works on. */
    private readonly mayBegin?: () => void,
  ) {}

  async currentUser(): Promise<record.CrmCurrentUser> {
    return readSingle(await this.#get("/api/v1/users/me"), record.currentUserRecord);
  }

  async users(): Promise<CrmPage<record.CrmUser>> {
    const answer = await this.#get("/api/v1/users");
    return beside(answer, await readWholeList(answer, record.userRecord));
  }

  pipelines(page: PageRequest): Promise<CrmPage<record.CrmPipeline>> {
    return this.#list("/api/v2/pipelines", record.pipelineRecord, page);
  }

  stages(page: PageRequest): Promise<CrmPage<record.CrmStage>> {
    return this.#list("/api/v2/stages", record.stageRecord, page);
  }

  organizations(page: PageRequest): Promise<CrmPage<record.CrmOrganization>> {
    return this.#list("/api/v2/organizations", record.organizationRecord, page, changed(page));
  }

  /** v2 leaves the mail times out unless asked. */
  persons(page: PageRequest): Promise<CrmPage<record.CrmPerson>> {
    return this.#list("/api/v2/persons", record.personRecord, page, {
      ...changed(page),
      include_fields: "last_incoming_mail_time,last_outgoing_mail_time",
    });
  }

  /** Deals are the only records whose deletion the CRM tells, and only where deleted ones are asked for. */
  deals(page: PageRequest): Promise<CrmPage<record.CrmDeal>> {
    const status = page.updatedSince ? "open,won,lost,deleted" : null;
    const query = { ...changed(page), status, include_fields: "participants_count" };
    return this.#list("/api/v2/deals", record.dealRecord, page, query);
  }

  activities(page: PageRequest): Promise<CrmPage<record.CrmActivity>> {
    return this.#list("/api/v2/activities", record.activityRecord, page, changed(page));
  }

  async notes(page: PageRequest): Promise<CrmPage<record.CrmNote>> {
    for (let place = placeOf(page.cursor); ; place = { ...place, start: Math.max(0, place.start - PAGE_SIZE) }) {
      const query = { start: place.start, sort: "id ASC", ...changed(page) };
      const { answer, ...read } = await this.#offsets("/api/v1/notes", record.noteRecord, query);
      if (!hasSkipped(place, read)) return beside(answer, goneOn(place, read));
    }
  }

  /**
   * Makes a note on one record, by the token's user. Nothing is sent again, a 401 excepted, which says that nothing was
   * done: after UNAVAILABLE or UNREADABLE the note may be there (`neverSent` excepted).
   */
  async createNote(on: fields.CrmRecordRef, content: string): Promise<CreatedNote> {
    const body = { content, [NOTE_PARENTS[on.entity]]: on.id };
    const answer = await this.#call({ method: "POST", path: "/api/v1/notes", body });
    return { ...(await readSingle(answer, record.createdNoteRecord)), correlationId: answer.correlationId };
  }

  /** The notes on one record, the newest first: notes that come meanwhile push others back, and none is missed. */
  async notesOf(on: fields.CrmRecordRef, { cursor }: PageRequest): Promise<CrmPage<record.CrmNote>> {
    const query = { start: cursor ?? 0, sort: "id DESC", [NOTE_PARENTS[on.entity]]: on.id };
    const { answer, ...page } = await this.#offsets("/api/v1/notes", record.noteRecord, query);
    return beside(answer, { ...page, next: forward(cursor ?? "0", page.next) });
  }

  /** Whether a list shows a record: it leaves out what was deleted, merged into another, archived or hidden from this user. */
  async isShown({ entity, id }: fields.CrmRecordRef): Promise<boolean> {
    const { records } = await this.#list(RECORDS[entity], record.recordId, { cursor: null }, { ids: id });
    return records.some((shown) => shown.id === id);
  }

  /** The ids of the persons who take part in a deal, all pages, each once. */
  async participantIds(dealId: number): Promise<number[]> {
    const ids = new Set<number>();
    for (let start: string | null = "0"; start !== null; ) {
      const path = `/api/v1/deals/${dealId}/participants`;
      const { answer, ...page } = await this.#offsets(path, record.participantRecord, { start });
      if (page.rejected[0]) {
        const why = `A participant of deal ${dealId} cannot be read: ${page.rejected[0].reason}.`;
        throw new CrmError("UNREADABLE", why, detailOf(answer));
      }
      for (const { personId, active } of page.records) if (active) ids.add(personId);
      start = forward(start, page.next);
    }
    return [...ids];
  }

  /** All fields of an entity, standard and custom. */
  async fields(entity: fields.CrmEntity): Promise<fields.CrmField[]> {
    const found: fields.CrmField[] = [];
    let cursor: string | null = null;
    for (let pages = 0; pages < MAX_FIELD_PAGES; pages += 1) {
      const page: CrmPage<fields.CrmField> = await this.#list(FIELDS[entity], fields.fieldRecord, { cursor });
      if (page.rejected[0]) {
        throw new CrmError("UNREADABLE", `A field of the CRM cannot be read: ${page.rejected[0].reason}.`);
      }
      found.push(...page.records);
      if (page.next === null) return found;
      cursor = page.next;
    }
    throw new CrmError("UNREADABLE", `The CRM's list of fields does not end after ${MAX_FIELD_PAGES} pages.`);
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
  ): Promise<fields.CrmCustomFields> {
    const body = { custom_fields: Object.fromEntries(values.map(({ key, value }) => [key, value])) };
    return readSingle(
      await this.#call({ method: "PATCH", path: `${RECORDS[entity]}/${id}`, body }),
      fields.customFieldsRecord,
    );
  }

  /** The custom fields of one record now. */
  async customFieldsOf(entity: fields.CrmEntity, id: number): Promise<fields.CrmCustomFields> {
    return readSingle(await this.#get(`${RECORDS[entity]}/${id}`), fields.customFieldsRecord);
  }

  async #list<T>(path: string, schema: z.ZodType<T>, page: PageRequest, query: Query = {}): Promise<CrmPage<T>> {
    const { answer, ...read } = await this.#page(path, { cursor: page.cursor, ...query }, (answer) =>
      readCursorPage(answer, schema),
    );
    return beside(answer, read);
  }

  #offsets<T>(path: string, schema: z.ZodType<T>, query: Query): Promise<AnsweredPage<T>> {
    return this.#page(path, query, (answer) => readOffsetPage(answer, schema));
  }

  /** A page from where the query says. A list with a page too large to be read would otherwise never get past it. */
  async #page<T>(path: string, query: Query, read: ReadPage<T>): Promise<AnsweredPage<T>> {
    const limit = this.#pageSizes.get(path) ?? PAGE_SIZE;
    try {
      const answer = await this.#get(path, { limit, ...query });
      return { answer, ...(await read(answer)) };
    } catch (error) {
      if (!(error instanceof CrmError && error.detail.tooLarge) || limit === 1) throw error;
      this.#pageSizes.set(path, Math.ceil(limit / SHRINK_BY));
      return this.#page(path, query, read);
    }
  }

  #get(path: string, query: Query = {}): Promise<CrmAnswer> {
    return this.#call({ method: "GET", path, query });
  }

  /** A refused token is renewed once and the call repeated once (decision 0031). */
  async #call(call: Call): Promise<CrmAnswer> {
    const token = await this.tokens.current();
    const answer = await this.#send(call, token);
    if (answer.status !== 401 || isHtml(answer)) return successful(answer);
    return successful(await this.#send(call, await this.tokens.renewed(token)));
  }

  async #send({ method, path, query = {}, body }: Call, token: Secret): Promise<CrmAnswer> {
    const url = new URL(this.baseUrl + path);
    for (const [name, value] of Object.entries(query)) if (value !== null) url.searchParams.set(name, String(value));
    const headers: Record<string, string> = {
      authorization: `Bearer ${token.reveal()}`,
      accept: "application/json",
    };
    if (body) headers["content-type"] = "application/json";
    return this.pacer.paced(() =>
      this.http.send({
        ...{ method, url: url.href, headers, body: body && JSON.stringify(body) },
        mayBegin: this.mayBegin,
      }),
    );
  }
}

/** RFC 3339 in whole seconds: the CRM refuses fractions. */
function changed({ updatedSince }: PageRequest): Query {
  return { updated_since: updatedSince ? `${updatedSince.toISOString().slice(0, 19)}Z` : null };
}

function beside<T>({ date, correlationId }: CrmAnswer, page: Page<T>): CrmPage<T> {
  return { ...page, date, correlationId };
}

/** An offset that does not move on would be asked for ever. */
function forward(start: string, next: string | null): string | null {
  if (next !== null && Number(next) <= Number(start)) {
    throw new CrmError("UNREADABLE", "The CRM's paging does not move on.");
  }
  return next;
}

/** A proxy's page: it says nothing of what the CRM did. */
function isHtml({ contentType }: CrmAnswer): boolean {
  return contentType.includes("html");
}

function successful(answer: CrmAnswer): CrmAnswer {
  const { status } = answer;
  if (status >= 200 && status < 300) return answer;
  // The CRM says in JSON what it forbids; its front door blocks with a page, or a line of text.
  const proxys = isHtml(answer) || (status === 403 && jsonOf(answer.text) === undefined);
  throw new CrmError(
    failureOfStatus(status, proxys),
    `The CRM answered ${status}${isHtml(answer) ? " with an HTML page" : ""}.`,
    { ...detailOf(answer), crmCode: proxys ? undefined : codeOfRefusal(answer) },
  );
}
