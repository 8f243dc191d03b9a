import DataLoader from "dataloader";
import { readAttendees, readMatches, readMeetings } from "../briefing/briefings";
import { readNextActivities, readRecentActivities, readRecentNotes } from "../briefing/context-records";
import {
  type CopyScope,
  readMatched,
  readOpenDealsOf,
  readParticipants,
  readPersonsOf,
  readSetup,
  readUsersByEmail,
} from "../briefing/records";
import type { TenantScope } from "../database/tenant-door";
import { CrmUserRow } from "../entities/crm-user";
import type { MatchedEntity } from "../entities/matched-record";
import { PipelineRow } from "../entities/pipeline";
import { StageRow } from "../entities/stage";
import { normalizeAddress } from "../platform/email-address";
import { readStepsOf } from "../sync/run-history";

/** A list inside a record: which record, and how many. */
export interface ListKey {
  id: number;
  first: number;
}

interface CrmRow {
  crmId: number;
}

/**
 * One statement for each kind of record of an operation, however many parents ask. Made anew for each operation, so
 * nothing is kept between callers.
 */
export class Loaders {
  constructor(
    private readonly scope: TenantScope,
    private readonly copy: () => Promise<CopyScope | null>,
    private readonly now: () => Date,
  ) {}

  readonly user = this.#byId((copy, ids) => readSetup(copy, CrmUserRow, ids));
  readonly pipeline = this.#byId((copy, ids) => readSetup(copy, PipelineRow, ids));
  readonly stage = this.#byId((copy, ids) => readSetup(copy, StageRow, ids));
  readonly deal = this.#byId((copy, ids) => readMatched(copy, "DEAL", ids));
  readonly person = this.#byId((copy, ids) => readMatched(copy, "PERSON", ids));
  readonly organization = this.#byId((copy, ids) => readMatched(copy, "ORGANIZATION", ids));

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
  readonly attendees = this.#perMeeting((ids) => readAttendees(this.scope, ids));
  readonly match = this.#perMeeting((ids) => readMatches(this.scope, ids));
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

  /** Lists of records by parent; parents that ask for equally many share a statement. */
  #lists<Row extends { parent_id: number }>(
    read: (copy: CopyScope, ids: readonly number[], first: number) => Promise<Row[]>,
  ): DataLoader<ListKey, Row[], string> {
    return new DataLoader(
      async (keys) => {
        const copy = await this.copy();
        const found = new Map<number, Map<number, Row[]>>();
        for (const first of new Set(keys.map((key) => key.first))) {
          const ids = keys.filter((key) => key.first === first).map(({ id }) => id);
          found.set(first, groupByParent(copy ? await read(copy, ids, first) : []));
        }
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

function groupByParent<Row extends { parent_id: number }>(found: readonly Row[]): Map<number, Row[]> {
  const groups = new Map<number, Row[]>();
  for (const row of found) groups.set(row.parent_id, [...(groups.get(row.parent_id) ?? []), row]);
  return groups;
}
