import { Check, Entity, ForeignKey, Index, PrimaryColumn } from "typeorm";
import { MeetingRow } from "./meeting";
import { SyncedCopyRow } from "./synced-copy";

export type MatchedEntity = "DEAL" | "PERSON" | "ORGANIZATION";

/** The proof that a record may be read: it is matched to an attendee of a recorded meeting. */
@Entity("matched_record")
@ForeignKey(() => SyncedCopyRow, ["tenantId", "copyId"], ["tenantId", "id"], { name: "matched_record_copy_fkey" })
@ForeignKey(() => MeetingRow, ["tenantId", "meetingId"], ["tenantId", "id"], {
  name: "matched_record_meeting_fkey",
  onDelete: "CASCADE",
})
@Index("matched_record_by_meeting", ["tenantId", "meetingId"])
@Check("matched_record_entity", "entity IN ('DEAL', 'PERSON', 'ORGANIZATION')")
export class MatchedRecordRow {
  @PrimaryColumn("bigint")
  tenantId!: number;

  @PrimaryColumn("bigint")
  copyId!: number;

  @PrimaryColumn("text")
  entity!: MatchedEntity;

  @PrimaryColumn("bigint")
  crmId!: number;

  @PrimaryColumn("uuid")
  meetingId!: string;
}
