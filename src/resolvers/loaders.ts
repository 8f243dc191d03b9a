import DataLoader from "dataloader";
import { readFields, type ShownField } from "../briefing/fields";
import { type Asked, type Entry, readChanges, readPreviousMeetings } from "../briefing/journal";
import { readAttendees, readMatches, readMeetings, whyOutdated } from "../briefing/meeting-rows";
import type { ShownNote, ShownNotes } from "../briefing/notes";
import type { CopyFacts, DealFacts } from "../briefing/quiet/facts";
import { readQuietFacts } from "../briefing/quiet/read-quiet";
import {
  readActivities,
  readMatched,
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
import { CrmUserRow, PipelineRow, StageRow } from "../entities/crm-company";
import type { MatchedEntity, MeetingMatchRow } from "../entities/meeting";
import { normalizeAddress } from "../platform/email-address";
import { readStepsOf } from "../sync/run-history";
import type { OperationContext } from "./context";

/** A list inside a record: which record, and how many. */
export interface ListKey<Id = number> {
  id: Id;
  first: number;
}

/** A deal's silence is judged by these facts, at this instant. */
export interface QuietFacts {
  facts: DealFacts;
  copy: CopyFacts;
  now: Date;
}

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
  readonly stagesOf = new DataLoader<number, StageRow[]>(async (pipelineIds) => {
    const copy = await this.copy();
    const found = copy ? await readStagesOf(copy, pipelineIds) : [];
    return pipelineIds.map((id) => found.filter(({ pipelineId }) => pipelineId === id));
  });
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

  /** Asked for deals only that were read as matched ones; null for one that a sync has removed meanwhile. */
  readonly quietFacts = new DataLoader<number, QuietFacts | null>(async (dealIds) => {
    const [copy, now] = [await this.copy(), this.now()];
    const found = copy && (await readQuietFacts(copy, dealIds, now));
    const deals = new Map(found?.deals.map((facts) => [facts.dealId, facts]));
    return dealIds.map((id) => {
      const facts = deals.get(id);
      return found && facts ? { facts, copy: found.copy, now } : null;
    });
  });

  readonly changes = new DataLoader<Asked, Entry[], string>(
    async (asked) => {
      const copy = await this.copy();
      const found = copy ? await readChanges(copy, asked) : [];
      return asked.map((_, index) => found.filter((entry) => entry.asked === index + 1));
    },
    { cacheKeyFn: ({ dealId, first, since }) => `${dealId}:${first}:${since?.getTime()}` },
  );

  readonly userByEmail = new DataLoader<string, CrmUserRow | null>(async (emails) => {
    const copy = await this.copy();
    const found = copy ? await readUsersByEmail(copy, emails) : [];
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

  readonly meeting = new DataLoader(async (ids: readonly string[]) => {
    const found = new Map((await readMeetings(this.scope, ids)).map((row) => [row.id, row]));
    return ids.map((id) => found.get(id) ?? null);
  });
  readonly previousMeeting = new DataLoader(async (ids: readonly string[]) => {
    const copy = await this.copy();
    const found = copy ? await readPreviousMeetings(copy, ids) : [];
    return ids.map((id) => found.find(({ parent_id }) => parent_id === id) ?? null);
  });
  readonly attendees = this.#perMeeting((ids) => readAttendees(this.scope, ids));
  readonly timeline = this.#lists((copy, ids: readonly string[], first) => readTimelines(copy, ids, first, this.now()));
  readonly match = this.#perMeeting((ids) => readMatches(this.scope, ids));
  readonly otherDeals = new DataLoader(async (meetingIds: readonly string[]) => {
    const copy = await this.copy();
    const found = copy ? await readOtherDeals(copy, meetingIds) : [];
    return meetingIds.map((id) => found.filter(({ meeting_id }) => meeting_id === id));
  });
  readonly steps = new DataLoader(async (runIds: readonly string[]) => {
    const found = await readStepsOf(this.scope, runIds);
    return runIds.map((id) => found.filter(({ runId }) => runId === id));
  });

  #byId<Row extends CrmRow>(
    read: (copy: CopyScope, ids: readonly number[]) => Promise<Row[]>,
  ): DataLoader<number, Row | null> {
    return new DataLoader(async (ids) => {
      const copy = await this.copy();
      const found = new Map((copy ? await read(copy, ids) : []).map((row) => [row.crmId, row]));
      return ids.map((id) => found.get(id) ?? null);
    });
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
        const found = new Map<number, Map<Id, Row[]>>();
        const readSize = async (first: number) => {
          const ids = keys.filter((key) => key.first === first).map(({ id }) => id);
          found.set(first, groupByParent<Id, Row>(copy ? await read(copy, ids, first) : []));
        };
        await Promise.all([...new Set(keys.map(({ first }) => first))].map(readSize));
        return keys.map(({ id, first }) => found.get(first)?.get(id) ?? []);
      },
      { cacheKeyFn: ({ id, first }) => `${id}:${first}` },
    );
  }

  #perEntity<T>(make: (entity: MatchedEntity) => T): Record<MatchedEntity, T> {
    return { DEAL: make("DEAL"), PERSON: make("PERSON"), ORGANIZATION: make("ORGANIZATION") };
  }

  #perMeeting<Row extends { meetingId: string }>(
    read: (ids: readonly string[]) => Promise<Row[]>,
  ): DataLoader<string, Row[]> {
    return new DataLoader(async (ids) => {
      const found = await read(ids);
      return ids.map((id) => found.filter(({ meetingId }) => meetingId === id));
    });
  }
}

function groupByParent<Id, Row extends { parent_id: Id }>(found: readonly Row[]): Map<Id, Row[]> {
  const groups = new Map<Id, Row[]>();
  for (const row of found) groups.set(row.parent_id, [...(groups.get(row.parent_id) ?? []), row]);
  return groups;
}

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

/** The reason why a meeting's match counts no more; null while it counts. */
export const outdatedBecause = async ({ copy }: Pick<OperationContext, "copy">, match: MeetingMatchRow | undefined) =>
  whyOutdated((await copy())?.copyId ?? null, match);
