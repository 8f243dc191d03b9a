import { AuthorizationRequestRow, ConnectionRow, CredentialRow, RenewalAttemptRow, SyncedCopyRow } from "./connection";
import { CrmBudgetRow, CrmFieldRow, CrmUserRow, FieldListRow, PipelineRow, StageRow } from "./crm-company";
import { DealChangeRow, DealParticipantRow, DealRow } from "./deal";
import { MatchedRecordRow, MeetingAttendeeRow, MeetingMatchRow, MeetingRow } from "./meeting";
import { ActivityRow, NoteRow, OrganizationRow, PersonAddressRow, PersonRow } from "./records";
import { ComingSilenceRow, DealSilenceRow, JudgedCopyRow } from "./silence";
import { AbsentRecordRow, DataGapRow, MissedRecordRow, RejectedRecordRow, SyncListRow, SyncPassRow } from "./sync-list";
import { SyncRunRow, SyncStepRow } from "./sync-run";
import {
  AuditEventRow,
  KeptOutAddressRow,
  KeptOutKeyRow,
  KeptOutPersonRow,
  QuietSettingsRow,
  TenantRow,
} from "./tenant";
import { FieldMappingRow, FieldWriteRow, NoteWriteRow } from "./writeback";

export const entities = [
  AbsentRecordRow,
  ActivityRow,
  AuditEventRow,
  AuthorizationRequestRow,
  ComingSilenceRow,
  ConnectionRow,
  CredentialRow,
  CrmBudgetRow,
  CrmFieldRow,
  CrmUserRow,
  DataGapRow,
  DealChangeRow,
  DealParticipantRow,
  DealSilenceRow,
  DealRow,
  FieldListRow,
  FieldWriteRow,
  FieldMappingRow,
  JudgedCopyRow,
  KeptOutAddressRow,
  KeptOutKeyRow,
  KeptOutPersonRow,
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
