import type { Actor } from "../auth/actor";
import { recordAudit } from "../auth/policies";
import { liveCopyId, NOT_CONNECTED } from "../connections/connection";
import type { KeepOut, KeptOut } from "../connections/keep-out";
import type { CopyScope, Database, TenantScope } from "../database/database";
import { behindOthers } from "../database/errors";
import { MeetingRow } from "../entities/meeting";
import type { Clock } from "../platform/clock";
import { ERASED, mailboxIn, nameBeside } from "../platform/email-address";
import { accepted, type Outcome, refused } from "../platform/errors";
import type { Logger } from "../platform/logger";
import { withoutMentions } from "../platform/mentions";
import { DROP_CHOICES, type LockedMeeting, lockMeeting, matchMeetings } from "./match-meeting";
import { type AttendeeInput, upsertMeetings } from "./meeting-rows";
import { isMatched } from "./records";

interface DealChoice {
  /** null where the id that was given is no meeting's. */
  meetingId: string | null;
  /** A deal of a copy; null where the id that was given is no deal's. */
  deal: { copyId: number; crmId: number } | null;
}

export type ChoiceRefusal = "MEETING_NOT_FOUND" | "NOT_CONNECTED" | "DEAL_NOT_FOUND" | "TARGET_NOT_MATCHED";

const NO_MEETING = refused("MEETING_NOT_FOUND", "There is no meeting with this id. Record it first.", "meetingId");
const NO_DEAL = refused(
  "DEAL_NOT_FOUND",
  "There is no such deal. Choose one of the deals in the meeting's match.candidates.",
  "dealId",
);
const NO_CANDIDATE = refused(
  "TARGET_NOT_MATCHED",
  "This deal is none of the meeting's. Choose one of the deals in its match.candidates.",
  "dealId",
);

const keyOf = ({ tenantId, id }: MeetingRow) => ({ tenantId, id });

async function isReadable(copy: CopyScope, dealId: number): Promise<boolean> {
  const found = await copy.rows(
    `SELECT 1 FROM deal t WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.crm_id = $3 AND ${isMatched("DEAL")}`,
    [copy.tenantId, copy.copyId, dealId],
  );
  return found.length > 0;
}

/** The deal that a meeting was about, where the user was shown another as a candidate; undefined where not. */
async function dealBefore(scope: TenantScope, meetingId: string, copyId: number, dealId: number) {
  const sql = `SELECT deal_id AS "dealId" FROM meeting_match
    WHERE tenant_id = $1 AND meeting_id = $2 AND copy_id = $3 AND candidates @> $4::jsonb`;
  const parameters = [scope.tenantId, meetingId, copyId, JSON.stringify([{ dealId }])];
  return (await scope.rows<{ dealId: number | null }>(sql, parameters, { dealId: "number" }))[0];
}

const CHOSEN = `SELECT chosen_deal_id AS "dealId" FROM meeting_match
  WHERE tenant_id = $1 AND meeting_id = $2 AND chosen_deal_id IS NOT NULL`;

/** For those who are there: for whom it was kept before, be it the same deal, counts no more. */
async function storeChoice(
  { tenantId, rows }: TenantScope,
  meetingId: string,
  copyId: number,
  { dealId, by, at }: { dealId: number; by: string; at: Date },
): Promise<void> {
  await rows(
    `UPDATE meeting_match SET chosen_deal_id = $3, chosen_by = $4, chosen_at = $5, last_deal = NULL,
       chosen_company_id = (SELECT crm_company_id FROM synced_copy WHERE tenant_id = $1 AND id = $6)
     WHERE tenant_id = $1 AND meeting_id = $2`,
    [tenantId, meetingId, dealId, by, at, copyId],
  );
}

export interface RecordMeetingInput {
  externalId: string;
  title: string;
  startsAt: Date;
  endsAt: Date | null;
  ownerEmail: string;
  attendees: AttendeeInput[];
}

/** A meeting without attendees who are kept out, and without their names and addresses in its title. */
function withoutKeptOut(kept: KeptOut, meeting: RecordMeetingInput): RecordMeetingInput {
  const { title, ownerEmail, attendees } = meeting;
  const out = attendees.filter((attendee) => kept.has(attendee.email));
  const isOwner = kept.has(ownerEmail);
  if (out.length === 0 && !isOwner) return meeting;
  const given = [...out.map(({ email }) => email), ...(isOwner ? [ownerEmail] : [])];
  const mailboxes = given.flatMap((text) => mailboxIn(text) ?? []);
  const names = [...out.flatMap(({ name }) => name?.trim() ?? []), ...given.flatMap((text) => nameBeside(text) ?? [])];
  return {
    ...meeting,
    title: withoutMentions(title, mailboxes, names),
    ownerEmail: isOwner ? ERASED : ownerEmail,
    attendees: attendees.filter((attendee) => !out.includes(attendee)),
  };
}

