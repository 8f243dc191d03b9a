import type { World } from "../api/operation";
import { recordsOf } from "../model/company";
import { dealTimes } from "../model/deal-times";
import type { FieldEntity, FieldType } from "../model/fields";
import type { Settings } from "../model/options";
import type { CustomFields, Deal, Entity, Note, ParticipantLink, RecordOf } from "../model/records";
import { seconds, v1Time, v2Time } from "../model/times";
import type { SignedIn } from "../oauth/consent-page";
import type { Grants, Identity } from "../oauth/grants";
import type { FaultRule, Faults } from "../server/faults";
import type { LateEffects } from "../server/late-effects";
import { CustomFieldControl, type NewCustomField } from "./custom-field-control";
import { freshRecord } from "./fresh-record";
import { type Snapshot, snapshotFor } from "./snapshot";

export interface Control {
  /** Who is signed in in the browser on the consent page; at first a user without admin rights who sees every story. */
  signIn(userId: number): void;
  /** A code as the consent page would give it, to the user who is signed in. */
  approve(params?: { state?: string }): string;
  expireCodes(): void;
  /** Returns a function that removes the rule. */
  fail(rule: FaultRule): () => void;
  clearFaults(): void;
  /** The user's tokens die for good: after `reactivate` a new consent is needed. */
  deactivate(userId: number): void;
  reactivate(userId: number): void;
  /** All tokens of the user die: a refresh answers invalid_grant. */
  revoke(userId: number): void;
  /** Calls answer 401; a refresh still works. */
  killAccessTokens(userId: number): void;
  /** Access tokens that the user's grants give from now on are another's; with `living` those that live as well. */
  mistake(userId: number, identity: Identity, tokens?: "living"): void;
  /** Takes a record out of everybody's sight, or puts it back, without touching its update time. */
  hide(entity: Entity, id: number): void;
  show(entity: Entity, id: number): void;
  /** Sets members and the update time; a new stage or status sets the times that belong to it unless the patch does. */
  change<E extends Entity>(entity: E, id: number, patch: Partial<RecordOf[E]>): void;
  /** Soft deletion as on the wire. A person leaves the deals it took part in. */
  remove(entity: Entity, id: number): void;
  archive(dealId: number): void;
  add<E extends Entity>(entity: E, partial?: Partial<RecordOf[E]>): number;
  /** Does not touch the deal's update time. */
  setParticipants(dealId: number, personIds: readonly number[]): void;
  visibleTo(userId: number): Snapshot;
  /** The notes that show on a record, the oldest first. */
  notesOf(entity: FieldEntity, id: number): Note[];
  /** The record's custom fields by code. */
  fieldsOf(entity: FieldEntity, id: number): CustomFields;
  /** Returns the new field's code. */
  addCustomField(entity: FieldEntity, field: NewCustomField): string;
  removeCustomField(entity: FieldEntity, code: string): void;
  /** The field keeps its code and loses every value. */
  changeFieldType(entity: FieldEntity, code: string, type: FieldType, options?: readonly string[]): void;
  /** What `late` faults hold back happens now. Says how much it was. */
  releaseLateEffects(): number;
}

export interface ControlParts {
  settings: Settings;
  world: World;
  grants: Grants;
  faults: Faults;
  late: LateEffects;
  signedIn: SignedIn;
}

export class SimulatorControl implements Control {
  /** 0 until links are first made here. */
  private lastLinkId = 0;

  private readonly customFields: CustomFieldControl;

  constructor(private readonly parts: ControlParts) {
    this.customFields = new CustomFieldControl(parts.world);
  }

  signIn(userId: number): void {
    this.parts.signedIn.user = this.record("user", userId);
  }

  approve(_params: { state?: string } = {}): string {
    return this.parts.grants.issueCode(this.parts.signedIn.user.id, this.parts.settings.redirectUrl);
  }

  expireCodes(): void {
    this.parts.grants.expireCodes();
  }

  fail(rule: FaultRule): () => void {
    return this.parts.faults.add(rule);
  }

  clearFaults(): void {
    this.parts.faults.clear();
  }

