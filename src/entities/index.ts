import type { Database } from "../database/database";
import type { KeyedTable } from "../database/keyset";
import { AuthorizationRequestRow, ConnectionRow, CredentialRow, RenewalAttemptRow, SyncedCopyRow } from "./connection";
import { CrmBudgetRow, CrmFieldRow, CrmUserRow, FieldListRow, PipelineRow, StageRow } from "./crm-company";
import { DealChangeRow, DealParticipantRow, DealRow, KeptSnoozeRow } from "./deal";
import { MatchedRecordRow, MeetingAttendeeRow, MeetingMatchRow, MeetingRow } from "./meeting";
import { ActivityRow, NoteRow, OrganizationRow, PersonAddressRow, PersonRow } from "./records";
import { DealSilenceRow, JudgedCopyRow } from "./silence";
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
  KeptSnoozeRow,
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

/** The columns of a tenant's table that may hold what people write. */
export interface Texts extends KeyedTable {
  columns: { name: string; isJson: boolean }[];
}

/** Names of their own that others may share; by what a person's rows are found, which go whole; and keys that callers chose. */
export const NOT_LOOKED_THROUGH: ReadonlySet<string> = new Set([
  "person.name",
  "connection.bound_user_name",
  "connection.bound_email",
  "crm_user.name",
  "crm_user.email",
  "crm_user.mailbox",
  "meeting_attendee.name",
  "meeting_attendee.email",
  "person_address.mailbox",
  "meeting.external_id",
  "note_write.idempotency_key",
  "field_write.idempotency_key",
]);

/** A CHECK by which a column holds our own words and nothing else. */
const OWN_WORDS = /^(\w+) IN \((?:'\w+',? ?)+\)$/;

/** Every such column of every table of tenants: one of a later version is among them by being there. */
export function textsOf({ tables }: Pick<Database, "tables">): Texts[] {
  return tables.filter(isOfTenants).flatMap(({ tableName: table, columns, primaryColumns, checks }) => {
    const ownWords = new Set(checks.map(({ expression }) => OWN_WORDS.exec(expression)?.[1]));
    const texts = columns
      .filter(({ type, isArray, isPrimary }) => (type === "text" || type === "jsonb") && !isArray && !isPrimary)
      .map(({ databaseName: name, type }) => ({ name, isJson: type === "jsonb" }))
      .filter(({ name }) => !NOT_LOOKED_THROUGH.has(`${table}.${name}`) && !ownWords.has(name));
    return texts.length > 0 ? [{ table, keys: primaryColumns.map((key) => key.databaseName), columns: texts }] : [];
  });
}

export const isOfTenants = ({ columns }: Database["tables"][number]): boolean =>
  columns.some(({ propertyName }) => propertyName === "tenantId");