/** The product's own meetings come in here, by their `externalId`, and are matched at once. */
export class Meetings {
  constructor(
    private readonly database: Database,
    private readonly keepOut: KeepOut,
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
      const kept = await this.keepOut.hold(scope);
      if (kept) for (const [id, meeting] of newest) newest.set(id, withoutKeptOut(kept, meeting));
      const meetings = [...newest.values()].map((meeting) => ({ ...meeting, ...stamp }));
      const rows = new Map((await upsertMeetings(scope, meetings)).map((row) => [row.externalId, row]));
      const found = inputs.flatMap(({ externalId }) => rows.get(externalId) ?? []);
      const recorded = [...rows.values()].map((row) => ({
        row,
        attendees: newest.get(row.externalId)?.attendees ?? [],
      }));
      await matchMeetings(scope, recorded, this.clock(), "RECORDED", this.logger);
      return found;
    });
  }

  /**
   * A user says which deal a meeting is about: one of the candidates that the user was shown. Any actor of the tenant
   * may, as any may record the meeting. Unknown deals, those of others and those that the tenant may not read answer alike.
   */
  choose(actor: Actor, { meetingId, deal }: DealChoice): Promise<Outcome<MeetingRow, ChoiceRefusal>> {
    return this.#withMeeting(actor, meetingId, async (scope, meeting) => {
      const [now, subject] = [this.clock(), meeting.row.id];
      const copyId = await liveCopyId(scope);
      if (copyId === null) return NOT_CONNECTED;
      if (deal?.copyId !== copyId || !(await isReadable({ ...scope, copyId }, deal.crmId))) return NO_DEAL;
      const before = await dealBefore(scope, subject, copyId, deal.crmId);
      if (!before) return NO_CANDIDATE;
      await storeChoice(scope, subject, copyId, { dealId: deal.crmId, by: actor.userId, at: now });
      await matchMeetings(scope, [meeting], now, "CHOSEN", this.logger);
      const [was, became] = [before.dealId?.toString(), deal.crmId.toString()];
      await recordAudit(scope, this.logger, { action: "DEAL_CHOSEN", actor, at: now, subject, was, became });
      return accepted(meeting.row);
    });
  }

  /** Takes a choice back: the rules decide again, also where something was written. Without one nothing changes. */
  unchoose(actor: Actor, meetingId: string | null): Promise<Outcome<MeetingRow, "MEETING_NOT_FOUND">> {
    return this.#withMeeting(actor, meetingId, async (scope, meeting) => {
      const [now, subject] = [this.clock(), meeting.row.id];
      const [chosen] = await scope.rows<{ dealId: number }>(CHOSEN, [scope.tenantId, subject], { dealId: "number" });
      if (!chosen) return accepted(meeting.row);
      await scope.rows(DROP_CHOICES, [scope.tenantId, [subject]]);
      await matchMeetings(scope, [meeting], now, "UNCHOSEN", this.logger);
      const event = { action: "DEAL_CHOSEN", actor, at: now, subject, code: "TAKEN_BACK" } as const;
      await recordAudit(scope, this.logger, { ...event, was: chosen.dealId.toString() });
      return accepted(meeting.row);
    });
  }

  /** It did not or will not take place: it grants nothing and is no contact, until it is recorded again. */
  cancel(actor: Actor, meetingId: string | null): Promise<Outcome<MeetingRow, "MEETING_NOT_FOUND">> {
    return this.#withMeeting(actor, meetingId, async (scope, meeting) => {
      if (meeting.row.cancelledAt !== null) return accepted(meeting.row);
      const now = this.clock();
      const row = { ...meeting.row, cancelledAt: now };
      await scope.typed((orm) => orm.update(MeetingRow, keyOf(row), { cancelledAt: now }));
      await matchMeetings(scope, [{ ...meeting, row }], now, "CANCELLED", this.logger);
      await recordAudit(scope, this.logger, { action: "MEETING_CANCELLED", actor, at: now, subject: row.id });
      return accepted(row);
    });
  }

  /** Erases a meeting with its attendees and its match. Where there is none, there is nothing to erase. */
  async delete(actor: Actor, meetingId: string | null): Promise<void> {
    await this.#withMeeting(actor, meetingId, async (scope, meeting) => {
      const now = this.clock();
      // As a cancelled one, first: what it granted and was a contact for is judged without it.
      const row = { ...meeting.row, cancelledAt: now };
      await matchMeetings(scope, [{ ...meeting, row }], now, "CANCELLED", this.logger);
      // With its attendees, its match and what it made readable; receipts stay.
      await scope.typed((orm) => orm.delete(MeetingRow, keyOf(row)));
      await recordAudit(scope, this.logger, { action: "MEETING_DELETED", actor, at: now, subject: row.id });
    });
  }

  #withMeeting<T>(
    actor: Actor,
    meetingId: string | null,
    work: (scope: TenantScope, meeting: LockedMeeting) => Promise<T>,
  ): Promise<T | typeof NO_MEETING> {
    return this.#inTurn(actor, async (scope) => {
      const meeting = meetingId === null ? null : await lockMeeting(scope, meetingId);
      return meeting ? work(scope, meeting) : NO_MEETING;
    });
  }

  /** Who erases a person locks meetings in another order. */
  #inTurn<T>({ tenantId }: Actor, work: (scope: TenantScope) => Promise<T>): Promise<T> {
    return behindOthers(() => this.database.tenant(tenantId).transaction(work));
  }
}
