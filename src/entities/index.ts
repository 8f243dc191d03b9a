import { AbsentRecordRow } from "./absent-record";
import { ActivityRow } from "./activity";
import { AuditEventRow } from "./audit-event";
import { AuthorizationRequestRow } from "./authorization-request";
import { ComingSilenceRow } from "./coming-silence";
import { ConnectionRow } from "./connection";
import { CredentialRow } from "./credential";
import { CrmBudgetRow } from "./crm-budget";
import { CrmUserRow } from "./crm-user";
import { DataGapRow } from "./data-gap";
import { DealRow } from "./deal";
import { DealParticipantRow } from "./deal-participant";
import { DealSilenceRow } from "./deal-silence";
import { FieldMappingRow } from "./field-mapping";
import { JudgedCopyRow } from "./judged-copy";
import { MatchedRecordRow } from "./matched-record";
import { MeetingRow } from "./meeting";
import { MeetingAttendeeRow } from "./meeting-attendee";
import { MeetingMatchRow } from "./meeting-match";
import { MissedRecordRow } from "./missed-record";
import { NoteRow } from "./note";
import { OrganizationRow } from "./organization";
import { PersonRow } from "./person";
import { PersonAddressRow } from "./person-address";
import { PipelineRow } from "./pipeline";
import { QuietSettingsRow } from "./quiet-settings";
import { RejectedRecordRow } from "./rejected-record";
import { RenewalAttemptRow } from "./renewal-attempt";
import { StageRow } from "./stage";
import { SyncListRow, SyncPassRow } from "./sync-list";
import { SyncRunRow } from "./sync-run";
import { SyncStepRow } from "./sync-step";
import { SyncedCopyRow } from "./synced-copy";
import { TenantRow } from "./tenant";
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
