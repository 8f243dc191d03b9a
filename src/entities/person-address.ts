import { Column, Entity, Index, PrimaryColumn } from "typeorm";

/** Each address of each person in the one spelling in which addresses are compared. */
@Entity("person_address")
@Index("person_address_by_person", ["tenantId", "copyId", "personId"])
@Index("person_address_by_mailbox", ["tenantId", "copyId", "mailbox"])
@Index("person_address_by_domain", ["tenantId", "copyId", "domain"])
export class PersonAddressRow {
  @PrimaryColumn("bigint")
  tenantId!: number;

  @PrimaryColumn("bigint")
  copyId!: number;

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
