import type { Field, FieldEntity } from "./fields";
import type {
  Activity,
  CustomFields,
  Deal,
  Entity,
  Note,
  Organization,
  ParticipantLink,
  Person,
  Pipeline,
  RecordOf,
  Stage,
  User,
} from "./records";
import type { Stories } from "./stories";

/** The simulated company: everything its users could see. Change it through the control, or lists and texts go stale. */
export interface Company {
  readonly id: number;
  readonly name: string;
  readonly domain: string;
  readonly users: Map<number, User>;
  /** The visibility group of each user. */
  readonly groups: Map<number, number>;
  readonly pipelines: Map<number, Pipeline>;
  readonly stages: Map<number, Stage>;
  readonly organizations: Map<number, Organization>;
  readonly persons: Map<number, Person>;
  readonly deals: Map<number, Deal>;
  readonly activities: Map<number, Activity>;
  readonly notes: Map<number, Note>;
  /** By deal id; a deal without participants may be absent. */
  readonly participants: Map<number, ParticipantLink[]>;
  readonly fields: Record<FieldEntity, readonly Field[]>;
  /** Every custom field with null: one object shared by all records that fill none, which keeps a large company small. */
  readonly emptyCustomFields: Record<FieldEntity, CustomFields>;
  readonly stories: Stories;
}

export function recordsOf<E extends Entity>(company: Company, entity: E): Map<number, RecordOf[E]> {
  const tables: { [K in Entity]: Map<number, RecordOf[K]> } = {
    deal: company.deals,
    person: company.persons,
    organization: company.organizations,
    activity: company.activities,
    note: company.notes,
    pipeline: company.pipelines,
    stage: company.stages,
    user: company.users,
  };
  return tables[entity];
}
