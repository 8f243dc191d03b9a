import { Column, Entity, Index, PrimaryColumn } from "typeorm";

/** An e-mail address or phone number as the CRM holds it. */
export interface ContactValue {
  value: string;
  label: string | null;
  primary: boolean;
}

@Entity("person")
@Index("person_by_organization", ["tenantId", "copyId", "organizationId"])
@Index("person_with_mail", ["tenantId", "copyId"], {
  where: "last_incoming_mail_time IS NOT NULL OR last_outgoing_mail_time IS NOT NULL",
})
export class PersonRow {
  @PrimaryColumn("bigint")
  tenantId!: number;

  @PrimaryColumn("bigint")
  copyId!: number;

  @PrimaryColumn("bigint")
  crmId!: number;

  @Column("text")
  name!: string;

  @Column("bigint", { nullable: true })
  ownerId!: number | null;

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

  @Column("timestamptz", { nullable: true })
  addTime!: Date | null;

  @Column("timestamptz", { nullable: true })
  updateTime!: Date | null;

  @Column("jsonb")
  customFields!: Record<string, unknown>;
}
