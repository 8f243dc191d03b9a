import { Entity, Index, PrimaryColumn } from "typeorm";

@Entity("deal_participant")
@Index("deal_participant_by_person", ["tenantId", "copyId", "personId"])
export class DealParticipantRow {
  @PrimaryColumn("bigint")
  tenantId!: number;

  @PrimaryColumn("bigint")
  copyId!: number;

  @PrimaryColumn("bigint")
  dealId!: number;

  @PrimaryColumn("bigint")
  personId!: number;
}
