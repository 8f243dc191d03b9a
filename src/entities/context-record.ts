import { Column, Entity, Index } from "typeorm";
import { OfRecord } from "./tenant";

@Entity("activity")
@Index("activity_by_deal", ["tenantId", "copyId", "dealId", "happenedAt"])
@Index("activity_by_person", ["tenantId", "copyId", "personId", "happenedAt"])
@Index("activity_by_organization", ["tenantId", "copyId", "organizationId", "happenedAt"])
export class ActivityRow extends OfRecord {
  @Column("text")
  subject!: string;

  @Column("text")
  type!: string;

  @Column("bigint", { nullable: true })
  ownerId!: number | null;

  @Column("bigint", { nullable: true })
  dealId!: number | null;

  @Column("bigint", { nullable: true })
  personId!: number | null;

  @Column("bigint", { nullable: true })
  organizationId!: number | null;

  @Column("bigint", { array: true })
  participantIds!: number[];

  /** With a time of day where the CRM has one, else the start of the day in UTC. */
  @Column("timestamptz", { nullable: true })
  dueAt!: Date | null;

  @Column("boolean")
  dueHasTime!: boolean;

  @Column("boolean")
  done!: boolean;

  @Column("timestamptz", { nullable: true })
  doneAt!: Date | null;

  /** When a done activity took place: due, else done, else added; null while it is not done. */
  @Column("timestamptz", { nullable: true })
  happenedAt!: Date | null;

  @Column("timestamptz", { nullable: true })
  addTime!: Date | null;

  @Column("timestamptz", { nullable: true })
  updateTime!: Date | null;
}

@Entity("note")
@Index("note_by_deal", ["tenantId", "copyId", "dealId", "addTime"])
@Index("note_by_person", ["tenantId", "copyId", "personId", "addTime"])
@Index("note_by_organization", ["tenantId", "copyId", "organizationId", "addTime"])
export class NoteRow extends OfRecord {
  /** HTML as the CRM holds it, or its beginning: never shown unsanitized. */
  @Column("text")
  content!: string;

  /** The CRM's note is longer. */
  @Column("boolean", { default: false })
  truncated!: boolean;

  /** What it is shown as, by the rules of that number; null until somebody reads it. */
  @Column("text", { nullable: true })
  shownHtml!: string | null;

  @Column("text", { nullable: true })
  shownText!: string | null;

  @Column("boolean", { nullable: true })
  shownCut!: boolean | null;

  @Column("integer", { nullable: true })
  shownRules!: number | null;

  @Column("bigint", { nullable: true })
  authorId!: number | null;

  @Column("bigint", { nullable: true })
  dealId!: number | null;

  @Column("bigint", { nullable: true })
  personId!: number | null;

  @Column("bigint", { nullable: true })
  organizationId!: number | null;

  @Column("timestamptz")
  addTime!: Date;

  @Column("timestamptz", { nullable: true })
  updateTime!: Date | null;
}

/** Set beside each new content of a note: what was kept of the old content is none of the new. */
export const NOTHING_SHOWN = { shownHtml: null, shownText: null, shownCut: null, shownRules: null };

/** What the parser of the CRM's answers makes of a note; instants are text. */
type ReadNote = Pick<NoteRow, "content" | "truncated" | "dealId" | "personId" | "organizationId"> & {
  id: number;
  userId: number | null;
  addTime: string;
  updateTime: string | null;
};

/** A note as the copy holds it, whoever brings it: a sync, or the answer to a write. */
export const noteRow = (note: ReadNote) => ({
  crmId: note.id,
  authorId: note.userId,
  content: note.content,
  truncated: note.truncated,
  dealId: note.dealId,
  personId: note.personId,
  organizationId: note.organizationId,
  addTime: note.addTime,
  updateTime: note.updateTime,
  ...NOTHING_SHOWN,
});

/** For `upsertPage`: a note that is what it was keeps what it is shown as. */
export const NOTE_UPSERT = { silent: Object.keys(NOTHING_SHOWN) };

/** A note without its content. */
export type NoteHead = Omit<NoteRow, "content" | "truncated" | keyof typeof NOTHING_SHOWN>;
