import { Entity, Index, PrimaryColumn } from "typeorm";

@Entity("deal_participant")
@Index("deal_participant_by_person", ["copyId", "personId"])
export class DealParticipantRow {
  @PrimaryColumn("bigint")
  copyId!: number;

  @PrimaryColumn("bigint")
  dealId!: number;

  @PrimaryColumn("bigint")
  personId!: number;
}
