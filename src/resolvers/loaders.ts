import DataLoader from "dataloader";
import { readFields, type ShownField } from "../briefing/fields";
import { type Asked, type Entry, readChanges, readPreviousMeetings } from "../briefing/journal";
import { readAttendees, readMatches, readMeetings } from "../briefing/meeting-rows";
import type { ShownNotes } from "../briefing/notes";
import { readKeptFacts } from "../briefing/quiet/read-quiet";
import {
  readActivities,
  readMatched,
  readMatchedDeals,
  readNextActivities,
  readNotes,
  readOpenDealsOf,
  readOtherDeals,
  readParticipants,
  readPersonsOf,
  readRecentActivities,
  readRecentNotes,
  readSetup,
  readStagesOf,
  readTimelines,
  readUsersByEmail,
} from "../briefing/records";
import type { CopyScope, TenantScope } from "../database/database";
import { grouped, rowOfEach, rowsOfEach } from "../database/reads";
import { CrmUserRow, PipelineRow, StageRow } from "../entities/crm-company";
import type { MatchedEntity } from "../entities/meeting";
import { normalizeAddress } from "../platform/email-address";
import type { ShownNote } from "../platform/safe-html";
import { readStepsOf } from "../sync/run-history";

/** A list inside a record: which record, and how many. */
export interface ListKey<Id = number> {
  id: Id;
  first: number;
}

/** Rows of what is asked for, as the database has them. */
type Read<Key, Row> = (keys: readonly Key[]) => Promise<Row[]>;

interface CrmRow {
  crmId: number;
}

interface WithFields extends CrmRow {
  customFields: Record<string, unknown>;
}

/** A note that a sync has removed since it was found has nothing to show. */
const GONE: ShownNote = { html: "", text: "", cut: true };

/**
 * One read for each kind of record on a level of an operation, however many parents ask, and all reads of a level in
 * one statement (`database/reads.ts`). Made anew for each operation, so nothing is kept between callers.
 */
export class Loaders {
  constructor(
    private readonly scope: TenantScope,
    private readonly copy: () => Promise<CopyScope | null>,
    private readonly now: () => Date,
    private readonly shownNotes: ShownNotes,
  ) {}

