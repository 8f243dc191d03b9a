import type { Activity, Deal, Note, Organization, Person } from "./records";
import { visibility } from "./records";

// Records as the CRM makes them when nothing but the required members is given. Seed and control both start from these.

export function blankDeal(
  required: Pick<Deal, "id" | "title" | "owner_id" | "pipeline_id" | "stage_id" | "add_time" | "custom_fields">,
): Deal {
  return {
    id: required.id,
    title: required.title,
    creator_user_id: required.owner_id,
    owner_id: required.owner_id,
    person_id: null,
    org_id: null,
    pipeline_id: required.pipeline_id,
    stage_id: required.stage_id,
    value: 0,
    currency: "EUR",
    add_time: required.add_time,
    update_time: required.add_time,
    stage_change_time: null,
    status: "open",
    is_deleted: false,
    is_archived: false,
    archive_time: null,
    probability: null,
    lost_reason: null,
    visible_to: visibility.everyone,
    close_time: null,
    won_time: null,
    lost_time: null,
    local_won_date: null,
    local_lost_date: null,
    local_close_date: null,
    expected_close_date: null,
    label_ids: [],
    origin: "ManuallyCreated",
    origin_id: null,
    channel: null,
    channel_id: null,
    acv: null,
    arr: null,
    mrr: null,
    last_incoming_mail_time: null,
    last_outgoing_mail_time: null,
    custom_fields: required.custom_fields,
  };
}

export function blankPerson(required: Pick<Person, "id" | "name" | "owner_id" | "add_time" | "custom_fields">): Person {
  const [first, ...rest] = required.name.split(" ");
  return {
    id: required.id,
    name: required.name,
    first_name: first ?? null,
    last_name: rest.length > 0 ? rest.join(" ") : null,
    owner_id: required.owner_id,
    org_id: null,
    add_time: required.add_time,
    update_time: required.add_time,
    emails: [],
    phones: [],
    is_deleted: false,
    visible_to: visibility.everyone,
    label_ids: [],
    picture_id: null,
    postal_address: null,
    notes: null,
    im: [],
    birthday: null,
    job_title: null,
    last_incoming_mail_time: null,
    last_outgoing_mail_time: null,
    custom_fields: required.custom_fields,
  };
}

export function blankOrganization(
  required: Pick<Organization, "id" | "name" | "owner_id" | "add_time" | "custom_fields">,
): Organization {
  return {
    id: required.id,
    name: required.name,
    owner_id: required.owner_id,
    add_time: required.add_time,
    update_time: required.add_time,
    address: null,
    is_deleted: false,
    visible_to: visibility.everyone,
    label_ids: [],
    website: null,
    linkedin: null,
    industry: null,
    annual_revenue: null,
    employee_count: null,
    custom_fields: required.custom_fields,
  };
}

export function blankActivity(required: Pick<Activity, "id" | "subject" | "type" | "owner_id" | "add_time">): Activity {
  return {
    id: required.id,
    subject: required.subject,
    type: required.type,
    owner_id: required.owner_id,
    creator_user_id: required.owner_id,
    is_deleted: false,
    add_time: required.add_time,
    update_time: required.add_time,
    deal_id: null,
    lead_id: null,
    person_id: null,
    org_id: null,
    project_id: null,
    due_date: null,
    due_time: "",
    duration: "",
    busy: false,
    done: false,
    marked_as_done_time: null,
    location: null,
    participants: [],
    conference_meeting_client: null,
    conference_meeting_url: null,
    conference_meeting_id: null,
    public_description: null,
    priority: null,
    note: null,
  };
}

export function blankNote(required: Pick<Note, "id" | "user_id" | "content" | "add_time">): Note {
  return {
    id: required.id,
    user_id: required.user_id,
    deal_id: null,
    person_id: null,
    org_id: null,
    lead_id: null,
    project_id: null,
    task_id: null,
    content: required.content,
    add_time: required.add_time,
    update_time: required.add_time,
    active_flag: true,
    pinned_to_lead_flag: false,
    pinned_to_deal_flag: false,
    pinned_to_organization_flag: false,
    pinned_to_person_flag: false,
    pinned_to_project_flag: false,
    pinned_to_task_flag: false,
    last_update_user_id: null,
  };
}
