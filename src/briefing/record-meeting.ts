import { randomUUID } from "node:crypto";
import { z } from "zod";
import type { Actor } from "../auth/actor";
import { rows } from "../database/rows";
import type { TenantDoor, TenantScope } from "../database/tenant-door";
import { MeetingRow } from "../entities/meeting";
import { MeetingAttendeeRow } from "../entities/meeting-attendee";
import { type Clock, DAY_MS } from "../platform/clock";
import { normalizeAddress } from "../platform/email-address";
import { accepted, type Outcome, refused } from "../platform/outcome";
import { type AttendeeInput, matchMeeting } from "./match-meeting";

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
/** Meetings older than this are not matched again after a sync. */
const REMATCH_FOR_MS = 30 * DAY_MS;

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

/** Recording meetings: the product's own meetings come in here, by their `externalId`, and are matched at once. */
export class Meetings {
  constructor(
    private readonly door: TenantDoor,
    private readonly clock: Clock,
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
      const row = await this.#upsert(scope, { ...meeting, recordedBy: actor.userId, recordedAt: this.clock() });
      await matchMeeting(scope, row, attendees, this.clock());
      return accepted(row);
    });
  }

  /** Matches the tenant's meetings of the last 30 days and of the future again: a sync may have brought their people. */
  async rematch(tenantId: string): Promise<void> {
    const since = new Date(this.clock().getTime() - REMATCH_FOR_MS);
    const recent = await rows<{ id: string }>(
      this.door.enter(tenantId).manager,
      "SELECT id FROM meeting WHERE tenant_id = $1 AND starts_at > $2 ORDER BY starts_at DESC",
      [tenantId, since],
    );
    for (const { id } of recent) await this.door.transaction(tenantId, (scope) => this.#rematchOne(scope, id));
  }

  async #rematchOne(scope: TenantScope, id: string): Promise<void> {
    const { tenantId, manager } = scope;
    const lock = { mode: "pessimistic_write" } as const;
    const meeting = await manager.findOne(MeetingRow, { where: { tenantId, id }, lock });
    if (!meeting) return;
    const order = { position: "ASC" } as const;
    const attendees = await manager.find(MeetingAttendeeRow, { where: { tenantId, meetingId: id }, order });
    await matchMeeting(scope, meeting, attendees, this.clock());
  }

  /** A meeting that is recorded again keeps its id. */
  async #upsert({ tenantId, manager }: TenantScope, meeting: Omit<MeetingRow, "tenantId" | "id">): Promise<MeetingRow> {
    const { externalId, title, startsAt, endsAt, ownerEmail, recordedBy, recordedAt } = meeting;
    await rows(
      manager,
      `INSERT INTO meeting (tenant_id, id, external_id, title, starts_at, ends_at, owner_email, recorded_by, recorded_at)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
       ON CONFLICT (tenant_id, external_id) DO UPDATE SET title = EXCLUDED.title, starts_at = EXCLUDED.starts_at,
         ends_at = EXCLUDED.ends_at, owner_email = EXCLUDED.owner_email,
         recorded_by = EXCLUDED.recorded_by, recorded_at = EXCLUDED.recorded_at`,
      [tenantId, randomUUID(), externalId, title, startsAt, endsAt, ownerEmail, recordedBy, recordedAt],
    );
    return manager.findOneByOrFail(MeetingRow, { tenantId, externalId });
  }
}
