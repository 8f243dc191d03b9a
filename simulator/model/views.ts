import { type Company, recordsOf } from "./company";
import type { Activity, Entity, Note, RecordOf, User } from "./records";
import { visibility } from "./records";

export type SortKey =
  | "id"
  | "add_time"
  | "update_time"
  | "due_date"
  | "order_nr"
  | "user_id"
  | "deal_id"
  | "person_id"
  | "org_id"
  | "content";
export interface Sort {
  field: SortKey;
  direction: "asc" | "desc";
}
const byId: Sort = { field: "id", direction: "asc" };

/** What is left of what the rules let a user see: the own records only, or none. */
export type Sight = "everything" | "own" | "nothing";

/** What each user may see. The lists are kept until something changes, so that a page costs no scan and no sort. */
export class Views {
  private readonly hidden = new Map<Entity, Set<number>>();
  private readonly lists = new Map<string, readonly RecordOf[Entity][]>();

  private readonly sights = new Map<number, Sight>();

  constructor(private readonly company: Company) {}

  narrow(userId: number, sight: Sight): void {
    this.sights.set(userId, sight);
    this.changed();
  }

  hide(entity: Entity, id: number): void {
    const set = this.hidden.get(entity) ?? new Set();
    this.hidden.set(entity, set.add(id));
    this.changed();
  }

  show(entity: Entity, id: number): void {
    this.hidden.get(entity)?.delete(id);
    this.changed();
  }

  changed(): void {
    this.lists.clear();
  }

  /** Every record the user may see, deleted and archived ones included: which of them a list shows is the list's affair. */
  list<E extends Entity>(user: User, entity: E, sort: Sort = byId): readonly RecordOf[E][] {
    const key = `${user.id}/${entity}/${sort.field}/${sort.direction}`;
    const known = this.lists.get(key) as readonly RecordOf[E][] | undefined;
    if (known) return known;
    const made = this.make(user, entity, sort);
    this.lists.set(key, made);
    return made;
  }

  private make<E extends Entity>(user: User, entity: E, sort: Sort): readonly RecordOf[E][] {
    if (sort.field !== "id" || sort.direction !== "asc") {
      return [...this.list(user, entity)].sort((left, right) => compare(left, right, sort));
    }
    return [...recordsOf(this.company, entity).values()].filter((record) => this.canSee(user, entity, record));
  }

  canSee<E extends Entity>(user: User, entity: E, record: RecordOf[E]): boolean {
    if (this.hidden.get(entity)?.has(record.id)) return false;
    if (entity === "activity" || entity === "note") return this.canSeeSubject(user, record as Activity | Note);
    return !("visible_to" in record) || this.isShared(user, record);
  }

  find<E extends Entity>(user: User, entity: E, id: number): RecordOf[E] | undefined {
    const record = recordsOf(this.company, entity).get(id);
    return record !== undefined && this.canSee(user, entity, record) ? record : undefined;
  }

  private isShared(user: User, record: { owner_id: number; visible_to: number }): boolean {
    const sight = this.sights.get(user.id) ?? "everything";
    if (sight !== "everything") return sight === "own" && record.owner_id === user.id;
    if (user.is_admin === 1 || record.visible_to === visibility.everyone || record.owner_id === user.id) return true;
    return record.visible_to !== visibility.owner && this.groupOf(record.owner_id) === this.groupOf(user.id);
  }

  private groupOf(userId: number): number | undefined {
    return this.company.groups.get(userId);
  }

  /** Activities and notes have no visibility of their own: the deal decides, without one the person, then the organization. */
  private canSeeSubject(user: User, record: Activity | Note): boolean {
    if (this.sights.get(user.id) === "nothing") return false;
    const { deals, persons, organizations } = this.company;
    const deal = record.deal_id === null ? undefined : deals.get(record.deal_id);
    if (deal) return this.canSee(user, "deal", deal);
    const person = record.person_id === null ? undefined : persons.get(record.person_id);
    if (person) return this.canSee(user, "person", person);
    const organization = record.org_id === null ? undefined : organizations.get(record.org_id);
    return organization === undefined || this.canSee(user, "organization", organization);
  }
}

export type SortValue = string | number;

/** Null sorts as the empty text, so that every record has a place in every order. */
export function sortValue(record: object, field: SortKey): SortValue {
  const value = (record as Partial<Record<SortKey, SortValue | null>>)[field];
  return value ?? (field === "id" ? 0 : "");
}

/** The id decides among equals: without it a cursor could not name a place. */
function compare(left: { id: number }, right: { id: number }, sort: Sort): number {
  return comparePlaces(
    { value: sortValue(left, sort.field), id: left.id },
    { value: sortValue(right, sort.field), id: right.id },
    sort,
  );
}

export interface Place {
  value: SortValue;
  id: number;
}

export function comparePlaces(left: Place, right: Place, sort: Sort): number {
  const order = left.value < right.value ? -1 : left.value > right.value ? 1 : left.id - right.id;
  return sort.direction === "asc" ? order : -order;
}
