import { Column, PrimaryColumn } from "typeorm";
import type { MatchedEntity } from "./matched-record";
import type { StoredWriteErrorCode, StoredWriteState } from "./write-outcome";

/** What the receipts of all writes hold. They stay when the connection and its copy are gone: they are the customer's proof. */
export abstract class WriteReceipt {
  @PrimaryColumn("bigint")
  tenantId!: number;

  @PrimaryColumn("uuid")
  id!: string;

  @Column("text")
  idempotencyKey!: string;

  /** Of what the client sent, whole: the same key with another input is another intent, and refused. */
  @Column("text")
  inputHash!: string;

  /** It may have been deleted. */
  @Column("uuid")
  meetingId!: string;

  /** The copy that the match was made on; it may be gone. */
  @Column("bigint")
  copyId!: number;

  @Column("bigint")
  crmCompanyId!: number;

  @Column("text")
  entity!: MatchedEntity;

  @Column("bigint")
  targetId!: number;

  /** The deal whose update time the write moves; null where it is on a person or organization. */
  @Column("bigint", { nullable: true })
  dealId!: number | null;

  /** That deal's update time as the copy knew it when the write was asked for, whoever made it. */
  @Column("timestamptz", { nullable: true })
  dealUpdatedBefore!: Date | null;

  @Column("text")
  state!: StoredWriteState;

  @Column("text", { nullable: true })
  errorCode!: StoredWriteErrorCode | null;

  @Column("text", { nullable: true })
  errorMessage!: string | null;

  @Column("text")
  requestedBy!: string;

  @Column("timestamptz")
  requestedAt!: Date;

  /** When the sending ended, with or without an answer; null while it goes on, and after a crash. */
  @Column("timestamptz", { nullable: true })
  sentAt!: Date | null;

  @Column("timestamptz", { nullable: true })
  settledAt!: Date | null;
}
