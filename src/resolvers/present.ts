import type { Viewer } from "../auth/actor";
import { type CrmStop, messageOfStop } from "../connections/crm-stops";
import type { ActivityRow } from "../entities/activity";
import type { ConnectionRow } from "../entities/connection";
import type { CrmUserRow } from "../entities/crm-user";
import type { DealRow } from "../entities/deal";
import type { MeetingAttendeeRow, MeetingMatchRow, MeetingRow } from "../entities/meeting";
import type { NoteHead } from "../entities/note";
import type { OrganizationRow } from "../entities/organization";
import type { PersonRow } from "../entities/person";
import type { PipelineRow, StageRow } from "../entities/pipeline";
import type { GapSummary, SyncRunRow, SyncStepRow } from "../entities/sync-run";
import type { Refused } from "../platform/errors";
import {
  Connection,
  type ConnectionState,
  Crm,
  type ReauthorizationReason,
  Trouble,
  TroubleCode,
} from "../schema/connection";
import { Activity, Note } from "../schema/context-records";
import { CrmUser, Pipeline, Stage } from "../schema/crm-setup";
import { Attendee, Meeting, MeetingMatch, PersonMatch } from "../schema/meeting";
import { Snooze } from "../schema/quiet";
import { Deal, DealStatus, Organization, Person } from "../schema/records";
import { Refusal, type RefusalCode } from "../schema/refusal";
import { DataGap, SyncRun, SyncStep } from "../schema/sync";
import { encodeId, type NodeType } from "./global-id";

/** Explicit lists of fields: a column that is added later is not shown by being there. */
export const make = <T extends object>(type: new () => T, fields: T): T => Object.assign(new type(), fields);

interface CopyKey {
  copyId: number;
  crmId: number;
}
/** To be spread last: on Node 20 a literal that begins with a spread takes a hundred times as long to make. */
const recordId = (type: NodeType, { copyId, crmId }: CopyKey) => ({
  id: encodeId(type, copyId, crmId),
  crmId: String(crmId),
});

export const presentRefusal = ({ code, message, field, retryAt }: Refused): Refusal =>
  make(Refusal, { code: code as RefusalCode, message, field: field ?? null, retryAt: retryAt ?? null });

/** Before anyone connected there is no row, and still a connection to show. */
export function presentConnection(
  { tenant }: Viewer,
  row: ConnectionRow | null,
  stop: CrmStop | null,
  now: Date,
): Connection {
  return make(Connection, {
    id: encodeId("Connection", tenant),
    state: (row?.state ?? "NOT_CONNECTED") as ConnectionState,
    stateChangedAt: row?.stateChangedAt ?? null,
    crm: row?.copyId ? Crm.PIPEDRIVE : null,
    boundEmail: row?.boundEmail ?? null,
    boundUserName: row?.boundUserName ?? null,
    companyName: row?.companyName ?? null,
    companyDomain: row?.companyDomain ?? null,
    connectedAt: row?.connectedAt ?? null,
    reauthorizationReason: (row?.reauthorizationReason ?? null) as ReauthorizationReason | null,
    trouble: stop && row?.state === "CONNECTED" ? presentStop(stop, now) : presentTrouble(row),
    copyId: row?.copyId ?? null,
  });
}

/** The operator's stop is every connection's trouble for as long as it holds; whatever was before it is kept beneath. */
function presentStop(stop: CrmStop, now: Date): Trouble {
  const message = `${messageOfStop(stop)} Syncs wait and writes are refused until it is resumed.`;
  return make(Trouble, { code: TroubleCode.CRM_UNAVAILABLE, message, since: stop.since, lastSeenAt: now });
}

function presentTrouble(row: ConnectionRow | null): Trouble | null {
  if (!row?.troubleCode || !row.troubleSince || !row.troubleLastSeenAt) return null;
  return make(Trouble, {
    code: row.troubleCode as TroubleCode,
    message: row.troubleMessage ?? "",
    since: row.troubleSince,
    lastSeenAt: row.troubleLastSeenAt,
  });
}

