import { Column, Entity, PrimaryColumn } from "typeorm";

/** A consent that was started: its state is stored only as a SHA-256 hash. */
@Entity("authorization_request")
export class AuthorizationRequestRow {
  @PrimaryColumn("text")
  tenantId!: string;

  @PrimaryColumn("bytea")
  stateHash!: Buffer;

  @Column("text")
  userId!: string;

  @Column("timestamptz")
  expiresAt!: Date;

  /** Set while it is being completed; one that is stored, or voided by a disconnect, is gone. */
  @Column("timestamptz", { nullable: true })
  usedAt!: Date | null;
}
