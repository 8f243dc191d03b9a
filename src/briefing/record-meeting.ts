import type { Actor } from "../auth/actor";
import { recordAudit } from "../auth/audit";
import type { Database, TenantScope } from "../database/database";
import type { MeetingRow } from "../entities/meeting";
import type { Clock } from "../platform/clock";
import { accepted, type Outcome } from "../platform/errors";
import type { Logger } from "../platform/logger";
import { type ChoiceRefusal, chooseDeal, type DealChoice, NO_MEETING, unchooseDeal } from "./choose-deal";
import { type AttendeeInput, matchMeetings } from "./match-meeting";
import { eraseMeeting, lockMeeting, markCancelled, upsertMeetings } from "./meeting-rows";

export interface RecordMeetingInput {
  externalId: string;
  title: string;
  startsAt: Date;
  endsAt: Date | null;
  ownerEmail: string;
  attendees: AttendeeInput[];
}

/** The product's own meetings come in here, by their `externalId`, and are matched at once. */
export class Meetings {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly logger: Logger,
  ) {}

  /** Records or replaces a meeting and matches it. */
  async record(actor: Actor, input: RecordMeetingInput): Promise<MeetingRow> {
    const [row] = await this.recordAll(actor, [input]);
    if (!row) throw new Error("a meeting was recorded and is not there");
    return row;
  }

  /** The same for many at once. @returns one for each; of two with one `externalId` the later holds */
  recordAll(actor: Actor, inputs: readonly RecordMeetingInput[]): Promise<MeetingRow[]> {
    const newest = new Map(inputs.map((input) => [input.externalId, input]));
    const stamp = { recordedBy: actor.userId, recordedAt: this.clock() };
    return this.#inTurn(actor, async (scope) => {
      const meetings = [...newest.values()].map(({ attendees: _, ...meeting }) => ({ ...meeting, ...stamp }));
      const rows = new Map((await upsertMeetings(scope, meetings)).map((row) => [row.externalId, row]));
      const found = inputs.flatMap(({ externalId }) => rows.get(externalId) ?? []);
      const recorded = [...rows.values()].map((row) => ({
        row,
        attendees: newest.get(row.externalId)?.attendees ?? [],
      }));
      await matchMeetings(scope, recorded, this.clock(), "RECORDED");
      return found;
    });
  }

  /** Settles which deal a meeting is about. */
  choose(actor: Actor, choice: DealChoice): Promise<Outcome<MeetingRow, ChoiceRefusal>> {
    return this.#inTurn(actor, (scope) => chooseDeal(scope, actor, choice, this.clock(), this.logger));
  }

  /** Takes a choice back; without one nothing changes. */
  unchoose(actor: Actor, meetingId: string | null): Promise<Outcome<MeetingRow, "MEETING_NOT_FOUND">> {
    return this.#inTurn(actor, (scope) => unchooseDeal(scope, actor, meetingId, this.clock(), this.logger));
  }

  /** It did not or will not take place: it grants nothing and is no contact, until it is recorded again. */
  cancel(actor: Actor, meetingId: string | null): Promise<Outcome<MeetingRow, "MEETING_NOT_FOUND">> {
    return this.#inTurn(actor, async (scope) => {
      const meeting = meetingId === null ? null : await lockMeeting(scope, meetingId);
      if (!meeting) return NO_MEETING;
      if (meeting.row.cancelledAt !== null) return accepted(meeting.row);
      const row = await markCancelled(scope, meeting.row, this.clock());
      await matchMeetings(scope, [{ ...meeting, row }], this.clock(), "CANCELLED");
      return accepted(row);
    });
  }

  /** Erases a meeting with its attendees and its match. Where there is none, there is nothing to erase. */
  delete(actor: Actor, meetingId: string | null): Promise<void> {
    return this.#inTurn(actor, async (scope) => {
      const meeting = meetingId === null ? null : await lockMeeting(scope, meetingId);
      if (!meeting) return;
      const { row } = meeting;
      // As a cancelled one, first: what it granted and was a contact for is judged without it.
      await matchMeetings(
        scope,
        [{ ...meeting, row: { ...row, cancelledAt: this.clock() } }],
        this.clock(),
        "CANCELLED",
      );
      await eraseMeeting(scope, row.id);
      const event = { action: "MEETING_DELETED", actor, at: this.clock(), subject: row.id } as const;
      await recordAudit(scope, this.logger, event);
    });
  }

  #inTurn<T>({ tenantId }: Actor, work: (scope: TenantScope) => Promise<T>): Promise<T> {
    return this.database.tenant(tenantId).transaction(work);
  }
}
