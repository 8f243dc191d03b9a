import { Column, Entity, ForeignKey, Index, PrimaryColumn } from "typeorm";
import { OfCopy, OfRecord, OfTenant, TenantRow } from "./tenant";

/** An e-mail address or phone number as the CRM holds it. */
interface ContactValue {
  value: string;
  label: string | null;
  primary: boolean;
}

@Entity("person")
@Index("person_by_organization", ["tenantId", "copyId", "organizationId"])
@Index("person_with_mail", ["tenantId", "copyId"], {
  where: "last_incoming_mail_time IS NOT NULL OR last_outgoing_mail_time IS NOT NULL",
})
export class PersonRow extends OfRecord {
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

/** Each address of each person in the one spelling in which addresses are compared. */
@Entity("person_address")
@Index("person_address_by_person", ["tenantId", "copyId", "personId"])
@Index("person_address_by_mailbox", ["tenantId", "copyId", "mailbox"])
@Index("person_address_by_domain", ["tenantId", "copyId", "domain"])
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
@Index("organization_by_website_domain", ["tenantId", "copyId", "websiteDomain"])
export class OrganizationRow extends OfRecord {
  @Column("text")
  name!: string;

  @Column("bigint", { nullable: true })
  ownerId!: number | null;

  @Column("text", { nullable: true })
  address!: string | null;

  @Column("text", { nullable: true })
  website!: string | null;

  /** The company's domain in `website`. */
  @Column("text", { nullable: true })
  websiteDomain!: string | null;

  @Column("timestamptz", { nullable: true })
  addTime!: Date | null;

  @Column("timestamptz", { nullable: true })
  updateTime!: Date | null;

  @Column("jsonb")
  customFields!: Record<string, unknown>;
}

/** The tenant's own key, by which addresses that are kept out are known, sealed under the keys of the service. */
@Entity("kept_out_key")
@ForeignKey(() => TenantRow, ["tenantId"], ["id"], { name: "kept_out_key_tenant_fkey" })
export class KeptOutKeyRow extends OfTenant {
  @Column("bytea")
  sealedKey!: Buffer;
}

/** An address of a person who was erased, and is not to come back: its hash under the tenant's key. */
@Entity("kept_out_address")
@ForeignKey(() => TenantRow, ["tenantId"], ["id"], { name: "kept_out_address_tenant_fkey" })
@Index("kept_out_address_by_first", ["tenantId", "firstHash"])
export class KeptOutAddressRow extends OfTenant {
  @PrimaryColumn("text")
  hash!: string;

  /** The same for all addresses of one person, who is let in with all of them. */
  @Column("text")
  firstHash!: string;

  @Column("timestamptz")
  since!: Date;
}

/** A person of the CRM who has such an address, and so has no row of his own: what hangs on him is known by this. */
@Entity("kept_out_person")
export class KeptOutPersonRow extends OfRecord {
  @PrimaryColumn("text")
  hash!: string;
}
