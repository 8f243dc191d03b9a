import { Column, Entity, Index, PrimaryColumn } from "typeorm";
import { OfCopy, OfRecord } from "./tenant";

/** What somebody of the company owns, with fields of the company's own. */
export abstract class OwnedRecord extends OfRecord {
  @Column("bigint", { nullable: true })
  ownerId!: number | null;

  @Column("timestamptz", { nullable: true })
  addTime!: Date | null;

  @Column("timestamptz", { nullable: true })
  updateTime!: Date | null;

  /** May be larger than all the rest of the row. */
  @Column("jsonb", { select: false })
  customFields!: Record<string, unknown>;
}

/** What hangs on records of others. */
abstract class AttachedRecord extends OfRecord {
  @Column("bigint", { nullable: true })
  dealId!: number | null;

  @Column("bigint", { nullable: true })
  personId!: number | null;

  @Column("bigint", { nullable: true })
  organizationId!: number | null;

  @Column("timestamptz", { nullable: true })
  updateTime!: Date | null;
}

@Entity("activity")
@Index("activity_by_deal", ["tenantId", "copyId", "dealId", "happenedAt", "crmId"], { where: "deal_id IS NOT NULL" })
@Index("activity_by_person", ["tenantId", "copyId", "personId", "happenedAt", "crmId"], {
  where: "person_id IS NOT NULL",
})
@Index("activity_by_organization", ["tenantId", "copyId", "organizationId", "happenedAt", "crmId"], {
  where: "organization_id IS NOT NULL",
})
export class ActivityRow extends AttachedRecord {
  @Column("text")
  subject!: string;

  @Column("text")
  type!: string;

  @Column("bigint", { nullable: true })
  ownerId!: number | null;

  @Column("bigint", { array: true, select: false })
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
  @Column("timestamptz", { nullable: true, select: false })
  happenedAt!: Date | null;

  @Column("timestamptz", { nullable: true })
  addTime!: Date | null;
}

@Entity("note")
@Index("note_by_deal", ["tenantId", "copyId", "dealId", "addTime", "crmId"], { where: "deal_id IS NOT NULL" })
@Index("note_by_person", ["tenantId", "copyId", "personId", "addTime", "crmId"], { where: "person_id IS NOT NULL" })
@Index("note_by_organization", ["tenantId", "copyId", "organizationId", "addTime", "crmId"], {
  where: "organization_id IS NOT NULL",
})
export class NoteRow extends AttachedRecord {
  /** HTML as the CRM holds it, or its beginning: never shown unsanitized. */
  @Column("text", { select: false })
  content!: string;

  /** The CRM's note is longer. */
  @Column("boolean", { default: false, select: false })
  truncated!: boolean;

  /** What it is shown as, by the rules of that number; null until somebody reads it. */
  @Column("text", { nullable: true, select: false })
  shownHtml!: string | null;

  @Column("text", { nullable: true, select: false })
  shownText!: string | null;

  @Column("boolean", { nullable: true, select: false })
  shownCut!: boolean | null;

  @Column("integer", { nullable: true, select: false })
  shownRules!: number | null;

  @Column("bigint", { nullable: true })
  authorId!: number | null;

  @Column("timestamptz")
  addTime!: Date;
}

/** Set beside each new content of a note: what was kept of the old content is none of the new. */
const NOTHING_SHOWN = { shownHtml: null, shownText: null, shownCut: null, shownRules: null };

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

/** A note without its content, which is large: `briefing/notes.ts` reads what is shown of it. */
export type NoteHead = Omit<NoteRow, "content" | "truncated" | keyof typeof NOTHING_SHOWN>;

/** An e-mail address or phone number as the CRM holds it. */
interface ContactValue {
  value: string;
  label: string | null;
  primary: boolean;
}

@Entity("person")
@Index("person_by_organization", ["tenantId", "copyId", "organizationId"], { where: "organization_id IS NOT NULL" })
@Index("person_with_mail", ["tenantId", "copyId"], {
  where: "last_incoming_mail_time IS NOT NULL OR last_outgoing_mail_time IS NOT NULL",
})
export class PersonRow extends OwnedRecord {
  @Column("text")
  name!: string;

  @Column("bigint", { nullable: true })
  organizationId!: number | null;

  @Column("jsonb")
  emails!: ContactValue[];

  @Column("jsonb")
  phones!: ContactValue[];

  @Column("timestamptz", { nullable: true })
  lastIncomingMailTime!: Date | null;

  @Column("timestamptz", { nullable: true })
  lastOutgoingMailTime!: Date | null;
}

/** Each address of each person in the one spelling in which addresses are compared. */
@Entity("person_address")
@Index("person_address_by_person", ["tenantId", "copyId", "personId"])
@Index("person_address_by_mailbox", ["tenantId", "copyId", "mailbox"])
@Index("person_address_by_domain", ["tenantId", "copyId", "domain"], { where: "domain IS NOT NULL" })
export class PersonAddressRow extends OfCopy {
  @PrimaryColumn("text")
  address!: string;

  @PrimaryColumn("bigint")
  personId!: number;

  /** The address without what a mail program adds to it (`mailboxOf`). */
  @Column("text")
  mailbox!: string;

  /** The registrable domain, also where it is a mail provider's. */
  @Column("text", { nullable: true })
  domain!: string | null;
}

@Entity("organization")
@Index("organization_by_website_domain", ["tenantId", "copyId", "websiteDomain"], {
  where: "website_domain IS NOT NULL",
})
export class OrganizationRow extends OwnedRecord {
  @Column("text")
  name!: string;

  @Column("text", { nullable: true })
  address!: string | null;

  @Column("text", { nullable: true })
  website!: string | null;

  /** The company's domain in `website`. */
  @Column("text", { nullable: true, select: false })
  websiteDomain!: string | null;
}
