import DataLoader from "dataloader";
import { readFields, type ShownField } from "../briefing/fields";
import { type AskedEntries, type Entry, readChanges } from "../briefing/journal";
import { meetingsById, readAttendees, readMatches, readPreviousMeetings } from "../briefing/meeting-rows";
import type { ShownNotes } from "../briefing/notes";
import type { Judged } from "../briefing/quiet/facts";
import { readKeptFacts } from "../briefing/quiet/read-quiet";
import {
  type CustomFields,
  readActivities,
  readCandidates,
  readCustomFields,
  readDealLinks,
  readHeldOrganizations,
  readMails,
  readMatched,
  readMatchedIds,
  readNotes,
  readOpenDealsOf,
  readOtherDeals,
  readOurNotes,
  readParticipantIds,
  readPersonsOf,
  readRecentActivities,
  readRecentNotes,
  readSetup,
  readStagesOf,
  readUnreadDealsOf,
  readUsersByEmail,
} from "../briefing/records";
import { type ContactRow, readContacts, readNextActivities } from "../briefing/timeline";
import { type CopyState, readCopyState } from "../connections/completeness";
import type { CopyScope, TenantScope } from "../database/database";
import type { Id, Ids } from "../database/rows";
import { CrmUserRow, PipelineRow, StageRow } from "../entities/crm-company";
import type { MatchedEntity, MeetingRow } from "../entities/meeting";
import type { ShownNote } from "../platform/safe-html";
import { readStepsOf } from "../sync/run-history";
import { allOf, LookUp, oneOf, recordsOf } from "./look-ups";

type CrmRow = { crmId: number };

/** Of a note that a sync has removed since it was found. */
const GONE: ShownNote = { html: "", text: "", cut: true };

