import type { World } from "../api/operation";
import { visibleLinks } from "../api/v1-participants";
import type {
  Activity,
  Deal,
  Entity,
  MailTimes,
  Note,
  Organization,
  Person,
  Pipeline,
  RecordOf,
  Stage,
  User,
} from "../model/records";
import { plainView, type View } from "../model/texts";

/** Everything one user can see, as the wire would show it. */
export interface Snapshot {
  users: User[];
  pipelines: Pipeline[];
  stages: Stage[];
  organizations: Organization[];
  /** With mail times. */
  persons: Person[];
  /** Neither archived nor deleted; with mail times and participants_count. */
  deals: (Deal & { participants_count: number })[];
  /** Person ids by deal id; every deal of the snapshot is in it. */
  participants: Map<number, number[]>;
  activities: Activity[];
  notes: WireNote[];
}

interface WireNote extends Note {
  deal: { title: string } | null;
  person: { name: string } | null;
  organization: { name: string } | null;
  user: { email: string; name: string; icon_url: string | null; is_you: boolean };
}

const mailTimes: readonly (keyof MailTimes)[] = ["last_incoming_mail_time", "last_outgoing_mail_time"];
const personView: View = { ...plainView, includeFields: mailTimes };
const dealView: View = { ...plainView, includeFields: [...mailTimes, "participants_count"] };

/** Read back from the very texts that requests are answered with, so that it cannot differ from them. */
export function snapshotFor(world: World, user: User): Snapshot {
  const { texts, views } = world;
  const records = <E extends Entity>(entity: E, keep: (record: RecordOf[E]) => boolean) =>
    views.list(user, entity).filter(keep);
  const deals = records("deal", (deal) => !deal.is_deleted && !deal.is_archived);
  return {
    users: views.list(user, "user").map((other) => ({ ...other, is_you: other.id === user.id })),
    pipelines: records("pipeline", isKept).map((pipeline) => ({ ...pipeline })),
    stages: records("stage", isKept).map((stage) => ({ ...stage })),
    organizations: read(
      records("organization", isKept).map((organization) => texts.organization(organization, plainView)),
    ),
    persons: read(records("person", isKept).map((person) => texts.person(person, personView))),
    deals: read(deals.map((deal) => texts.deal(deal, dealView))),
    participants: new Map(
      deals.map((deal) => [deal.id, visibleLinks(world, user, deal.id).map(({ person }) => person.id)]),
    ),
    activities: read(records("activity", isKept).map((activity) => texts.activity(activity, plainView))),
    notes: read(records("note", (note) => note.active_flag).map((note) => texts.note(note, user.id))),
  };
}

function isKept(record: { is_deleted: boolean }): boolean {
  return !record.is_deleted;
}

function read<T>(texts: readonly string[]): T[] {
  return texts.map((text): T => JSON.parse(text));
}
