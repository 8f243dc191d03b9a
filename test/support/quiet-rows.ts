import { randomUUID } from "node:crypto";
import type { ConnectionFacts, DealFacts } from "../../src/briefing/quiet/facts";
import { DAY_MS, MINUTE_MS } from "../../src/platform/clock";
import type { TestDatabase } from "./database";

/** What this service has written about a deal: instants of notes and of field values. */
export interface OurWrites {
  notes: readonly { at: number; answered: boolean }[];
  fields: readonly number[];
}

type Row = Record<string, unknown>;
const at = (instant: number | null) => (instant === null ? null : new Date(instant).toISOString());

/** Rows by table, as the sync, the meetings and the writes would have left them. */
export class QuietRows {
  readonly #tables = new Map<string, Row[]>();
  readonly #meetingId = randomUUID();
  readonly #key: { tenant_id: number; copy_id: number };
  #lastId = 0;

  constructor(tenant: number, copyId: number, copy: ConnectionFacts) {
    this.#key = { tenant_id: tenant, copy_id: copyId };
    this.#add("synced_copy", {
      tenant_id: tenant,
      id: copyId,
      time_zone: copy.rules.calendar.zone,
      crm_company_id: 77,
      crm_user_id: 1,
      state: "LIVE",
      created_at: at(copy.watchedSince),
    });
    this.#meeting(this.#meetingId, 0, 0);
    if (copy.readAt === null) return;
    for (const resource of ["DEALS", "PERSONS", "ACTIVITIES", "NOTES"])
      this.#add("sync_list", { ...this.#key, resource, watermark: at(copy.readAt), quiet_reads: 0 });
  }

  deal(facts: DealFacts, ours: OurWrites): void {
    const { dealId } = facts;
    const persons = facts.contacts.flatMap(({ kind, at: when }) => {
      if (kind === "INCOMING_MAIL") return [this.#person({ last_incoming_mail_time: at(when) })];
      if (kind === "OUTGOING_MAIL") return [this.#person({ last_outgoing_mail_time: at(when) })];
      return [];
    });
    // The last takes part in activities, and has no mail.
    const [personId = null, ...others] = [...persons, this.#person({})];
    for (const id of others) this.#add("deal_participant", { ...this.#key, deal_id: dealId, person_id: id });
    const stageId = ++this.#lastId;
    this.#add("stage", { ...this.#record(stageId), name: "", position: 1, days_to_rotten: facts.daysToRotten });
    if (facts.inactiveOwnerId !== null)
      this.#add("crm_user", { ...this.#record(dealId), name: "", email: "", active: false });
    this.#add("deal", { ...this.#dealRow(facts, ours), person_id: personId, stage_id: stageId });
    this.#activities(facts, personId);
    this.#changes(facts);
    this.#meetings(facts);
    this.#add("matched_record", { ...this.#key, entity: "DEAL", crm_id: dealId, meeting_id: this.#meetingId });
    for (const { kind, at: when } of facts.contacts) if (kind === "NOTE") this.#note(dealId, when, "by a person");
    for (const note of ours.notes) this.#ourNote(facts, ours, note);
    for (const when of ours.fields) this.#receipt("field_write", facts, ours, when, { position: 0, field_key: "x" });
  }

  async insert(database: TestDatabase): Promise<void> {
    const order = ["synced_copy", "meeting"];
    const tables = [...order, ...[...this.#tables.keys()].filter((table) => !order.includes(table))];
    for (const table of tables) {
      const rows = this.#tables.get(table) ?? [];
      if (rows.length === 0) continue;
      const columns = Object.keys(Object.assign({}, ...rows));
      await database.query(
        `INSERT INTO ${table} (${columns}) SELECT ${columns} FROM jsonb_populate_recordset(NULL::${table}, $1::jsonb)`,
        [JSON.stringify(rows)],
      );
    }
  }

  #record(crmId: number) {
    return { ...this.#key, crm_id: crmId };
  }

  #add(table: string, row: Row): void {
    this.#tables.set(table, [...(this.#tables.get(table) ?? []), row]);
  }

  #person(times: Row): number {
    const id = ++this.#lastId;
    const none = { last_incoming_mail_time: null, last_outgoing_mail_time: null };
    this.#add("person", {
      ...this.#record(id),
      name: "",
      emails: [],
      phones: [],
      custom_fields: {},
      ...none,
      ...times,
    });
    return id;
  }

  /** Our last write has moved the update time, as it does in the CRM. */
  #dealRow(facts: DealFacts, ours: OurWrites): Row {
    const updated = facts.updatedAt === null ? null : lastUpdate(facts.updatedAt, ours, Number.POSITIVE_INFINITY);
    return {
      ...this.#record(facts.dealId),
      ...{ title: "", custom_fields: {}, participants_due: false, participants_known: !facts.isIncomplete },
      ...{ status: facts.isOpen ? "open" : "won", add_time: at(facts.addedAt), update_time: at(updated) },
      stage_change_time: at(facts.inStageSince),
      owner_id: facts.inactiveOwnerId === null ? null : facts.dealId,
      expected_close_date: facts.closeDay === null ? null : at(facts.closeDay)?.slice(0, 10),
    };
  }

  #activities({ dealId, contacts, planned }: DealFacts, personId: number | null): void {
    const base = { deal_id: dealId, subject: "", type: "call", participant_ids: [] };
    const named = (index: number) => (index % 2 === 0 ? { person_id: personId } : { participant_ids: [personId] });
    const add = (row: Row) => this.#add("activity", { ...this.#record(++this.#lastId), ...base, ...row });
    contacts
      .filter(({ kind }) => kind === "ACTIVITY")
      .forEach(({ at: when, day = null, activityType, withPerson }, index) => {
        // Ticked off late; ticked off before it was due; without any of these.
        const shape = [
          { happened_at: at(when), done_at: at(when + DAY_MS) },
          { happened_at: at(when + 9 * DAY_MS), done_at: at(when) },
          { happened_at: at(when), done_at: null },
        ][index % 3];
        const who = withPerson ? named(index) : { person_id: 0 };
        const timed = { due_has_time: true, ...shape };
        const ofDay = { due_has_time: false, due_at: at(day), happened_at: at(day), done_at: at(when) };
        add({ done: true, type: activityType, ...who, ...(day === null ? timed : ofDay) });
      });
    for (const { dueAt, wholeDay } of planned) add({ done: false, due_at: at(dueAt), due_has_time: !wholeDay });
  }

  /** The day moved later, and as often earlier, set and taken away, beside what else changes. */
  #changes({ dealId, pushes }: DealFacts): void {
    const days = (was: string | null, became: string | null) => ({ kind: "CLOSE_DATE", was, became });
    for (const seen of pushes) {
      const entries = [
        days("2026-09-30", "2026-10-01"),
        ...[days("2026-10-02", "2026-10-01"), days(null, "2026-10-01"), days("2026-10-01", null)],
        { kind: "STAGE", was: "9", became: "10" },
      ];
      for (const entry of entries)
        this.#add("deal_change", { ...this.#key, id: ++this.#lastId, deal_id: dealId, seen_at: at(seen), ...entry });
    }
  }

  #meetings({ dealId, meetings }: DealFacts): void {
    const { tenant_id, copy_id } = this.#key;
    for (const { startsAt, endsAt, withBuyer } of meetings) {
      const meeting_id = randomUUID();
      this.#meeting(meeting_id, startsAt, endsAt);
      const match = { status: "MATCHED", reason: "", fingerprint: "", candidates: [], matched_at: at(0) };
      this.#add("meeting_match", {
        tenant_id,
        meeting_id,
        copy_id,
        deal_id: dealId,
        starts_at: at(startsAt),
        ...match,
      });
      const side = withBuyer ? "BUYER" : "SELLER";
      const attendee = {
        position: 0,
        email: "",
        organization_status: "NONE",
        match_status: "NONE",
        match_reason: "",
        candidate_ids: [],
      };
      this.#add("meeting_attendee", { tenant_id, meeting_id, side, ...attendee });
    }
  }

  #meeting(id: string, startsAt: number, endsAt: number): void {
    const { tenant_id } = this.#key;
    const times = { starts_at: at(startsAt), ends_at: startsAt === endsAt ? null : at(endsAt), recorded_at: at(0) };
    const texts = { title: "", owner_email: "", owner_key: "", search_text: "", recorded_by: "" };
    this.#add("meeting", { tenant_id, id, external_id: id, ...texts, ...times });
  }

  #note(dealId: number, when: number, content: string): number {
    const id = ++this.#lastId;
    this.#add("note", { ...this.#record(id), deal_id: dealId, content, add_time: at(when) });
    return id;
  }

  #ourNote(facts: DealFacts, ours: OurWrites, { at: when, answered }: OurWrites["notes"][number]): void {
    const reference = randomUUID();
    const crmNoteId = this.#note(facts.dealId, when, `<p>Ref. ${reference}</p>`);
    const answer = answered ? { crm_note_id: crmNoteId } : { state: "UNKNOWN", settled_at: null };
    this.#receipt("note_write", facts, ours, when, { reference, ...answer });
  }

  /** A sync has brought what our earlier writes made of the update time, for every other receipt. */
  #receipt(table: string, { dealId, updatedAt }: DealFacts, ours: OurWrites, when: number, more: Row): void {
    const { tenant_id, copy_id } = this.#key;
    const id = randomUUID();
    const isSynced = updatedAt !== null && when % 7 < 4;
    const before = isSynced ? lastUpdate(updatedAt, ours, when) : updatedAt;
    const times = { requested_at: at(when - 1_000), sent_at: at(when + 1_000), settled_at: at(when + 1_000) };
    this.#add(table, {
      ...{ tenant_id, copy_id, id, idempotency_key: id, input_hash: "", meeting_id: this.#meetingId },
      ...{ crm_company_id: 77, entity: "DEAL", target_id: dealId, deal_id: dealId, state: "WRITTEN", requested_by: "" },
      ...{ deal_updated_before: at(before), look_ups: 0, ...times, ...more },
    });
  }
}

/** A deal's update time, as people's last change and our writes before `until` have made it. */
function lastUpdate(updatedAt: number, { fields, notes }: OurWrites, until: number): number {
  return Math.max(updatedAt, ...[...fields, ...notes.map((note) => note.at)].filter((when) => when < until));
}

/** Our writes lie well after what people did, so that the receipts can tell them apart (decision 0078). */
export const WRITES_APART_MS = 5 * MINUTE_MS;
