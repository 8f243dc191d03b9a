import { ActivityRow } from "./activity";
import { AuditEventRow } from "./audit-event";
import { AuthorizationRequestRow, ConnectionRow, CredentialRow, RenewalAttemptRow, SyncedCopyRow } from "./connection";
import { CrmBudgetRow } from "./crm-budget";
import { CrmUserRow, PipelineRow, StageRow } from "./crm-setup";
import { DealParticipantRow, DealRow } from "./deal";
import { FieldMappingRow } from "./field-mapping";
import { MatchedRecordRow, MeetingAttendeeRow, MeetingMatchRow, MeetingRow } from "./meeting";
import { NoteRow } from "./note";
import { OrganizationRow } from "./organization";
import { PersonAddressRow, PersonRow } from "./person";
import { ComingSilenceRow, DealSilenceRow, JudgedCopyRow } from "./silence";
import { AbsentRecordRow, DataGapRow, MissedRecordRow, RejectedRecordRow, SyncListRow, SyncPassRow } from "./sync-list";
import { SyncRunRow, SyncStepRow } from "./sync-run";
import { QuietSettingsRow, TenantRow } from "./tenant";
import { FieldWriteRow, NoteWriteRow } from "./write-receipt";

export const entities = [
  AbsentRecordRow,
  ActivityRow,
  AuditEventRow,
  AuthorizationRequestRow,
  ComingSilenceRow,
  ConnectionRow,
  CredentialRow,
  CrmBudgetRow,
  CrmUserRow,
  DataGapRow,
  DealParticipantRow,
  DealSilenceRow,
  DealRow,
  FieldWriteRow,
  FieldMappingRow,
  JudgedCopyRow,
  MatchedRecordRow,
  MeetingAttendeeRow,
  MeetingMatchRow,
  MeetingRow,
  MissedRecordRow,
  NoteRow,
  NoteWriteRow,
  OrganizationRow,
  PersonAddressRow,
  PersonRow,
  PipelineRow,
  QuietSettingsRow,
  RejectedRecordRow,
  RenewalAttemptRow,
  StageRow,
  SyncListRow,
  SyncPassRow,
  SyncRunRow,
  SyncStepRow,
  SyncedCopyRow,
  TenantRow,
];
