import { z } from "zod";
import { isTimeZone } from "../../platform/clock";
import { cutText } from "../../platform/safe-html";
import {
  customFields,
  emails,
  flag,
  id,
  instant,
  noteContent,
  optionalCount,
  optionalDay,
  optionalDecimal,
  optionalFlag,
  optionalId,
  optionalInstant,
  optionalText,
  optionalTimeOfDay,
  phones,
  storableText,
  text,
} from "./values";

/**
 * One schema for each kind of record that the service reads. Fields that the service does not use are dropped here,
 * so that an addition to the wire never reaches the database by itself.
 */
export const userRecord = z
  .object({ id, name: text, email: text, active_flag: flag, is_deleted: optionalFlag })
  .transform((user) => ({
    id: user.id,
    name: user.name,
    email: user.email,
    active: user.active_flag && user.is_deleted !== true,
  }));

/** users/me: whose eyes and hands an access token has. `company_domain` is the subdomain only. */
export const currentUserRecord = z
  .object({
    id,
    name: storableText,
    email: storableText.pipe(z.string().min(1)),
    active_flag: flag,
    is_deleted: optionalFlag,
    company_id: id,
    company_name: storableText,
    company_domain: z.string().regex(/^[a-z0-9-]{1,63}$/i),
    // No answer is worth less for it: whoever counts days has a zone to fall back on.
    timezone_name: z.string().refine(isTimeZone).nullable().catch(null),
  })
  .transform((user) => ({
    id: user.id,
    name: user.name,
    email: user.email,
    active: user.active_flag && user.is_deleted !== true,
    companyId: user.company_id,
    companyName: user.company_name,
    companyDomain: user.company_domain,
    timeZone: user.timezone_name,
  }));

export const pipelineRecord = z
  .object({ id, name: text, order_nr: optionalCount, is_deleted: optionalFlag })
  .transform((pipeline) => ({
    id: pipeline.id,
    name: pipeline.name,
    position: pipeline.order_nr ?? 0,
    deleted: pipeline.is_deleted === true,
  }));

export const stageRecord = z
  .object({
    id,
    name: text,
    order_nr: optionalCount,
    pipeline_id: optionalId,
    is_deal_rot_enabled: optionalFlag,
    days_to_rotten: optionalCount,
    is_deleted: optionalFlag,
  })
  .transform((stage) => ({
    id: stage.id,
    name: stage.name,
    position: stage.order_nr ?? 0,
    pipelineId: stage.pipeline_id,
    daysToRotten: stage.is_deal_rot_enabled ? stage.days_to_rotten : null,
    deleted: stage.is_deleted === true,
  }));

const address = z
  .object({ value: optionalText })
  .nullish()
  .transform((value) => value?.value ?? null);

export const organizationRecord = z
  .object({
    id,
    name: text,
    owner_id: optionalId,
    address,
    website: optionalText,
    add_time: optionalInstant,
    update_time: optionalInstant,
    is_deleted: optionalFlag,
    custom_fields: customFields,
  })
  .transform((organization) => ({
    id: organization.id,
    name: organization.name,
    ownerId: organization.owner_id,
    address: organization.address,
    website: organization.website,
    addTime: organization.add_time,
    updateTime: organization.update_time,
    customFields: organization.custom_fields,
    deleted: organization.is_deleted === true,
  }));

export const personRecord = z
  .object({
    id,
    name: text,
    owner_id: optionalId,
    org_id: optionalId,
    emails,
    phones,
    last_incoming_mail_time: optionalInstant,
    last_outgoing_mail_time: optionalInstant,
    add_time: optionalInstant,
    update_time: optionalInstant,
    is_deleted: optionalFlag,
    custom_fields: customFields,
  })
  .transform((person) => ({
    id: person.id,
    name: person.name,
    ownerId: person.owner_id,
    organizationId: person.org_id,
    emails: person.emails,
    phones: person.phones,
    lastIncomingMailTime: person.last_incoming_mail_time,
    lastOutgoingMailTime: person.last_outgoing_mail_time,
    addTime: person.add_time,
    updateTime: person.update_time,
    customFields: person.custom_fields,
    deleted: person.is_deleted === true,
  }));

/** UTF-16 units: lists are sorted by it, and an index holds no long texts. */
const MAX_CURRENCY = 20;

interface Flags {
  status?: string | null;
  is_deleted: boolean | null;
  is_archived?: boolean | null;
}

/** Whether a record that is shown is in the bin, or archived, where it takes no writes either. */
const isGone = (record: Flags): boolean =>
  record.is_deleted === true || record.status === "deleted" || record.is_archived === true;