  readonly user = this.#byId((copy, ids) => readSetup(copy, CrmUserRow, ids));
  readonly pipeline = this.#byId((copy, ids) => readSetup(copy, PipelineRow, ids));
  readonly stage = this.#byId((copy, ids) => readSetup(copy, StageRow, ids));
  readonly stagesOf = listsBy(this.#ofCopy(readStagesOf), ({ pipelineId }) => pipelineId);
  readonly deal = this.#byId((copy, ids) => readMatched(copy, "DEAL", ids));
  readonly person = this.#byId((copy, ids) => readMatched(copy, "PERSON", ids));
  readonly organization = this.#byId((copy, ids) => readMatched(copy, "ORGANIZATION", ids));

  /** Custom fields in words. */
  readonly fields = this.#perEntity((entity) => this.#fieldsOf(entity));

  readonly activity = this.#byId(readActivities);
  readonly note = this.#byId(readNotes);
  /** Loaders of everything with a CRM id, by the type that it is shown as. */
  readonly records = {
    CrmUser: this.user,
    Pipeline: this.pipeline,
    Stage: this.stage,
    Deal: this.deal,
    Person: this.person,
    Organization: this.organization,
    Activity: this.activity,
    Note: this.note,
  };
  /** Asked for notes only that were found readable before. */
  readonly shownNote = new DataLoader<number, ShownNote>(async (ids) => {
    const copy = await this.copy();
    const shown = copy && (await this.shownNotes.read(copy, ids));
    return ids.map((id) => shown?.get(id) ?? GONE);
  });

  /** With the instant of judging. Asked for deals only that were read as matched ones; null for one that a sync has removed meanwhile. */
  readonly quietFacts = new DataLoader(async (dealIds: readonly number[]) => {
    const [copy, now] = [await this.copy(), this.now()];
    const found = copy && (await readKeptFacts(copy, dealIds, now));
    const deals = new Map(found?.deals.map((facts) => [facts.dealId, facts]));
    return dealIds.map((id) => {
      const facts = deals.get(id);
      return found && facts ? { facts, copy: found.copy, now } : null;
    });
  });

  readonly changes = new DataLoader<Asked, Entry[], string>(
    async (asked) => {
      const found = await this.#ofCopy(readChanges)(asked);
      return asked.map((_, index) => found.filter((entry) => entry.asked === index + 1));
    },
    { cacheKeyFn: ({ dealId, first, since }) => `${dealId}:${first}:${since?.getTime()}` },
  );

  readonly userByEmail = new DataLoader<string, CrmUserRow | null>(async (emails) => {
    const found = await this.#ofCopy(readUsersByEmail)(emails);
    return emails.map((email) => found.find(({ address }) => address === normalizeAddress(email)) ?? null);
  });

  readonly participants = this.#lists((copy, ids) => readParticipants(copy, ids));
  readonly personsOf = this.#lists(readPersonsOf);
  readonly openDealsOf = {
    PERSON: this.#lists((copy, ids, first) => readOpenDealsOf(copy, "PERSON", ids, first)),
    ORGANIZATION: this.#lists((copy, ids, first) => readOpenDealsOf(copy, "ORGANIZATION", ids, first)),
  };
  readonly recentActivities = this.#perEntity((entity) =>
    this.#lists((copy, ids, first) => readRecentActivities(copy, entity, ids, first)),
  );
  readonly recentNotes = this.#perEntity((entity) =>
    this.#lists((copy, ids, first) => readRecentNotes(copy, entity, ids, first)),
  );
  readonly nextActivity = this.#lists((copy, ids) => readNextActivities(copy, ids, this.now()));

  readonly meeting = rowBy(this.#ofTenant(readMeetings), ({ id }) => id);
  readonly previousMeeting = rowBy(
    this.#ofCopy((copy, ids: readonly string[]) => readPreviousMeetings(copy, ids, this.now())),
    ({ parent_id }) => parent_id,
  );
  readonly attendees = listsBy(this.#ofTenant(readAttendees), ({ meetingId }) => meetingId);
  readonly timeline = this.#lists((copy, ids: readonly string[], first) => readTimelines(copy, ids, first, this.now()));
  /** The deal that a meeting is about: read with the match, and not after it. */
  readonly dealOfMeeting = rowBy(this.#ofCopy(readMatchedDeals), ({ meeting_id }) => meeting_id);
  readonly match = listsBy(this.#ofTenant(readMatches), ({ meetingId }) => meetingId);
  readonly otherDeals = listsBy(this.#ofCopy(readOtherDeals), ({ meeting_id }) => meeting_id);
  readonly steps = listsBy(this.#ofTenant(readStepsOf), ({ runId }) => runId);

  #ofTenant<Key, Row>(read: (scope: TenantScope, keys: readonly Key[]) => Promise<Row[]>): Read<Key, Row> {
    return (keys) => read(this.scope, keys);
  }

  /** While nothing is connected there is nothing. */
  #ofCopy<Key, Row>(read: (copy: CopyScope, keys: readonly Key[]) => Promise<Row[]>): Read<Key, Row> {
    return async (keys) => {
      const copy = await this.copy();
      return copy ? read(copy, keys) : [];
    };
  }

  #byId<Row extends CrmRow>(read: (copy: CopyScope, ids: readonly number[]) => Promise<Row[]>) {
    return rowBy(this.#ofCopy(read), ({ crmId }) => crmId);
  }

  #fieldsOf(entity: MatchedEntity): DataLoader<WithFields, ShownField[], number> {
    const named = { user: this.user, people: this.person, org: this.organization };
    return new DataLoader(
      async (records) => {
        const copy = await this.copy();
        if (!copy) return records.map(() => []);
        const values = records.map(({ customFields }) => customFields);
        return readFields(copy, entity, values, (kind, ids) => recordsOf<CrmRow & { name: string }>(named[kind], ids));
      },
      { cacheKeyFn: ({ crmId }) => crmId },
    );
  }

  /** Lists of records by parent; parents that ask for equally many share a read. */
  #lists<Row extends { parent_id: Id }, Id extends number | string = number>(
    read: (copy: CopyScope, ids: readonly Id[], first: number) => Promise<Row[]>,
  ): DataLoader<ListKey<Id>, Row[], string> {
    return new DataLoader(
      async (keys) => {
        const copy = await this.copy();
        if (!copy) return keys.map(() => []);
        const found = new Map<number, Map<Id, Row[]>>();
        const readSize = async ([first, alike]: [number, ListKey<Id>[]]) => {
          const ids = alike.map(({ id }) => id);
          const lists = grouped<Id, Row>(await read(copy, ids, first), ({ parent_id }) => parent_id);
          found.set(first, lists);
        };
        await Promise.all([...grouped(keys, ({ first }) => first)].map(readSize));
        return keys.map(({ id, first }) => found.get(first)?.get(id) ?? []);
      },
      { cacheKeyFn: ({ id, first }) => `${id}:${first}` },
    );
  }

  #perEntity<T>(make: (entity: MatchedEntity) => T): Record<MatchedEntity, T> {
    return { DEAL: make("DEAL"), PERSON: make("PERSON"), ORGANIZATION: make("ORGANIZATION") };
  }
}

const rowBy = <Key, Row>(read: Read<Key, Row>, keyOf: (row: Row) => Key | null) =>
  new DataLoader<Key, Row | null>(async (keys) => rowOfEach(keys, await read(keys), keyOf));

const listsBy = <Key, Row>(read: Read<Key, Row>, keyOf: (row: Row) => Key | null) =>
  new DataLoader<Key, Row[]>(async (keys) => rowsOfEach(keys, await read(keys), keyOf));

/** From a CRM id to its record: null where there is none, or none that this tenant may read. */
export const recordOf = async <Row>(loader: DataLoader<number, Row | null>, id: number | null): Promise<Row | null> =>
  id === null ? null : loader.load(id);

/** Those of a list of ids that this tenant may read, in the order given. */
export async function recordsOf<Row>(
  loader: Pick<DataLoader<number, Row | null>, "load">,
  ids: readonly number[],
): Promise<Row[]> {
  const found = await Promise.all(ids.map((id) => loader.load(id)));
  return found.filter((row) => row !== null);
}
