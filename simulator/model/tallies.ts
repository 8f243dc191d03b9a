import type { Company } from "./company";
import type { FieldEntity } from "./fields";
import type { Activity, Deal } from "./records";

interface Tally {
  activities: number;
  done: number;
  notes: number;
  people: number;
  lastActivity: Activity | null;
  nextActivity: Activity | null;
  /** Deals by relation (own, related, participant) and status. */
  deals: Map<string, number>;
}

type Relation = "own" | "related" | "participant";

const nothing: Tally = {
  activities: 0,
  done: 0,
  notes: 0,
  people: 0,
  lastActivity: null,
  nextActivity: null,
  deals: new Map(),
};

/** Counts beside the records, which the CRM answers only to include_fields. Built when first asked for, dropped on a change. */
export class Tallies {
  private byRecord: Map<string, Tally> | null = null;

  constructor(
    private readonly company: Company,
    private readonly countsDealsPerson = true,
  ) {}

  changed(): void {
    this.byRecord = null;
  }

  /** The value of one optional field; undefined where the entity has no such field. */
  value(entity: FieldEntity, id: number, name: string): unknown {
    const { domain, deals, participants } = this.company;
    if (name === "participants_count") {
      const links = participants.get(id) ?? [];
      return links.filter(({ personId }) => this.countsDealsPerson || personId !== deals.get(id)?.person_id).length;
    }
    if (name === "first_won_time") return deals.get(id)?.won_time ?? null;
    if (name === "smart_bcc_email") return `${domain}+${entity}${id}@pipedrivemail.com`;
    if (name in constants) return constants[name];
    return this.counted(entity, id, name);
  }

  private counted(entity: FieldEntity, id: number, name: string): unknown {
    this.byRecord ??= this.build();
    const tally = this.byRecord.get(`${entity}/${id}`) ?? nothing;
    const relation = /^(related_|participant_)?(open|closed|won|lost)_deals_count$/.exec(name);
    if (relation) return tally.deals.get(`${relation[1]?.slice(0, -1) ?? "own"}/${relation[2]}`) ?? 0;
    const counts: Record<string, number | null> = {
      activities_count: tally.activities,
      done_activities_count: tally.done,
      undone_activities_count: tally.activities - tally.done,
      notes_count: tally.notes,
      people_count: tally.people,
      last_activity_id: tally.lastActivity?.id ?? null,
      next_activity_id: tally.nextActivity?.id ?? null,
    };
    return counts[name];
  }

  private build(): Map<string, Tally> {
    const tallies = new Map<string, Tally>();
    const of = (entity: FieldEntity, id: number | null): Tally => {
      const key = `${entity}/${id}`;
      const tally = tallies.get(key) ?? { ...nothing, deals: new Map() };
      tallies.set(key, tally);
      return tally;
    };
    for (const activity of this.company.activities.values()) {
      if (activity.is_deleted) continue;
      for (const tally of [
        of("deal", activity.deal_id),
        of("person", activity.person_id),
        of("organization", activity.org_id),
      ]) {
        countActivity(tally, activity);
      }
    }
    for (const note of this.company.notes.values()) {
      if (!note.active_flag) continue;
      of("deal", note.deal_id).notes++;
      of("person", note.person_id).notes++;
      of("organization", note.org_id).notes++;
    }
    for (const person of this.company.persons.values())
      if (!person.is_deleted) of("organization", person.org_id).people++;
    for (const deal of this.company.deals.values()) this.countDeal(deal, of);
    return tallies;
  }

  private countDeal(deal: Deal, of: (entity: FieldEntity, id: number | null) => Tally): void {
    if (deal.is_deleted) return;
    const states = deal.status === "open" ? ["open"] : ["closed", deal.status];
    const count = (tally: Tally, relation: Relation) => {
      for (const state of states)
        tally.deals.set(`${relation}/${state}`, (tally.deals.get(`${relation}/${state}`) ?? 0) + 1);
    };
    count(of("person", deal.person_id), "own");
    count(of("organization", deal.org_id), "own");
    for (const { personId } of this.company.participants.get(deal.id) ?? []) {
      count(of("person", personId), "related");
      if (personId !== deal.person_id) count(of("person", personId), "participant");
    }
  }
}

// The simulated company has no mail, files, followers, products or marketing.
const constants: Readonly<Record<string, number | string | null>> = {
  email_messages_count: 0,
  files_count: 0,
  followers_count: 0,
  products_count: 0,
  source_lead_id: null,
  marketing_status: "no_consent",
  doi_status: "not_sent",
};

function countActivity(tally: Tally, activity: Activity): void {
  tally.activities++;
  const due = activity.due_date ?? "";
  if (activity.done) {
    tally.done++;
    if (tally.lastActivity === null || due >= (tally.lastActivity.due_date ?? "")) tally.lastActivity = activity;
  } else if (tally.nextActivity === null || due < (tally.nextActivity.due_date ?? "")) {
    tally.nextActivity = activity;
  }
}
