import type { Actor } from "../auth/actor";
import type { Database } from "../database/database";
import type { MeetingRow } from "../entities/meeting";
import type { Clock } from "../platform/clock";
import type { Logger } from "../platform/logger";
import type { Outcome } from "../platform/outcome";
import { type ChoiceRefusal, chooseDeal, type DealChoice } from "./choose-deal";
import { type AttendeeInput, matchMeetings } from "./match-meeting";
import { upsertMeeting } from "./meeting-rows";

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
  record(actor: Actor, { attendees, ...meeting }: RecordMeetingInput): Promise<MeetingRow> {
    return this.database.tenant(actor.tenantId).transaction(async (scope) => {
      const row = await upsertMeeting(scope, { ...meeting, recordedBy: actor.userId, recordedAt: this.clock() });
      await matchMeetings(scope, [{ row, attendees }], this.clock(), "RECORDED");
      return row;
    });
  }

  /** Settles which deal a meeting is about. */
  choose(actor: Actor, choice: DealChoice): Promise<Outcome<MeetingRow, ChoiceRefusal>> {
    return this.database
      .tenant(actor.tenantId)
      .transaction((scope) => chooseDeal(scope, actor, choice, this.clock(), this.logger));
  }
}
