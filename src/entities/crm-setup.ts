import { Column, Entity, Index } from "typeorm";
import { OfRecord } from "./tenant";

@Entity("pipeline")
export class PipelineRow extends OfRecord {
  @Column("text")
  name!: string;

  @Column("integer")
  position!: number;
}

@Entity("stage")
export class StageRow extends OfRecord {
  @Column("text")
  name!: string;

  @Column("integer")
  position!: number;

  @Column("bigint", { nullable: true })
  pipelineId!: number | null;

  @Column("integer", { nullable: true })
  daysToRotten!: number | null;
}

@Entity("crm_user")
@Index("crm_user_by_address", ["tenantId", "copyId", "address"])
export class CrmUserRow extends OfRecord {
  @Column("text")
  name!: string;

  @Column("text")
  email!: string;

  /** `email` in the one spelling in which addresses are compared. */
  @Column("text", { nullable: true })
  address!: string | null;

  @Column("boolean")
  active!: boolean;
}
