import type { World } from "../api/operation";
import { recordsOf } from "../model/company";
import { dealTimes } from "../model/deal-times";
import type { FieldEntity } from "../model/fields";
import type { Deal, Entity, ParticipantLink, RecordOf } from "../model/records";
import { seconds, v1Time, v2Time } from "../model/times";
import type { Sight } from "../model/views";
import type { Grants } from "../oauth/grants";
import { freshRecord } from "./fresh-record";
import { participantsAfter, rehang } from "./merging";

export interface Records {
  /** Takes a record out of everybody's sight, or puts it back, without touching its update time. */
  hide(entity: Entity, id: number): void;
  show(entity: Entity, id: number): void;
  /** Sets members and the update time; a new stage or status sets the times that belong to it unless the patch does. */
  change<E extends Entity>(entity: E, id: number, patch: Partial<RecordOf[E]>): void;
  /** Soft deletion as on the wire. A person leaves the deals it took part in. */
  remove(entity: Entity, id: number): void;
  archive(dealId: number): void;
  add<E extends Entity>(entity: E, partial?: Partial<RecordOf[E]>): number;
  /** The deal's update time stays as it is unless told to move: what the CRM does is not known. */
  setParticipants(dealId: number, personIds: readonly number[], updateTime?: "moves"): void;
  /**
   * The loser goes to the bin; what hung on it (deals, persons, activities, notes, participants) hangs on the winner. The
   * update times of the two move, those of what hung on the loser only if told so.
   */
  merge(entity: FieldEntity, loserId: number, winnerId: number, updateTimes?: "move"): void;
  /** From now on the user sees only the own records among those the rules would show, or none; or all of them again. */
  narrow(userId: number, sight: Sight): void;
}

/** What happens to the company's records while a client reads them. */
export class RecordControl implements Records {
  /** 0 until links are first made here. */
  private lastLinkId = 0;

  constructor(
    protected readonly world: World,
    private readonly grants: Grants,
  ) {}

  hide(entity: Entity, id: number): void {
    this.record(entity, id);
    this.world.views.hide(entity, id);
  }

  show(entity: Entity, id: number): void {
    this.world.views.show(entity, id);
  }

  change<E extends Entity>(entity: E, id: number, patch: Partial<RecordOf[E]>): void {
    const record = this.record(entity, id);
    Object.assign(
      record,
      this.updateTimes(entity),
      entity === "deal" ? dealTimes(record as Deal, patch, seconds(this.world.now())) : {},
      patch,
    );
    this.world.changed(entity, id);
  }

  remove(entity: Entity, id: number): void {
    switch (entity) {
      case "note":
        this.change("note", id, { active_flag: false });
        break;
      case "user":
        this.grants.revokeUser(id);
        this.change("user", id, { active_flag: false, is_deleted: true });
        break;
      case "deal":
        this.change("deal", id, { status: "deleted", is_deleted: true });
        break;
      default:
        this.change(entity, id, { is_deleted: true });
        if (entity === "person") this.leaveDeals(id);
    }
  }

  archive(dealId: number): void {
    this.change("deal", dealId, { is_archived: true, archive_time: this.v2Now() });
  }

  add<E extends Entity>(entity: E, partial: Partial<RecordOf[E]> = {}): number {
    const table = recordsOf(this.world.company, entity);
    const record: RecordOf[E] = { ...freshRecord(this.world, entity), ...partial };
    table.set(record.id, record);
    if (entity === "user") this.world.company.groups.set(record.id, 1);
    this.world.changed(entity, record.id);
    return record.id;
  }

  setParticipants(dealId: number, personIds: readonly number[], updateTime?: "moves"): void {
    const deal = this.record("deal", dealId);
    const { participants } = this.world.company;
    const known = participants.get(dealId) ?? [];
    this.lastLinkId = this.lastLinkId || highestLinkId(participants.values());
    const links = personIds.map((personId) => {
      this.record("person", personId);
      const link = known.find((candidate) => candidate.personId === personId);
      return link ?? { id: ++this.lastLinkId, personId, addedBy: deal.owner_id, addTime: this.v1Now() };
    });
    participants.set(dealId, links);
    if (updateTime) Object.assign(deal, this.updateTimes("deal"));
    this.world.changed("deal", dealId);
  }

  merge(entity: FieldEntity, loserId: number, winnerId: number, updateTimes?: "move"): void {
    const pair = { loserId, winnerId };
    this.record(entity, winnerId);
    rehang(this.world, entity, pair, (hanging, record) => {
      if (updateTimes) Object.assign(record, this.updateTimes(hanging));
      this.world.changed(hanging, record.id);
    });
    for (const [dealId, personIds] of participantsAfter(this.world, entity, pair)) {
      this.setParticipants(dealId, personIds, updateTimes && "moves");
    }
    this.remove(entity, loserId);
    this.change(entity, winnerId, {});
  }

  narrow(userId: number, sight: Sight): void {
    this.record("user", userId);
    this.world.views.narrow(userId, sight);
  }

  protected record<E extends Entity>(entity: E, id: number): RecordOf[E] {
    const record = recordsOf(this.world.company, entity).get(id);
    if (!record) throw new RangeError(`there is no ${entity} ${id}`);
    return record;
  }

  private leaveDeals(personId: number): void {
    const { participants } = this.world.company;
    for (const [dealId, links] of participants) {
      if (links.some((link) => link.personId === personId)) {
        participants.set(
          dealId,
          links.filter((link) => link.personId !== personId),
        );
      }
    }
  }

  private updateTimes(entity: Entity): object {
    if (entity === "user") return { modified: this.v1Now() };
    return { update_time: entity === "note" ? this.v1Now() : this.v2Now() };
  }

  private v2Now(): string {
    return v2Time(seconds(this.world.now()));
  }

  private v1Now(): string {
    return v1Time(seconds(this.world.now()));
  }
}

function highestLinkId(lists: Iterable<readonly ParticipantLink[]>): number {
  let highest = 0;
  for (const links of lists) for (const link of links) highest = Math.max(highest, link.id);
  return highest;
}
