import { z } from "zod";
import type { Actor } from "../auth/actor";
import type { TenantDoor } from "../database/tenant-door";
import type { MeetingRow } from "../entities/meeting";
import type { Clock } from "../platform/clock";
import { normalizeAddress } from "../platform/email-address";
import type { Logger } from "../platform/logger";
import { accepted, type Outcome, refused } from "../platform/outcome";
import { type ChoiceRefusal, chooseDeal, type DealChoice } from "./choose-deal";
import { type AttendeeInput, matchMeeting } from "./match-meeting";
import { upsertMeeting } from "./meeting-rows";

export interface RecordMeetingInput {
  externalId: string;
  title: string;
  startsAt: Date;
  endsAt: Date | null;
  ownerEmail: string;
  attendees: AttendeeInput[];
}

/** A town hall has hundreds; a list of thousands is a mistake of the sender. */
const MAX_ATTENDEES = 500;

const line = (max: number) =>
  z
    .string()
    .trim()
    .min(1, { error: "must not be empty" })
    .max(max, { error: `must have at most ${max} characters` })
    .refine((text) => !text.includes("\0"), { error: "must not contain a NUL character" });

const sensibleInstant = z
  .date()
  .min(new Date("1970-01-01"), { error: "must not be before 1970" })
  .max(new Date("2200-01-01"), { error: "must not be after 2200" });

const meetingInput = z
  .object({
    externalId: line(200),
    title: line(500),
    startsAt: sensibleInstant,
    endsAt: sensibleInstant.nullable(),
    ownerEmail: line(320).refine((email) => normalizeAddress(email) !== null, { error: "is not an e-mail address" }),
    attendees: z
      .array(z.object({ email: line(320), name: line(320).nullable() }))
      .max(MAX_ATTENDEES, { error: `must be at most ${MAX_ATTENDEES}` }),
  })
  .refine(({ startsAt, endsAt }) => endsAt === null || endsAt >= startsAt, {
    path: ["endsAt"],
    error: "must not be before startsAt",
  });

/** The product's own meetings come in here, by their `externalId`, and are matched at once. */
export class Meetings {
  constructor(
    private readonly door: TenantDoor,
    private readonly clock: Clock,
    private readonly logger: Logger,
  ) {}

  /** Records or replaces a meeting and matches it. */
  async record(actor: Actor, input: RecordMeetingInput): Promise<Outcome<MeetingRow, "INVALID_INPUT">> {
    const parsed = meetingInput.safeParse(input);
    if (!parsed.success) {
      const [issue] = parsed.error.issues;
      const field = issue?.path.join(".") ?? "";
      return refused("INVALID_INPUT", `${field} ${issue?.message ?? "is not valid"}.`, field);
    }
    const { attendees, ...meeting } = parsed.data;
    return this.door.transaction(actor.tenantId, async (scope) => {
      const row = await upsertMeeting(scope, { ...meeting, recordedBy: actor.userId, recordedAt: this.clock() });
      await matchMeeting(scope, { row, attendees }, this.clock(), true);
      return accepted(row);
    });
  }

  /** Settles which deal a meeting is about. */
  choose(actor: Actor, choice: DealChoice): Promise<Outcome<MeetingRow, ChoiceRefusal>> {
    return this.door.transaction(actor.tenantId, (scope) =>
      chooseDeal(scope, actor, choice, this.clock(), this.logger),
    );
  }
}
