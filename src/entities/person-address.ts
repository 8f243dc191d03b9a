import { Entity, Index, PrimaryColumn } from "typeorm";

/** Each address of each person in the one spelling in which addresses are compared. */
@Entity("person_address")
@Index("person_address_by_person", ["copyId", "personId"])
export class PersonAddressRow {
  @PrimaryColumn("bigint")
  copyId!: number;

  @PrimaryColumn("text")
  address!: string;

  @PrimaryColumn("bigint")
  personId!: number;
}