/**
 * One read for each kind of record on a level of an operation, however many parents ask, and all reads of a level in
 * one statement (`database/joint-reads.ts`). Made anew for each operation, so nothing is kept between callers.
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
  readonly stagesOf = this.#listsBy(readStagesOf, ({ pipelineId }) => pipelineId);
  readonly deal = this.#byId((copy, ids) => readMatched(copy, "DEAL", ids));
  readonly person = this.#byId((copy, ids) => readMatched(copy, "PERSON", ids));
  readonly organization = this.#byId((copy, ids) => readMatched(copy, "ORGANIZATION", ids));

  readonly customFieldsOfDeal = this.#customFieldsOf("DEAL");
  readonly customFieldsOfPerson = this.#customFieldsOf("PERSON");
  readonly customFieldsOfOrganization = this.#customFieldsOf("ORGANIZATION");
  /** The same in words. */
  readonly fields = {
    DEAL: this.#fieldsOf("DEAL", this.customFieldsOfDeal),
    PERSON: this.#fieldsOf("PERSON", this.customFieldsOfPerson),
    ORGANIZATION: this.#fieldsOf("ORGANIZATION", this.customFieldsOfOrganization),
  };
  readonly activity = this.#byId(readActivities);
  readonly note = this.#byId(readNotes);
  /** Loaders of everything with a CRM id, by the type that it is shown as. */
  readonly records = {
    ...{ CrmUser: this.user, Pipeline: this.pipeline, Stage: this.stage, Activity: this.activity, Note: this.note },
    ...{ Deal: this.deal, Person: this.person, Organization: this.organization },
  };
  /** Asked for notes only that were found readable before. */
  readonly shownNote = this.#ofCopy<number, ShownNote>(async (copy, ids) => {
    const shown = await this.shownNotes.read(copy, ids);
    return (id) => shown.get(id) ?? GONE;
  }, GONE);

  /** With the instant of judging. Asked for deals only that were read as matched ones; null for one that a sync has removed meanwhile. */
  readonly quietFacts = this.#ofCopy<number, Judged | null>(async (copy, dealIds) => {
    const now = this.now();
    const found = await readKeptFacts(copy, dealIds, now);
    const judged = found?.deals.map((facts) => ({ facts, copy: found.copy, now })) ?? [];
    return oneOf(judged, ({ facts }) => facts.dealId);
  }, null);

  readonly changes = new DataLoader<AskedEntries, Entry[], string>(
    async (asked) => {
      const copy = await this.copy();
      const found = copy ? await readChanges(copy, asked) : [];
      return asked.map((_, index) => found.filter((entry) => entry.asked === index + 1));
    },
    { cacheKeyFn: ({ dealId, first, since }) => `${dealId}:${first}:${since?.getTime()}` },
  );

  readonly userByEmail = new DataLoader<string, CrmUserRow | null>(async (emails) => {
    const copy = await this.copy();
    return copy ? readUsersByEmail(copy, emails) : emails.map(() => null);
  });

  /** How whole the copy is: known by one id. */
  readonly state = this.#ofCopy<number, CopyState | null>(async (copy) => {
    const state = await readCopyState(copy);
    return () => state;
  }, null);
  readonly unreadDealsOf = this.#lists(readUnreadDealsOf);
  /** Of a person that is held, readable or not. */
  readonly mails = this.#byId(readMails);
  /** Of an organization that is held, readable or not. */
  readonly heldOrganizations = this.#byId(readHeldOrganizations);
  readonly ourNotes = this.#byId(readOurNotes);
  readonly participantIds = this.#listsBy(readParticipantIds, ({ dealId }) => dealId);
  readonly personsOf = this.#lists(readPersonsOf);
  readonly openDealsOfPerson = this.#openDealsOf("PERSON");
  readonly openDealsOfOrganization = this.#openDealsOf("ORGANIZATION");
  readonly activitiesOfDeal = this.#activitiesOf("DEAL");
  readonly activitiesOfPerson = this.#activitiesOf("PERSON");
  readonly activitiesOfOrganization = this.#activitiesOf("ORGANIZATION");
  readonly notesOfDeal = this.#notesOf("DEAL");
  readonly notesOfPerson = this.#notesOf("PERSON");
  readonly notesOfOrganization = this.#notesOf("ORGANIZATION");
  readonly nextActivity = this.#lists((copy, ids) => readNextActivities(copy, ids, this.now()));

  readonly meeting = this.#ofTenant(meetingsById, (rows) => oneOf(rows, ({ id }) => id));
  readonly previousMeeting = this.#ofCopy<string, MeetingRow | null>(
    async (copy, ids) => oneOf(await readPreviousMeetings(copy, ids, this.now()), ({ parent_id }) => parent_id),
    null,
  );
  readonly attendees = this.#ofTenant(readAttendees, (rows) => allOf(rows, ({ meetingId }) => meetingId));
  readonly candidates = this.#listsBy(readCandidates, ({ meetingId }) => meetingId);
  readonly match = this.#ofTenant(readMatches, (rows) => oneOf(rows, ({ meetingId }) => meetingId));
  readonly contactsAround = this.#lists<ContactRow & { parent_id: string }, string>((copy, ids, first) =>
    readContacts(copy, ids, first, this.now()),
  );
  readonly matchedIds = this.#listsBy(readMatchedIds, ({ meetingId }) => meetingId);
  readonly dealLinks = this.#byId(readDealLinks);
  readonly otherDeals = this.#listsBy(readOtherDeals, ({ meeting_id }) => meeting_id);
  readonly steps = this.#ofTenant(readStepsOf, (rows) => allOf(rows, ({ runId }) => runId));

  #ofTenant<I extends Id, Row, Value>(
    read: (scope: TenantScope, ids: Ids<I>) => Promise<Row[]>,
    valuesOf: (rows: Row[]) => (id: I) => Value,
  ) {
    const find = async (scope: TenantScope, ids: Ids<I>) => valuesOf(await read(scope, ids));
    return new LookUp<I, Value>((ids) => find(this.scope, ids), find);
  }

  /** @param nothing all that there is while nothing is connected */
  #ofCopy<I extends Id, Value>(
    find: (copy: CopyScope, ids: Ids<I>, first: number) => Promise<(id: I) => Value>,
    nothing: Value,
  ) {
    return new LookUp<I, Value>(async (ids, first) => {
      const copy = await this.copy();
      return copy ? find(copy, ids, first) : () => nothing;
    }, find);
  }

  #byId<Row extends CrmRow>(read: (copy: CopyScope, ids: Ids) => Promise<Row[]>) {
    return this.#ofCopy<number, Row | null>(
      async (copy, ids) => oneOf(await read(copy, ids), ({ crmId }) => crmId),
      null,
    );
  }

  #listsBy<Row, I extends Id>(read: (copy: CopyScope, ids: Ids<I>) => Promise<Row[]>, idOf: (row: Row) => I | null) {
    return this.#ofCopy<I, Row[]>(async (copy, ids) => allOf(await read(copy, ids), idOf), []);
  }

  /** Lists of records by parent. */
  #lists<Row extends { parent_id: I }, I extends Id = number>(
    read: (copy: CopyScope, ids: Ids<I>, first: number) => Promise<Row[]>,
  ) {
    const find = async (copy: CopyScope, ids: Ids<I>, first: number) =>
      allOf(await read(copy, ids, first), ({ parent_id }: Row) => parent_id);
    return this.#ofCopy<I, Row[]>(find, []);
  }

  #openDealsOf(of: "PERSON" | "ORGANIZATION") {
    return this.#lists((copy, ids, first) => readOpenDealsOf(copy, of, ids, first));
  }

  #activitiesOf(entity: MatchedEntity) {
    return this.#lists((copy, ids, first) => readRecentActivities(copy, entity, ids, first));
  }

  #notesOf(entity: MatchedEntity) {
    return this.#lists((copy, ids, first) => readRecentNotes(copy, entity, ids, first));
  }

  #customFieldsOf(entity: MatchedEntity) {
    return this.#ofCopy<number, CustomFields>(async (copy, ids) => {
      const found = oneOf(await readCustomFields(copy, entity, ids), ({ crmId }) => crmId);
      return (id) => found(id)?.values ?? {};
    }, {});
  }

  #fieldsOf(entity: MatchedEntity, values: LookUp<number, CustomFields>) {
    const named = { user: this.user, people: this.person, org: this.organization };
    return new DataLoader<number, ShownField[]>(async (ids) => {
      const copy = await this.copy();
      if (!copy) return ids.map(() => []);
      const found = await Promise.all(ids.map((id) => values.load(id)));
      return readFields(copy, entity, found, (kind, of) => recordsOf<CrmRow & { name: string }>(named[kind], of));
    });
  }
}
