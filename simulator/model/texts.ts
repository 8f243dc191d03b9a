import type { Company } from "./company";
import type { FieldEntity } from "./fields";
import type {
  Activity,
  CustomFields,
  CustomValue,
  Deal,
  Entity,
  MailTimes,
  Note,
  Organization,
  Person,
} from "./records";
import type { Tallies } from "./tallies";

/** What a request asked for beyond the plain record. */
export interface View {
  includeFields: readonly string[];
  /** Null: all of them. */
  customFields: readonly string[] | null;
  optionLabels: boolean;
}

export const plainView: View = { includeFields: [], customFields: null, optionLabels: false };

/** Beyond this many characters for one kind of record, texts are made anew each time: a large company must not fill the memory. */
const MOST_KEPT_CHARACTERS = 10_000_000;

interface Shelf {
  texts: Map<number, string>;
  characters: number;
}

/**
 * Records as JSON text. The part that is the same for every request is kept until the record changes, so that a page
 * of 500 is put together from ready pieces.
 */
export class Texts {
  private readonly kept = new Map<Entity, Shelf>();
  /** The texts of the objects that records without values share. */
  private readonly emptyTexts = new WeakMap<CustomFields, string>();

  constructor(
    private readonly company: Company,
    private readonly tallies: Tallies,
  ) {}

  changed(entity: Entity, id: number): void {
    const shelf = this.shelf(entity);
    shelf.characters -= shelf.texts.get(id)?.length ?? 0;
    shelf.texts.delete(id);
    // Notes show the names of the records they are linked to.
    if (entity !== "activity" && entity !== "note") this.kept.delete("note");
  }

  deal(deal: Deal, view: View): string {
    const stem = this.stem("deal", deal.id, () => withoutParts(deal));
    return `${stem}${this.optional("deal", deal, view)},"custom_fields":${this.custom("deal", deal, view)}}`;
  }

  person(person: Person, view: View): string {
    const stem = this.stem("person", person.id, () => withoutParts(person));
    return `${stem}${this.optional("person", person, view)},"custom_fields":${this.custom("person", person, view)}}`;
  }

  organization(organization: Organization, view: View): string {
    const stem = this.stem("organization", organization.id, () => withoutParts(organization));
    const optional = this.optional("organization", organization, view);
    return `${stem}${optional},"custom_fields":${this.custom("organization", organization, view)}}`;
  }

  activity(activity: Activity, view: View): string {
    const stem = this.stem("activity", activity.id, () => activity);
    if (!view.includeFields.includes("attendees")) return `${stem}}`;
    return `${stem},"attendees":${JSON.stringify(this.attendees(activity))}}`;
  }

  /** `viewerId` matters: a note says whether its author is the one who asks. */
  note(note: Note, viewerId: number): string {
    const { deals, persons, organizations, users } = this.company;
    const stem = this.stem("note", note.id, () => ({
      ...note,
      deal: note.deal_id === null ? null : { title: deals.get(note.deal_id)?.title ?? "" },
      person: note.person_id === null ? null : { name: persons.get(note.person_id)?.name ?? "" },
      organization: note.org_id === null ? null : { name: organizations.get(note.org_id)?.name ?? "" },
      project: null,
      task: null,
    }));
    const author = users.get(note.user_id);
    const user = {
      email: author?.email ?? "",
      name: author?.name ?? "",
      icon_url: author?.icon_url ?? null,
      is_you: note.user_id === viewerId,
    };
    return `${stem},"user":${JSON.stringify(user)}}`;
  }

  /** The text of the record without its closing brace. */
  private stem(entity: Entity, id: number, make: () => object): string {
    const shelf = this.shelf(entity);
    const known = shelf.texts.get(id);
    if (known !== undefined) return known;
    const made = JSON.stringify(make()).slice(0, -1);
    if (shelf.characters > MOST_KEPT_CHARACTERS) return made;
    shelf.texts.set(id, made);
    shelf.characters += made.length;
    return made;
  }

  private shelf(entity: Entity): Shelf {
    const known = this.kept.get(entity);
    if (known) return known;
    const made: Shelf = { texts: new Map(), characters: 0 };
    this.kept.set(entity, made);
    return made;
  }

  private optional(entity: FieldEntity, record: { id: number } & Partial<MailTimes>, view: View): string {
    let text = "";
    for (const name of view.includeFields) {
      const value =
        name === "last_incoming_mail_time" || name === "last_outgoing_mail_time"
          ? record[name]
          : this.tallies.value(entity, record.id, name);
      text += `,"${name}":${JSON.stringify(value ?? null)}`;
    }
    return text;
  }

  private custom(entity: FieldEntity, record: { custom_fields: CustomFields | null }, view: View): string {
    const fields = record.custom_fields;
    if (fields === null) return "null";
    if (view.customFields === null && !view.optionLabels) {
      return fields === this.company.emptyCustomFields[entity] ? this.emptyText(fields) : JSON.stringify(fields);
    }
    const codes = view.customFields ?? Object.keys(fields);
    const asked = codes
      .filter((code) => code in fields)
      .map((code) => [code, this.valueOf(entity, fields, code, view)]);
    return JSON.stringify(Object.fromEntries(asked));
  }

  private emptyText(fields: CustomFields): string {
    const text = this.emptyTexts.get(fields) ?? JSON.stringify(fields);
    this.emptyTexts.set(fields, text);
    return text;
  }

  private valueOf(entity: FieldEntity, fields: CustomFields, code: string, view: View): unknown {
    const value: CustomValue = fields[code] ?? null;
    const options = this.company.fields[entity].find((field) => field.field_code === code)?.options;
    if (!view.optionLabels || !options || value === null) return value;
    const labelled = (id: unknown) => ({ id, label: options.find((option) => option.id === id)?.label ?? "" });
    return Array.isArray(value) ? value.map(labelled) : labelled(value);
  }

  private attendees(activity: Activity): object[] {
    return activity.participants.flatMap(({ person_id }) => {
      const person = person_id === undefined ? undefined : this.company.persons.get(person_id);
      const email = person?.emails[0]?.value;
      if (person === undefined || email === undefined) return [];
      return [{ email, name: person.name, status: "accepted", is_organizer: false, person_id, user_id: null }];
    });
  }
}

/** Custom fields are added apart from the kept text, mail times only when asked for. */
function withoutParts(record: { custom_fields: CustomFields | null } & Partial<MailTimes>): object {
  const { custom_fields, last_incoming_mail_time, last_outgoing_mail_time, ...plain } = record;
  return plain;
}