export function presentRun(row: SyncRunRow): SyncRun {
  return make(SyncRun, {
    id: encodeId("SyncRun", row.id),
    runId: row.id,
    kind: row.kind,
    state: row.state,
    queuedAt: row.queuedAt,
    startedAt: row.startedAt,
    finishedAt: row.finishedAt,
    gaps: row.gaps.map(presentGap),
    error: row.errorCode ? { code: row.errorCode, message: row.errorMessage ?? "" } : null,
  });
}

export const presentGap = ({ resource, code, count, since, message, expectedBy }: GapSummary): DataGap =>
  make(DataGap, {
    ...{ resource, code, count, since: new Date(since), message },
    expectedBy: expectedBy ? new Date(expectedBy) : null,
  });

export const presentStep = (row: SyncStepRow): SyncStep =>
  make(SyncStep, {
    resource: row.resource,
    state: row.state,
    updatedSince: row.updatedSince,
    requests: row.requests,
    fetched: row.fetched,
    written: row.written,
    unchanged: row.unchanged,
    removed: row.removed,
    rejected: row.rejected,
  });

export const presentUser = (row: CrmUserRow): CrmUser =>
  make(CrmUser, { name: row.name, email: row.email, active: row.active, ...recordId("CrmUser", row) });

export const presentPipeline = (row: PipelineRow): Pipeline =>
  make(Pipeline, { name: row.name, pipelineCrmId: row.crmId, ...recordId("Pipeline", row) });

export const presentStage = (row: StageRow): Stage =>
  make(Stage, {
    name: row.name,
    position: row.position,
    daysToRotten: row.daysToRotten,
    pipelineId: row.pipelineId,
    ...recordId("Stage", row),
  });

const STATUS: Record<DealRow["status"], DealStatus> = {
  open: DealStatus.OPEN,
  won: DealStatus.WON,
  lost: DealStatus.LOST,
};

function presentSnooze(row: DealRow): Snooze | null {
  const { snoozeReason: reason, snoozedUntil: until, snoozedBy: by, snoozedAt: at, snoozeEndsAt: endsAt } = row;
  return reason !== null && until && by !== null && at && endsAt
    ? make(Snooze, { reason, until, by, at, endsAt })
    : null;
}

export function presentDeal(row: DealRow, companyDomain: string | null): Deal {
  return make(Deal, {
    title: row.title,
    value: row.value !== null && row.currency !== null ? { amount: row.value, currency: row.currency } : null,
    status: STATUS[row.status],
    participantsKnown: row.participantsKnown,
    expectedCloseDate: row.expectedCloseDate,
    createdAt: row.addTime,
    updatedAt: row.updateTime,
    stageChangedAt: row.stageChangeTime,
    wonAt: row.wonTime,
    lostAt: row.lostTime,
    lostReason: row.lostReason,
    customFields: row.customFields,
    crmUrl: crmUrl(companyDomain, "deal", row),
    snoozed: presentSnooze(row),
    links: {
      deal: row.crmId,
      stage: row.stageId,
      pipeline: row.pipelineId,
      owner: row.ownerId,
      organization: row.organizationId,
      person: row.personId,
    },
    ...recordId("Deal", row),
  });
}

export function presentPerson(row: PersonRow, companyDomain: string | null): Person {
  return make(Person, {
    name: row.name,
    emails: row.emails.map(({ value, label, primary }) => ({ address: value, label, primary })),
    phones: row.phones.map(({ value, label, primary }) => ({ number: value, label, primary })),
    lastIncomingMailAt: row.lastIncomingMailTime,
    lastOutgoingMailAt: row.lastOutgoingMailTime,
    customFields: row.customFields,
    crmUrl: crmUrl(companyDomain, "person", row),
    links: { person: row.crmId, organization: row.organizationId, owner: row.ownerId },
    ...recordId("Person", row),
  });
}