  deactivate(userId: number): void {
    this.change("user", userId, { active_flag: false });
    this.revoke(userId);
  }

  reactivate(userId: number): void {
    this.change("user", userId, { active_flag: true });
  }

  revoke(userId: number): void {
    this.parts.grants.revokeUser(userId);
  }

  killAccessTokens(userId: number): void {
    this.parts.grants.killAccessTokens(userId);
  }

  mistake(userId: number, identity: Identity, tokens?: "living"): void {
    this.parts.grants.mistake(userId, identity, tokens === "living");
  }

  hide(entity: Entity, id: number): void {
    this.record(entity, id);
    this.parts.world.views.hide(entity, id);
  }

  show(entity: Entity, id: number): void {
    this.parts.world.views.show(entity, id);
  }

  change<E extends Entity>(entity: E, id: number, patch: Partial<RecordOf[E]>): void {
    const record = this.record(entity, id);
    Object.assign(
      record,
      this.updateTimes(entity),
      entity === "deal" ? dealTimes(record as Deal, patch, seconds(this.parts.settings.now())) : {},
      patch,
    );
    this.parts.world.changed(entity, id);
  }

  remove(entity: Entity, id: number): void {
    switch (entity) {
      case "note":
        this.change("note", id, { active_flag: false });
        break;
      case "user":
        this.revoke(id);
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
    const table = recordsOf(this.parts.world.company, entity);
    const record: RecordOf[E] = { ...freshRecord(this.parts.world, entity), ...partial };
    table.set(record.id, record);
    if (entity === "user") this.parts.world.company.groups.set(record.id, 1);
    this.parts.world.changed(entity, record.id);
    return record.id;
  }

  setParticipants(dealId: number, personIds: readonly number[]): void {
    const deal = this.record("deal", dealId);
    const { participants } = this.parts.world.company;
    const known = participants.get(dealId) ?? [];
    this.lastLinkId = this.lastLinkId || highestLinkId(participants.values());
    const links = personIds.map((personId) => {
      this.record("person", personId);
      const link = known.find((candidate) => candidate.personId === personId);
      return link ?? { id: ++this.lastLinkId, personId, addedBy: deal.owner_id, addTime: this.v1Now() };
    });
    participants.set(dealId, links);
    this.parts.world.changed("deal", dealId);
  }

  visibleTo(userId: number): Snapshot {
    return snapshotFor(this.parts.world, this.record("user", userId));
  }

  notesOf(entity: FieldEntity, id: number): Note[] {
    this.parts.late.doDue();
    this.record(entity, id);
    const link = ({ deal: "deal_id", person: "person_id", organization: "org_id" } as const)[entity];
    const notes = [...this.parts.world.company.notes.values()];
    return notes.filter((note) => note.active_flag && note[link] === id);
  }

  fieldsOf(entity: FieldEntity, id: number): CustomFields {
    this.parts.late.doDue();
    return { ...this.record(entity, id).custom_fields };
  }

  addCustomField(entity: FieldEntity, field: NewCustomField): string {
    return this.customFields.add(entity, field);
  }

  removeCustomField(entity: FieldEntity, code: string): void {
    this.customFields.remove(entity, code);
  }

  changeFieldType(entity: FieldEntity, code: string, type: FieldType, options?: readonly string[]): void {
    this.customFields.changeType(entity, code, type, options);
  }

  releaseLateEffects(): number {
    return this.parts.late.release();
  }

  private record<E extends Entity>(entity: E, id: number): RecordOf[E] {
    const record = recordsOf(this.parts.world.company, entity).get(id);
    if (!record) throw new RangeError(`there is no ${entity} ${id}`);
    return record;
  }

  private leaveDeals(personId: number): void {
    const { participants } = this.parts.world.company;
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
    return v2Time(seconds(this.parts.settings.now()));
  }

  private v1Now(): string {
    return v1Time(seconds(this.parts.settings.now()));
  }
}

function highestLinkId(lists: Iterable<readonly ParticipantLink[]>): number {
  let highest = 0;
  for (const links of lists) for (const link of links) highest = Math.max(highest, link.id);
  return highest;
}