export const dealRecord = z
  .object({
    id,
    title: text,
    value: optionalDecimal,
    currency: optionalText.transform((code) => code && cutText(code, MAX_CURRENCY)),
    status: z.enum(["open", "won", "lost", "deleted"]),
    owner_id: optionalId,
    person_id: optionalId,
    org_id: optionalId,
    pipeline_id: optionalId,
    stage_id: optionalId,
    participants_count: optionalCount,
    expected_close_date: optionalDay,
    stage_change_time: optionalInstant,
    won_time: optionalInstant,
    lost_time: optionalInstant,
    close_time: optionalInstant,
    lost_reason: optionalText,
    add_time: optionalInstant,
    update_time: optionalInstant,
    is_deleted: optionalFlag,
    is_archived: optionalFlag,
    custom_fields: customFields,
  })
  .transform((deal) => ({
    id: deal.id,
    title: deal.title,
    value: deal.value,
    currency: deal.currency,
    status: deal.status,
    ownerId: deal.owner_id,
    personId: deal.person_id,
    organizationId: deal.org_id,
    pipelineId: deal.pipeline_id,
    stageId: deal.stage_id,
    participantsCount: deal.participants_count,
    expectedCloseDate: deal.expected_close_date,
    stageChangeTime: deal.stage_change_time,
    wonTime: deal.won_time,
    lostTime: deal.lost_time,
    closeTime: deal.close_time,
    lostReason: deal.lost_reason,
    addTime: deal.add_time,
    updateTime: deal.update_time,
    customFields: deal.custom_fields,
    deleted: isGone(deal),
  }));

/** A participant's own `id` is the link's; the person's is `person_id.value`. */
export const participantRecord = z
  .object({
    person_id: z.union([id, z.object({ value: id }).transform(({ value }) => value)]),
    active_flag: optionalFlag,
  })
  .transform((participant) => ({ personId: participant.person_id, active: participant.active_flag !== false }));

/** Persons of an activity; a meeting of ours has 500 at most. Without some it would be no contact of theirs: rejected. */
const MAX_ACTIVITY_PARTICIPANTS = 1_000;

const activityParticipants = z
  .array(z.object({ person_id: id }))
  .max(MAX_ACTIVITY_PARTICIPANTS)
  .nullish()
  .transform((list) => (list ?? []).map((participant) => participant.person_id));

export const activityRecord = z
  .object({
    id,
    subject: text,
    type: text,
    owner_id: optionalId,
    deal_id: optionalId,
    person_id: optionalId,
    org_id: optionalId,
    participants: activityParticipants,
    due_date: optionalDay,
    due_time: optionalTimeOfDay,
    done: optionalFlag,
    marked_as_done_time: optionalInstant,
    add_time: optionalInstant,
    update_time: optionalInstant,
    is_deleted: optionalFlag,
  })
  .transform((activity) => ({
    id: activity.id,
    subject: activity.subject,
    type: activity.type,
    ownerId: activity.owner_id,
    dealId: activity.deal_id,
    personId: activity.person_id,
    organizationId: activity.org_id,
    participantIds: activity.participants,
    dueDate: activity.due_date,
    dueTime: activity.due_time,
    done: activity.done === true,
    doneTime: activity.marked_as_done_time,
    addTime: activity.add_time,
    updateTime: activity.update_time,
    deleted: activity.is_deleted === true,
  }));

export const noteRecord = z
  .object({
    id,
    user_id: optionalId,
    deal_id: optionalId,
    person_id: optionalId,
    org_id: optionalId,
    content: noteContent,
    add_time: instant,
    update_time: optionalInstant,
    active_flag: optionalFlag,
  })
  .transform((note) => ({
    id: note.id,
    userId: note.user_id,
    dealId: note.deal_id,
    personId: note.person_id,
    organizationId: note.org_id,
    ...note.content,
    addTime: note.add_time,
    updateTime: note.update_time,
    deleted: note.active_flag === false,
  }));

const flagOrNone = optionalFlag.catch(null);

/** A record of which no more is asked than whether it is there: a list may show what is in the bin (wire fact 5). */
export const shownRecord = z
  .object({ id, status: optionalText.catch(null), is_deleted: flagOrNone, is_archived: flagOrNone })
  .transform((record) => ({ id: record.id, deleted: isGone(record) }));

/** A note just made: the id is what counts, the rest only where it can be read. */
export const createdNoteRecord = z
  .looseObject({ id })
  .transform((raw) => ({ id: raw.id, note: noteRecord.safeParse(raw).data ?? null }));

export type CrmUser = z.output<typeof userRecord>;
export type CrmCurrentUser = z.output<typeof currentUserRecord>;
export type CrmPipeline = z.output<typeof pipelineRecord>;
export type CrmStage = z.output<typeof stageRecord>;
export type CrmOrganization = z.output<typeof organizationRecord>;
export type CrmPerson = z.output<typeof personRecord>;
export type CrmDeal = z.output<typeof dealRecord>;
export type CrmParticipant = z.output<typeof participantRecord>;
export type CrmActivity = z.output<typeof activityRecord>;
export type CrmNote = z.output<typeof noteRecord>;