export function presentOrganization(row: OrganizationRow, companyDomain: string | null): Organization {
  return make(Organization, {
    name: row.name,
    address: row.address,
    website: row.website,
    customFields: row.customFields,
    crmUrl: crmUrl(companyDomain, "organization", row),
    links: { organization: row.crmId, owner: row.ownerId },
    ...recordId("Organization", row),
  });
}

/** A note has no page of its own: it stands on the record that it hangs on. */
export function crmUrlOfNote(
  companyDomain: string | null,
  { deal, person, organization }: Note["links"],
): string | null {
  const [kind, crmId] = deal ? ["deal", deal] : person ? ["person", person] : ["organization", organization];
  return crmId === null ? null : crmUrl(companyDomain, kind, { crmId });
}

function crmUrl(companyDomain: string | null, kind: string, { crmId }: Pick<CopyKey, "crmId">): string | null {
  return companyDomain && `https://${companyDomain}.pipedrive.com/${kind}/${crmId}`;
}

export const presentActivity = (row: ActivityRow): Activity =>
  make(Activity, {
    subject: row.subject,
    type: row.type,
    done: row.done,
    dueAt: row.dueAt,
    doneAt: row.doneAt,
    links: { owner: row.ownerId, deal: row.dealId, person: row.personId, organization: row.organizationId },
    ...recordId("Activity", row),
  });

export const presentNote = (row: NoteHead & { ours: boolean }): Note =>
  make(Note, {
    createdAt: row.addTime,
    updatedAt: row.updateTime,
    ours: row.ours,
    links: {
      ...{ note: row.crmId, author: row.authorId },
      ...{ deal: row.dealId, person: row.personId, organization: row.organizationId },
    },
    ...recordId("Note", row),
  });

export const presentMeeting = (row: MeetingRow): Meeting =>
  make(Meeting, {
    id: encodeId("Meeting", row.id),
    meetingId: row.id,
    externalId: row.externalId,
    title: row.title,
    startsAt: row.startsAt,
    endsAt: row.endsAt,
    ownerEmail: row.ownerEmail,
    cancelledAt: row.cancelledAt,
  });

/** @param outdated why nothing of the match holds: it belongs to a copy that is no longer the tenant's; null: it holds */
export const presentAttendee = (row: MeetingAttendeeRow, outdated: string | null): Attendee =>
  make(Attendee, {
    email: row.email,
    name: row.name,
    side: row.side,
    match: make(PersonMatch, {
      status: outdated ? "PENDING" : row.matchStatus,
      rule: outdated ? null : row.matchRule,
      reason: outdated ?? row.matchReason,
      organizationStatus: outdated ? "PENDING" : row.organizationStatus,
      organizationRule: outdated ? null : row.organizationRule,
      organizationReason: outdated ? null : row.organizationReason,
      links: outdated
        ? { person: null, organization: null, candidates: [] }
        : { person: row.personId, organization: row.organizationId, candidates: row.candidateIds },
    }),
  });

/** @param outdated as in {@link presentAttendee} */
export const presentMatch = (row: MeetingMatchRow, outdated: string | null): MeetingMatch =>
  make(MeetingMatch, {
    status: outdated ? "PENDING" : row.status,
    rule: outdated ? null : row.rule,
    reason: outdated ?? row.reason,
    matchedAt: row.matchedAt,
    links: {
      meeting: row.meetingId,
      deal: outdated ? null : row.dealId,
      candidates: outdated ? [] : candidatesOf(row),
    },
  });

/** The matched one first, so that a bounded list never leaves it out. */
function candidatesOf({ candidates, dealId: matched }: MeetingMatchRow): { deal: number; reason: string }[] {
  const rest = candidates.filter(({ dealId }) => dealId !== matched);
  const first = candidates.filter(({ dealId }) => dealId === matched);
  return [...first, ...rest].map(({ dealId, reason }) => ({ deal: dealId, reason }));
}
