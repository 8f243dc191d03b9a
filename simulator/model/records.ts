import type { BaseUser, Note as PackageNote } from "pipedrive/v1";
import type {
  ActivityItem,
  GetPipelinesResponseAllOfDataInner,
  OrganizationItem,
  OrganizationItemAddress,
  Deal as PackageDeal,
  Person as PackagePerson,
  PersonItemEmail,
  PersonItemPhone,
  StageItem,
} from "pipedrive/v2";

/** The official package marks every member optional; on the wire all of them are there, except those named in `Differing`. */
type Present<T, Differing extends keyof T> = Required<Omit<T, Differing>>;

export type Entity = "deal" | "person" | "organization" | "activity" | "note" | "pipeline" | "stage" | "user";
type DealStatus = "open" | "won" | "lost" | "deleted";

type Address = Record<keyof OrganizationItemAddress, string | null>;
export type CustomValue =
  | null
  | string
  | number
  | number[]
  | { value: number; currency: string }
  | { value: string; until: string }
  | { value: string; until?: string; timezone_id: number; timezone_name: string }
  | CustomAddress;
/** A custom address has a formatted text and no subpremise. */
type CustomAddress = Omit<Address, "subpremise"> & { formatted_address: string | null };
export type CustomFields = Readonly<Record<string, CustomValue>>;

/** Who sees a record: its owner only, the owner's group, everyone in the company. */
export const visibility = { owner: 1, group: 3, everyone: 7 } as const;

export interface MailTimes {
  last_incoming_mail_time: string | null;
  last_outgoing_mail_time: string | null;
}

export interface User extends Required<BaseUser> {
  /** A number here although every other flag of the object is a boolean; the package does not know it. */
  is_admin: 0 | 1;
}

// The package lacks the creator, the time of archiving and the local dates, which the wire has.
export interface Deal extends Present<PackageDeal, "custom_fields" | "source_lead_id" | "status">, MailTimes {
  status: DealStatus;
  creator_user_id: number;
  archive_time: string | null;
  local_won_date: string | null;
  local_lost_date: string | null;
  local_close_date: string | null;
  /** The package says never null; a company without custom fields answers null. */
  custom_fields: CustomFields | null;
}

type PersonDiffering =
  | "first_name"
  | "last_name"
  | "org_id"
  | "picture_id"
  | "postal_address"
  | "notes"
  | "birthday"
  | "job_title"
  | "emails"
  | "phones"
  | "custom_fields";

// The package says none of these is null; the wire has null in each of them.
export interface Person extends Present<PackagePerson, PersonDiffering>, MailTimes {
  first_name: string | null;
  last_name: string | null;
  org_id: number | null;
  picture_id: number | null;
  postal_address: Address | null;
  notes: string | null;
  birthday: string | null;
  job_title: string | null;
  emails: Required<PersonItemEmail>[];
  phones: Required<PersonItemPhone>[];
  custom_fields: CustomFields | null;
}

// As with persons: the package says never null, the wire has null.
export interface Organization extends Present<OrganizationItem, "address" | "custom_fields"> {
  address: Address | null;
  custom_fields: CustomFields | null;
}

type ActivityDiffering =
  | "deal_id"
  | "lead_id"
  | "person_id"
  | "org_id"
  | "project_id"
  | "due_date"
  | "marked_as_done_time"
  | "location"
  | "attendees"
  | "conference_meeting_client"
  | "conference_meeting_url"
  | "conference_meeting_id"
  | "public_description"
  | "priority"
  | "outcome"
  | "note";

// The package says none of these is null; attendees are answered only when include_fields asks for them.
export interface Activity extends Present<ActivityItem, ActivityDiffering> {
  deal_id: number | null;
  lead_id: string | null;
  person_id: number | null;
  org_id: number | null;
  project_id: number | null;
  due_date: string | null;
  marked_as_done_time: string | null;
  location: Address | null;
  conference_meeting_client: string | null;
  conference_meeting_url: string | null;
  conference_meeting_id: string | null;
  public_description: string | null;
  priority: number | null;
  note: string | null;
}

type NoteDerived = "deal" | "person" | "organization" | "project" | "task" | "user";

/** As stored: the names of the linked records and of the author are looked up when the note is answered. */
export interface Note extends Present<PackageNote, NoteDerived> {
  pinned_to_lead_flag: boolean;
}

export interface Pipeline extends Present<GetPipelinesResponseAllOfDataInner, "update_time"> {
  /** Null until it is changed for the first time; the package says never. */
  update_time: string | null;
}

export interface Stage extends Present<StageItem, "update_time"> {
  update_time: string | null;
}

/** A link between a deal and a person: its id is never the person's. */
export interface ParticipantLink {
  id: number;
  personId: number;
  addedBy: number;
  addTime: string;
}

export interface RecordOf {
  deal: Deal;
  person: Person;
  organization: Organization;
  activity: Activity;
  note: Note;
  pipeline: Pipeline;
  stage: Stage;
  user: User;
}
